/* SPDX-License-Identifier: MIT
 *
 * The shared state between processes: who makes it, who may join, and what a death leaves.
 */
#include "../unit.h"

#include "base/clock.h"
#include "layout.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char path[160], scenario[64];

static int begin(void **state)
{
	char name[64];
	FILE *f;

	(void)state;
	snprintf(name, sizeof(name), "unit-%d", (int)getpid());
	setenv("VGPU_STATE", name, 1);
	assert_true(vgpu_path(name, path, sizeof(path)));
	snprintf(scenario, sizeof(scenario), "/tmp/vgpu-unit-%d.vgpu", (int)getpid());
	f = fopen(scenario, "w");
	assert_non_null(f);
	fputs("gpu \"Tesla T4\" x 2\n", f);
	fclose(f);
	setenv("VGPU_SCENARIO", scenario, 1);
	return 0;
}

static int end(void **state)
{
	(void)state;
	vgpu_remove();
	unlink(scenario);
	return 0;
}

static void test_made_and_joined(void **state)
{
	struct vgpu *a = vgpu_open(), *b = vgpu_open(), *c;
	struct stat st;

	(void)state;
	assert_non_null(a);
	assert_non_null(b);
	assert_int_equal(vgpu_count(b), 2);
	assert_int_equal(a->s->born_mono, b->s->born_mono);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	/* With a name and no scenario: whatever is there. */
	unsetenv("VGPU_SCENARIO");
	c = vgpu_open();
	assert_non_null(c);
	assert_int_equal(vgpu_count(c), 2);
	vgpu_close(a);
	vgpu_close(b);
	vgpu_close(c);
}

static void test_other_scenario_is_refused(void **state)
{
	struct vgpu *a = vgpu_open();
	FILE *f = fopen(scenario, "w");

	(void)state;
	assert_non_null(a);
	fputs("gpu \"Tesla T4\"\n", f);
	fclose(f);
	assert_null(vgpu_open());
	assert_int_equal(errno, EPROTO);
	vgpu_close(a);
}

static void test_wrong_scenario_is_refused(void **state)
{
	FILE *f = fopen(scenario, "w");

	(void)state;
	fputs("gpu\n", f);
	fclose(f);
	assert_null(vgpu_open());
	assert_int_equal(errno, EINVAL);
	unlink(scenario);
	assert_null(vgpu_open());
	assert_int_equal(errno, ENOENT);
	assert_int_equal(access(path, F_OK), -1);
}

static void put_file(const char *bytes, off_t size, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, strlen(bytes)), strlen(bytes));
	assert_int_equal(ftruncate(fd, size), 0);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static void test_foreign_files_are_refused(void **state)
{
	off_t right = (off_t)(sizeof(struct shared) + 2 * sizeof(struct device_state));

	(void)state;
	put_file("hello", 5, 0600);
	assert_null(vgpu_open());
	put_file("hello", right, 0600);
	assert_null(vgpu_open());
	put_file("vgpu-1\n", right, 0600); /* another layout: zero */
	assert_null(vgpu_open());
	unlink(path);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	assert_null(vgpu_open());
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_null(vgpu_open());
	unlink(path);
}

static void test_open_to_others_is_refused(void **state)
{
	struct vgpu *v = vgpu_open();

	(void)state;
	assert_non_null(v);
	assert_int_equal(chmod(path, 0666), 0);
	assert_null(vgpu_open());
	assert_int_equal(chmod(path, 0600), 0);
	v->s->scenario.n_devices = 1000000;
	assert_null(vgpu_open());
	v->s->scenario.n_devices = 2;
	vgpu_close(v);
}

static void test_bad_names(void **state)
{
	char other[160];

	(void)state;
	assert_false(vgpu_path("", other, sizeof(other)));
	assert_false(vgpu_path("../x", other, sizeof(other)));
	assert_false(vgpu_path("a/b", other, sizeof(other)));
	assert_false(vgpu_path(".x", other, sizeof(other)));
	assert_false(vgpu_path("a b", other, sizeof(other)));
	assert_true(vgpu_path("a-b_c.9", other, sizeof(other)));
}

static pid_t start(void (*what)(int, void *), int fd, void *argument)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		what(fd, argument);
		_exit(1);
	}
	return pid;
}

/* Tells when the state that it opened was made. */
static void open_and_tell(int fd, void *unused)
{
	struct vgpu *v = vgpu_open();

	(void)unused;
	if (v && write(fd, &v->s->born_mono, sizeof(int64_t)) == sizeof(int64_t))
		_exit(0);
}

static void test_made_once_by_many(void **state)
{
	int p[2];
	int64_t first = 0, born;
	pid_t pid[16];

	(void)state;
	assert_int_equal(pipe(p), 0);
	for (int i = 0; i < 16; i++)
		pid[i] = start(open_and_tell, p[1], NULL);
	for (int i = 0; i < 16; i++) {
		int status;

		assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
		assert_int_equal(status, 0);
		assert_int_equal(read(p[0], &born, sizeof(born)), sizeof(born));
		first = i ? first : born;
		assert_int_equal(born, first);
	}
	close(p[0]);
	close(p[1]);
}

