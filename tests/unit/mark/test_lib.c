/* SPDX-License-Identifier: MIT
 *
 * libspotter as a program has it. It is once per process: each test is in a process of its own.
 */
#include "../unit.h"
#include "mark/ring.h"
#include "place.h"
#include "spotter.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>

static char *own_path; /* of this program, for exec */

static void listen_at(struct place *p)
{
	must(!setenv("SPOTTER_MARKS", p->path, 1));
}

/* The next mark of those that belong there. */
static struct mark take(struct ring_reader *r)
{
	struct mark m = { 0 };
	uint64_t lost = 0;

	must(ring_next(r, &m, &lost) == 1 && !lost);
	return m;
}

static int rest(struct ring_reader *r)
{
	struct mark m;
	uint64_t lost = 0;
	int n = 0;

	while (ring_next(r, &m, &lost))
		n++;
	return n;
}

static int open_files(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	must(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static void nobody_listens(struct place *p)
{
	unsetenv("SPOTTER_MARKS");
	errno = 4711;
	spotter_step(1);
	spotter_phase_begin("train");
	spotter_mark(MARK_SOURCE, NULL, 0, 0, 0);
	must(!spotter_active());
	listen_at(p); /* too late: asked once */
	spotter_step(1);
	must(!spotter_active() && errno == 4711);
	must(place_count(p, "", NULL, 0) == 0);
	spotter_reset();
	must(spotter_active() && errno == 4711);
	must(place_count(p, ".ring", NULL, 0) == 1);
}

static void wrong_folders(struct place *p)
{
	static const char *const folders[] = { "", "/proc/self", "/no/such", "/dev/null" };

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		setenv("SPOTTER_MARKS", folders[i], 1);
		spotter_reset();
		errno = 4711;
		spotter_step(1);
		must(!spotter_active() && errno == 4711);
	}
	must(place_count(p, "", NULL, 0) == 0);
}

static void all_marks(struct place *p)
{
	struct ring_reader *r;
	struct mark m;
	int files = open_files();

	listen_at(p);
	errno = 4711;
	spotter_step(0.5);
	must(errno == 4711 && open_files() == files);
	spotter_step(NAN);
	spotter_step_number(1000, 0.25);
	spotter_step(0.125);
	spotter_scalar("lr", 1e-3);
	spotter_scalar(NULL, 1);
	spotter_scalar("", 1);
	spotter_phase_begin("evaluate");
	spotter_phase_end("evaluate");
	spotter_data_wait(777);
	spotter_mark(MARK_SETTING, "workers", 0, 4, 99);
	spotter_mark(MARK_EPOCH, "ignored", 3, 0, 100);
	spotter_mark(MARK_NONE, "x", 0, 0, 0);
	spotter_mark(MARK_KINDS, "x", 0, 0, 0);
	spotter_mark(UINT32_MAX, "x", 0, 0, 0);
	r = place_open(p, getpid());
	must(r);
	m = take(r);
	must(m.kind == MARK_SOURCE && !strcmp(m.name, "api"));
	m = take(r);
	must(m.kind == MARK_STEP && m.number == 1 && m.value == 0.5 && m.t_ns > 0);
	m = take(r);
	must(m.kind == MARK_STEP && m.number == 2 && isnan(m.value));
	m = take(r);
	must(m.kind == MARK_STEP && m.number == 1000 && m.value == 0.25);
	m = take(r);
	must(m.kind == MARK_STEP && m.number == 1001);
	m = take(r);
	must(m.kind == MARK_SCALAR && !strcmp(m.name, "lr") && m.value == 1e-3);
	m = take(r);
	must(m.kind == MARK_PHASE_BEGIN && !strcmp(m.name, "evaluate"));
	m = take(r);
	must(m.kind == MARK_PHASE_END && !strcmp(m.name, "evaluate"));
	m = take(r);
	must(m.kind == MARK_DATA_WAIT && m.number == 777);
	m = take(r);
	must(m.kind == MARK_SETTING && m.value == 4 && m.t_ns == 99);
	m = take(r);
	must(m.kind == MARK_EPOCH && m.number == 3 && m.t_ns == 100 && !*m.name);
	must(!rest(r));
}

/* --- threads --- */

enum { THREADS = 8, EACH = 200 };

static void *first_marks(void *arg)
{
	pthread_barrier_wait(arg);
	for (int i = 0; i < EACH; i++)
		spotter_mark(MARK_MICRO_STEP, NULL, 0, 0, 0);
	return NULL;
}

static void threads_begin_at_once(struct place *p)
{
	pthread_t thread[THREADS];
	pthread_barrier_t together;
	struct ring_reader *r;

	listen_at(p);
	pthread_barrier_init(&together, NULL, THREADS);
	for (int i = 0; i < THREADS; i++)
		must(!pthread_create(&thread[i], NULL, first_marks, &together));
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	must(place_count(p, "", NULL, 0) == 1);
	r = place_open(p, getpid());
	must(r);
	must(rest(r) == THREADS * EACH);
}

static void *marks_on(void *arg)
{
	while (!atomic_load((_Atomic int *)arg))
		spotter_step(1);
	return NULL;
}

static void recorders_come_and_go(struct place *p)
{
	_Atomic int stop = 0;
	struct ring_reader *r;
	struct place other;
	pthread_t thread;

	listen_at(p);
	must(!pthread_create(&thread, NULL, marks_on, &stop));
	for (int i = 0; i < 50; i++) {
		spotter_reset(); /* under the hands of a thread that marks */
		must(spotter_active());
	}
	atomic_store(&stop, 1);
	pthread_join(thread, NULL);
	place_make(&other);
	listen_at(&other);
	spotter_reset();
	spotter_step(3);
	r = place_open(p, getpid());
	must(r);
	must(ring_head(r)->ended == 1);
	ring_reader_close(r);
	r = place_open(&other, getpid());
	must(r);
	must(take(r).kind == MARK_SOURCE && take(r).number == 1 && !rest(r));
	place_done(&other);
}

/* --- processes --- */

static void forks(struct place *p)
{
	int status, pid;
	struct ring_reader *r;

	listen_at(p);
	spotter_step(1);
	spotter_step(2);
	pid = fork();
	if (!pid) {
		int below;

		must(place_count(p, ".ring", NULL, 0) == 1); /* none before it marks */
		spotter_step(10);
		must(place_count(p, ".ring", NULL, 0) == 2);
		below = fork();
		if (!below)
			_exit(0);
		must(waitpid(below, &status, 0) == below && status == 0);
		must(place_count(p, ".ring", NULL, 0) == 2);
		exit(0);
	}
	must(waitpid(pid, &status, 0) == pid && status == 0);
	spotter_step(3);
	r = place_open(p, getpid());
	must(r);
	must(take(r).kind == MARK_SOURCE);
	for (uint64_t i = 1; i <= 3; i++) {
		struct mark m = take(r);

		must(m.number == i && m.value == (double)i);
	}
	must(!rest(r) && !ring_head(r)->ended);
	r = place_open(p, pid);
	must(r);
	must(ring_head(r)->pid == pid && ring_head(r)->ended == 1);
	must(take(r).kind == MARK_SOURCE);
	must(take(r).number == 1 && !rest(r)); /* counted from 1 */
}

static void ends_without_goodbye(struct place *p)
{
	struct ring_reader *r;
	int pid, status;

	listen_at(p);
	pid = fork();
	if (!pid) {
		spotter_step(1);
		kill(getpid(), SIGKILL);
	}
	must(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
	r = place_open(p, pid);
	must(r);
	must(!ring_head(r)->ended && rest(r) == 2);
}

static void execs(struct place *p)
{
	struct ring_reader *r;
	int pid, status;

	listen_at(p);
	pid = fork();
	if (!pid) {
		spotter_scalar("before", 1);
		execl(own_path, own_path, "mark", NULL);
		_exit(1);
	}
	must(waitpid(pid, &status, 0) == pid && status == 0);
	must(place_count(p, "", NULL, 0) == 1);
	r = place_open(p, pid);
	must(r);
	must(!strcmp(take(r).name, "before"));
	must(!strcmp(take(r).name, "after") && !rest(r));
	must(ring_head(r)->ended == 1 && ring_head(r)->named == 2);
}

/* --- the list --- */

static void run(void **state)
{
	void (*f)(struct place *) = *(void (**)(struct place *))(*state);
	struct place p;
	int status;

	place_make(&p);
	status = in_child(f, &p);
	place_done(&p);
	assert_int_equal(status, 0);
}

static void (*const parts[])(struct place *) = {
	nobody_listens,        wrong_folders, all_marks, threads_begin_at_once,
	recorders_come_and_go, forks,         execs,     ends_without_goodbye,
};

#define PART(i, what)                                                                         \
	{                                                                                     \
		.name = what, .test_func = run, .initial_state = (void *)(uintptr_t)&parts[i] \
	}

int main(int n, char **argv)
{
	const struct CMUnitTest tests[] = {
		PART(0, "nobody_listens"),
		PART(1, "wrong_folders"),
		PART(2, "all_marks"),
		PART(3, "threads_begin_at_once"),
		PART(4, "recorders_come_and_go"),
		PART(5, "forks"),
		PART(6, "execs"),
		PART(7, "ends_without_goodbye"),
	};

	own_path = argv[0];
	if (n > 1 && !strcmp(argv[1], "mark")) {
		spotter_scalar("after", 1);
		return 0;
	}
	return cmocka_run_group_tests_name("lib", tests, NULL, NULL);
}
