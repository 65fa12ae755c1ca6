/* SPDX-License-Identifier: MIT
 *
 * launch() as a program of its own, for tests/e2e/test_launch.py: what `spotter run` does, with a
 * body that records nothing. Exit codes as `spotter run`.
 *
 *	launch_probe [options] [--] CMD ARG...
 */
#include "base/auto.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/num.h"
#include "base/opt.h"
#include "launch/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct probe {
	bool wait, threads, poll, deaf, helper, early;
	const char *say, *report;
	int64_t say_bytes, patience_ns, linger_ns, crash_ns;
	struct opt_list env;
	/* for R */
	int report_fd;
	bool stop;
	pthread_t thread;
	pid_t helper_pid;
};

static const struct opt opts[] = {
	OPT("wait", 0, OPT_FLAG, NULL, struct probe, wait, "wait for orphans"),
	OPT("env", 0, OPT_LIST, "NAME=VALUE", struct probe, env, "add to env"),
	OPT("say", 0, OPT_STRING, "TEXT", struct probe, say, "words of R"),
	OPT("say-bytes", 0, OPT_INT, "N", struct probe, say_bytes, "say N x"),
	OPT("early", 0, OPT_FLAG, NULL, struct probe, early, "say it first"),
	OPT("report", 0, OPT_STRING, "FILE", struct probe, report, "R's view"),
	OPT("patience", 0, OPT_DURATION, "T", struct probe, patience_ns, "of S"),
	OPT("linger", 0, OPT_DURATION, "T", struct probe, linger_ns, "R stays"),
	OPT("crash", 0, OPT_DURATION, "T", struct probe, crash_ns, "R aborts"),
	OPT("threads", 0, OPT_FLAG, NULL, struct probe, threads, "R has two"),
	OPT("poll", 0, OPT_FLAG, NULL, struct probe, poll, "launch_wait(1 ms)"),
	OPT("deaf", 0, OPT_FLAG, NULL, struct probe, deaf, "R never waits"),
	OPT("helper", 0, OPT_FLAG, NULL, struct probe, helper, "R has one"),
	OPT_END,
};

static void pause_ns(int64_t ns)
{
	struct timespec ts = { .tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S };

	(void)nanosleep(&ts, NULL);
}

static void *look_around(void *arg)
{
	struct probe *p = arg;

	while (!__atomic_load_n(&p->stop, __ATOMIC_ACQUIRE))
		pause_ns(NS_PER_MS);
	return NULL;
}

/* A process of R's own that launch_wait() must leave alone: no SIGCHLD at its end. */
static pid_t start_helper(void)
{
	struct {
		uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls;
	} args = { 0 };
	pid_t pid = (pid_t)syscall(435, &args, sizeof(args)); /* clone3, Linux 5.3 */

	if (pid == 0) {
		for (;;)
			pause();
	}
	return pid;
}

static void put_report(const struct probe *p, const struct launch_end *end, struct launch_run *run)
{
	char text[512];
	int n = snprintf(text, sizeof(text),
			 "status %d\norphans_left %d\ncpu_us %lld\nmaxrss_kb %ld\nreaped_us %lld\n",
			 end->status, end->orphans_left,
			 (long long)(end->usage.ru_utime.tv_sec + end->usage.ru_stime.tv_sec) *
				 1000000 +
			     end->usage.ru_utime.tv_usec + end->usage.ru_stime.tv_usec,
			 end->usage.ru_maxrss, (long long)launch_reaped_cpu_ns(run) / 1000);

	if (p->report_fd >= 0 && write(p->report_fd, text, (size_t)n) < 0)
		_exit(99);
}

static void note(const struct probe *p, const char *line)
{
	if (p->report_fd >= 0 && write(p->report_fd, line, strlen(line)) < 0)
		_exit(99);
}

static void say(struct probe *p, struct launch_run *run)
{
	char some[1000];

	memset(some, 'x', sizeof(some));
	if (p->say)
		launch_say(run, p->say, strlen(p->say));
	for (int64_t i = 0; i < p->say_bytes; i += (int64_t)sizeof(some))
		launch_say(run, some, sizeof(some));
}

static void begin(struct probe *p, struct launch_run *run)
{
	char line[64];

	p->report_fd = -1;
	if (p->report)
		p->report_fd = open(p->report, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	snprintf(line, sizeof(line), "program %d\nrecorder %d\n", (int)launch_pid(run),
		 (int)getpid());
	note(p, line);
	if (p->threads && pthread_create(&p->thread, NULL, look_around, p) != 0)
		_exit(99);
	if (p->helper)
		p->helper_pid = start_helper();
	if (p->early)
		say(p, run);
}

/* The zombie must still be there, with its counters. */
static void at_end(struct launch_run *run, void *arg)
{
	struct probe *p = arg;
	char line[64];

	snprintf(line, sizeof(line), "ended_callback %d\n",
		 kill(launch_pid(run), 0) == 0 && clock_pid_cpu_ns(launch_pid(run)) >= 0);
	note(p, line);
}

static void record(struct launch_run *run, void *arg)
{
	struct probe *p = arg;
	struct launch_end end;

	begin(p, run);
	while (p->deaf)
		pause_ns(NS_PER_S);
	if (p->crash_ns && !launch_wait(run, p->crash_ns, &end))
		abort();
	while (!launch_wait(run, p->poll ? NS_PER_MS : -1, &end))
		;
	if (p->helper_pid) {
		note(p, kill(p->helper_pid, 0) == 0 ? "helper alive\n" : "helper gone\n");
		(void)kill(p->helper_pid, SIGKILL);
		(void)waitpid(p->helper_pid, NULL, __WCLONE);
	}
	if (p->threads) {
		__atomic_store_n(&p->stop, true, __ATOMIC_RELEASE);
		pthread_join(p->thread, NULL);
	}
	put_report(p, &end, run);
	if (!p->early)
		say(p, run);
	pause_ns(p->linger_ns);
	note(p, "finished\n");
}

int main(int argc, char **argv)
{
	struct probe p = { .patience_ns = 2 * NS_PER_S };
	struct opt_rest rest;
	struct err e = { 0 };
	int recorder = 0, status = 0, error;
	char *env[ARRAY_LEN(p.env.v) + 1] = { 0 };
	struct launch l = {
		.env = env, .record = record, .ended = at_end, .arg = &p, .ret_recorder = &recorder
	};

	error = opt_parse(opts, argc - 1, argv + 1, true, &p, &rest, &e);
	if (error == 0 && rest.n == 0)
		error = err_set(&e, -EINVAL, "no command");
	if (error == 0) {
		for (size_t i = 0; i < p.env.n; i++)
			env[i] = (char *)(uintptr_t)p.env.v[i];
		l.argv = rest.v;
		l.wait_orphans = p.wait;
		l.patience_ns = p.patience_ns;
		error = launch(&l, &status, &e);
	}
	if (error < 0) {
		fprintf(stderr, "launch_probe: %s\n", e.text);
		if (e.hint[0])
			fprintf(stderr, "  %s\n", e.hint);
		return error == -ENOENT ? 127 : error == -EACCES || error == -ENOEXEC ? 126 : 125;
	}
	if (recorder)
		fprintf(stderr, "launch_probe: recorder %d\n", recorder);
	launch_exit(status);
}
