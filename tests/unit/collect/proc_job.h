/* SPDX-License-Identifier: MIT
 *
 * Programs for the process collector to watch: each is a function that runs in a child of ours. No
 * step depends on time: job and test hand a token to and fro. We are the reaper, as the recorder
 * is.
 */
#ifndef SPOTTER_TESTS_PROC_JOB_H
#define SPOTTER_TESTS_PROC_JOB_H

#include "proc_rig.h"

#include "base/clock.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* A process of the job and the two pipes to it. */
struct job {
	pid_t pid;
	int in, out;
};

static inline void burn(int64_t ns)
{
	int64_t end = clock_self_cpu_ns() + ns;

	while (clock_self_cpu_ns() < end)
		;
}

static inline void send(int fd)
{
	if (write(fd, "x", 1) != 1)
		_exit(9);
}

static inline void wait_for(int fd)
{
	char c;

	if (read(fd, &c, 1) != 1)
		_exit(8);
}

static inline struct job job_start(void (*body)(int in, int out))
{
	struct job j;
	int to[2], from[2];

	assert_int_equal(pipe2(to, O_CLOEXEC), 0);
	assert_int_equal(pipe2(from, O_CLOEXEC), 0);
	j.pid = fork();
	assert_true(j.pid >= 0);
	if (j.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(to[1]);
		close(from[0]);
		body(to[0], from[1]);
		_exit(0);
	}
	close(to[0]);
	close(from[1]);
	j.in = from[0];
	j.out = to[1];
	return j;
}

/* Waits until it has done its part. */
static inline void job_done_part(const struct job *j)
{
	char c;

	assert_int_equal(read(j->in, &c, 1), 1);
}

static inline void job_go_on(const struct job *j)
{
	assert_int_equal(write(j->out, "x", 1), 1);
}

static inline void job_end(struct job *j)
{
	int status;

	close(j->out);
	close(j->in);
	assert_int_equal(waitpid(j->pid, &status, 0), j->pid);
	/* Orphans that fell to us. */
	while (waitpid(-1, &status, 0) > 0)
		;
}

static inline int64_t children_ns(void)
{
	struct rusage u;

	getrusage(RUSAGE_CHILDREN, &u);
	return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * NS_PER_S +
	       (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000ll;
}

static inline int set_reaper(void **state)
{
	(void)state;
	return prctl(PR_SET_CHILD_SUBREAPER, 1);
}

#endif
