/* SPDX-License-Identifier: MIT
 *
 * A thread that reads a file past the page cache, block after block: whenever it is not on a CPU it
 * waits for storage. How fast that is decides how often it is met waiting, not what is said then.
 */
#include "../unit.h"

#include "base/clock.h"
#include "stack/wait/wait.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BLOCK  (4 << 20)
#define BLOCKS 8
#define LOOKS  400

/* A file of its own, unlinked; -1 where the folder is memory, or knows no direct reads. */
static int open_direct(const char *folder)
{
	static const char block[BLOCK];
	char path[300], link[40];
	int fd, direct;

	snprintf(path, sizeof(path), "%s/spotter-disk-XXXXXX", folder);
	fd = mkstemp(path);
	if (fd < 0)
		return -1;
	for (int i = 0; i < BLOCKS; i++)
		(void)!write(fd, block, BLOCK);
	fsync(fd);
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	direct = open(link, O_RDONLY | O_DIRECT | O_CLOEXEC);
	unlink(path);
	close(fd);
	return direct;
}

static pid_t start_reader(int fd)
{
	pid_t pid = fork();
	void *block;

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (posix_memalign(&block, 4096, BLOCK) != 0)
		_exit(1);
	for (unsigned i = 0; pread(fd, block, BLOCK, (off_t)(i % BLOCKS) * BLOCK) == BLOCK; i++)
		;
	_exit(1);
}

static void test_disk(void **state)
{
	struct timespec pause_time = { .tv_nsec = 1300000 };
	struct wait_process *p = NULL;
	struct wait_job *job = NULL;
	struct wait_state got;
	unsigned disk = 0, file = 0, cpu = 0, wrong = 0;
	int fd = open_direct(getenv("TMPDIR") ? getenv("TMPDIR") : "/var/tmp");
	pid_t pid;

	(void)state;
	if (fd < 0) {
		print_message("no file can be read past the page cache here\n");
		skip();
	}
	pid = start_reader(fd);
	nanosleep(&pause_time, NULL);
	assert_true(wait_job_open(&job, 10) == 0 && wait_open(&p, job, pid) == 0);
	for (int i = 0; i < LOOKS && wait_see(p, pid, clock_mono_ns(), &got) == 0; i++) {
		disk += got.kind == WAIT_DISK;
		file += got.kind == WAIT_FILE;
		cpu += got.kind == WAIT_RUNNING || got.kind == WAIT_RUNNABLE;
		wrong += got.kind != WAIT_DISK && got.kind != WAIT_FILE &&
			 got.kind != WAIT_RUNNING && got.kind != WAIT_RUNNABLE;
		nanosleep(&pause_time, NULL);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	wait_close(p);
	wait_job_close(job);
	close(fd);
	print_message("%u disk, %u file, %u on a CPU, %u wrong\n", disk, file, cpu, wrong);
	if (disk + file + wrong < LOOKS / 10) {
		print_message("storage here is too quick to be met waiting\n");
		skip();
	}
	/* `file`: the disk was done between the look at the call and the look at the state. */
	assert_true(wrong * 50 <= disk + file + wrong);
	assert_true(disk >= 9 * file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_disk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