/* Takes the lock and says so, and never gives it back. */
static void lock_and_stay(int fd, void *v)
{
	if (vgpu_lock(v) && write(fd, "x", 1) == 1)
		pause();
}

static void test_lock_of_the_dead_and_the_stuck(void **state)
{
	struct vgpu *v = vgpu_open();
	struct vgpu_now now;
	int p[2], status;
	int64_t from;
	char c;
	pid_t pid;

	(void)state;
	assert_non_null(v);
	assert_int_equal(pipe(p), 0);
	pid = start(lock_and_stay, p[1], v);
	assert_int_equal(read(p[0], &c, 1), 1);
	from = clock_mono_ns();
	assert_false(vgpu_now(v, 0, &now));
	assert_int_equal(vgpu_processes(v, 0, NULL, 0), -1); /* not: nobody is there */
	assert_true(clock_mono_ns() - from < 8 * NS_PER_S);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	from = clock_mono_ns();
	assert_true(vgpu_now(v, 0, &now));
	assert_true(clock_mono_ns() - from < NS_PER_S);
	assert_int_equal(vgpu_processes(v, 0, NULL, 0), 0);
	assert_true(vgpu_now(v, 1, &now));
	assert_false(vgpu_now(v, 2, &now));
	close(p[0]);
	close(p[1]);
	vgpu_close(v);
}

/* Holds memory, and stays. */
static void hold_and_stay(int fd, void *unused)
{
	struct vgpu *v = vgpu_open();

	(void)unused;
	if (!v || !vgpu_lock(v) || client_join(v))
		return;
	v->s->client[v->client].device[1].contexts = 1;
	if (client_alloc(v, 1, 1 << 30))
		return;
	vgpu_unlock(v);
	if (write(fd, "x", 1) == 1)
		pause();
}

static void test_death_frees_memory(void **state)
{
	struct vgpu *v = vgpu_open();
	struct vgpu_process list[4];
	struct vgpu_now now;
	int p[2], status;
	char c;
	pid_t pid;

	(void)state;
	assert_non_null(v);
	assert_int_equal(pipe(p), 0);
	pid = start(hold_and_stay, p[1], NULL);
	assert_int_equal(read(p[0], &c, 1), 1);
	assert_true(vgpu_now(v, 1, &now));
	assert_int_equal(now.memory_used, 1 << 30);
	assert_int_equal(vgpu_processes(v, 1, list, 4), 1);
	assert_int_equal(list[0].pid, pid);
	assert_int_equal(list[0].memory, 1 << 30);
	assert_int_equal(list[0].gi, -1);
	assert_int_equal(vgpu_processes(v, 0, list, 4), 0);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	usleep(25000); /* the dead are looked for every 20 ms */
	assert_true(vgpu_now(v, 1, &now));
	assert_int_equal(now.memory_used, 0);
	assert_int_equal(vgpu_processes(v, 1, list, 4), 0);
	close(p[0]);
	close(p[1]);
	vgpu_close(v);
}

/* One sample has one time, whenever it is read. */
static void test_a_sample_has_one_time(void **state)
{
	struct vgpu *v;
	struct vgpu_process a, b;
	FILE *f = fopen(scenario, "w");
	int same = 0;

	(void)state;
	fputs("gpu \"Tesla T4\"\n  process 4711 a busy 0.5\n", f);
	fclose(f);
	v = vgpu_open();
	assert_non_null(v);
	for (int i = 0; i < 100; i++) {
		assert_int_equal(vgpu_processes(v, 0, &a, 1), 1);
		assert_int_equal(vgpu_processes(v, 0, &b, 1), 1);
		/* The next sample may come between the two, 1/6 s later; anything else is no sample. */
		if (a.sampled_ns == b.sampled_ns)
			same++;
		else
			assert_true(b.sampled_ns - a.sampled_ns >= NS_PER_S / 7);
	}
	assert_true(same > 0);
	vgpu_close(v);
}

/* A minute at full load: a reading a milliwatt below the limit would be rounding, not physics. */
static void test_full_power_is_whole(void **state)
{
	struct vgpu *v;
	struct vgpu_now now;
	FILE *f = fopen(scenario, "w");

	(void)state;
	fputs("gpu \"X\"\n  power idle 50 max 300\n  load 1 sm 1\n", f);
	fclose(f);
	v = vgpu_open();
	assert_non_null(v);
	v->s->born_mono -= 60 * NS_PER_S;
	assert_true(vgpu_now(v, 0, &now));
	assert_int_equal(now.power_mw, 300000);
	assert_int_equal(now.power_instant_mw, 300000);
	vgpu_close(v);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_made_and_joined),           TEST(test_other_scenario_is_refused),
		TEST(test_wrong_scenario_is_refused), TEST(test_foreign_files_are_refused),
		TEST(test_open_to_others_is_refused), TEST(test_bad_names),
		TEST(test_made_once_by_many),         TEST(test_lock_of_the_dead_and_the_stuck),
		TEST(test_death_frees_memory),        TEST(test_a_sample_has_one_time),
		TEST(test_full_power_is_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
