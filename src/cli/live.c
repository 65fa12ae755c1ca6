/* SPDX-License-Identifier: MIT */
#include "cli/live.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/scan.h"
#include "base/text.h"
#include "collect/proc_parse.h"
#include "record/store.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* When the process started, in ticks after boot; -1 when there is none, or only what is left of it
 * until its parent takes note. With the number it tells one process from the next of that number. */
static int64_t start_of(const struct host *h, pid_t pid)
{
	char path[48], text[1024];
	struct proc_stat st;
	uint64_t tgid;
	ssize_t n;

	snprintf(path, sizeof(path), "proc/%d/stat", pid);
	n = io_read(h->root, path, text, sizeof(text));
	if (n <= 0 || !proc_stat_parse(text, (size_t)n, &st) || strchr("ZX", st.head.state))
		return -1;
	/* /proc also answers for the number of a thread. */
	snprintf(path, sizeof(path), "proc/%d/status", pid);
	n = io_read(h->root, path, text, sizeof(text));
	if (n > 0 && scan_key_u64(scan_of(text, (size_t)n), "Tgid", &tgid) && tgid != (uint64_t)pid)
		return -1;
	return (int64_t)st.start;
}

/* Arguments of the process as the run's own; its comm where there are none (kernel threads). */
static int read_argv(struct live *l)
{
	char path[48], text[4096];
	char *argv[128];
	size_t n_argv = 0;
	ssize_t n;

	snprintf(path, sizeof(path), "proc/%d/cmdline", l->pid);
	n = io_read(l->host.root, path, text, sizeof(text));
	if (n <= 0) {
		snprintf(path, sizeof(path), "proc/%d/comm", l->pid);
		n = io_read(l->host.root, path, text, sizeof(text));
		if (n > 0)
			text[strcspn(text, "\n")] = '\0';
	}
	for (ssize_t at = 0; at < n && n_argv + 1 < sizeof(argv) / sizeof(argv[0]);) {
		argv[n_argv++] = text + at;
		at += (ssize_t)strlen(text + at) + 1;
	}
	argv[n_argv] = NULL;
	if (n_argv)
		store_name_from(argv, l->run.name, sizeof(l->run.name));
	return run_info_set_argv(&l->run, argv);
}

/* A look of some seconds: five per cent of a core is not felt. */
static const double stacks_budget_of_a_look = 0.05;

static int describe(struct live *l, double hz, struct err *e)
{
	int64_t boot;

	machine_read(&l->host, &l->run.machine);
	host_clock(&l->host, &l->run.started_mono_ns, &l->run.started_wall_ns, &boot);
	text_copy(l->run.version, sizeof(l->run.version), SPOTTER_VERSION);
	l->run.hz = hz;
	l->run.level = 1; /* /proc only */
	l->run.attached = true;
	l->run.pid = l->pid;
	l->run.state = RUN_GOING;
	l->run.rusage_cpu_ns = l->run.rusage_maxrss_bytes = -1;
	if (!l->pid)
		return 0;
	return read_argv(l) < 0 ? err_set(e, -ENOMEM, "out of memory") : 0;
}

static void block_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGHUP);
	sigprocmask(SIG_BLOCK, set, NULL);
}

void live_hold_signals(void)
{
	sigset_t set;

	block_signals(&set);
}

int live_open(struct live *l, const struct live_options *o, struct err *e)
{
	struct sampler_options so = { .job = { .root = o->pid },
				      .only = o->only,
				      .nvml = o->nvml,
				      .stacks_hz = o->stacks_hz,
				      .stacks_budget = o->stacks_budget > 0
							   ? o->stacks_budget
							   : stacks_budget_of_a_look };
	sigset_t set;
	int r;

	*l = (struct live){ .host = { .root = -1, .base = -1 }, .pid = o->pid };
	r = host_open(&l->host, o->root, e);
	if (r < 0)
		return r;
	l->start = o->pid ? start_of(&l->host, o->pid) : 0;
	if (l->start < 0)
		return err_set(e, -ESRCH, "there is no process %d", o->pid);
	r = describe(l, o->hz, e);
	if (r == 0)
		r = sampler_open(&l->host, &so, &l->sampler, e);
	if (r < 0)
		return r;
	l->history = history_new(&l->run, o->points);
	if (!l->history)
		return err_set(e, -ENOMEM, "out of memory");
	block_signals(&set);
	return 0;
}

int live_tick(struct live *l)
{
	int r;

	if (l->pid && start_of(&l->host, l->pid) != l->start)
		return -ESRCH;
	r = sampler_tick(l->sampler, &l->frame);
	return r < 0 ? r : history_frame(l->history, &l->frame);
}

void live_last(struct live *l)
{
	sampler_all_due(l->sampler);
	(void)live_tick(l);
	history_run(l->history)->level = sampler_level(l->sampler);
}

bool live_wait(int64_t until_ns)
{
	sigset_t set;

	block_signals(&set);
	for (;;) {
		int64_t left = until_ns - clock_mono_ns();
		struct timespec t = { .tv_sec = left > 0 ? left / NS_PER_S : 0,
				      .tv_nsec = left > 0 ? left % NS_PER_S : 0 };

		if (sigtimedwait(&set, NULL, &t) > 0)
			return false;
		if (left <= 0)
			return true;
	}
}

struct window live_window(struct live *l, int64_t from_ns)
{
	history_run(l->history)->ended_mono_ns = history_last_ns(l->history);
	return history_window(l->history, from_ns);
}

void live_close(struct live *l)
{
	sampler_close(l->sampler);
	history_free(l->history);
	frame_done(&l->frame);
	run_info_done(&l->run);
	host_close(&l->host);
}
