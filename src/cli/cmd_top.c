/* SPDX-License-Identifier: MIT */
#include "cli/command.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/num.h"
#include "cli/live.h"
#include "cli/nvml.h"
#include "cli/top_screen.h"
#include "cli/top_show.h"
#include "record/reader.h"
#include "record/store.h"

#include <errno.h>
#include <limits.h>
#include <unistd.h>

enum { POINTS = 4, FIRST_S = 1, LINES_EVERY_S = 5, SCREEN_EVERY_S = 1 };

struct top_options {
	struct common_options common;
	bool plain, once, ascii;
	int64_t every_ns, count, processes;
	const char *root, *nvml;
};

/* A process by number, or the process of a run that is still going. */
static int find_job(const char *word, const char *root, pid_t *ret, struct err *e)
{
	char path[PATH_MAX];
	struct record *record;
	int64_t pid;
	int r;

	if (num_parse_i64(word, &pid) && pid > 0 && pid <= INT_MAX) {
		*ret = (pid_t)pid;
		return 0;
	}
	if (root)
		return err_set(e, -EINVAL, "'%s' is not a process id", word);
	r = store_find(word, path, sizeof(path), e);
	if (r == 0)
		r = record_open(path, &record, e);
	if (r < 0)
		return r;
	*ret = (pid_t)record_run(record)->pid;
	if (record_run(record)->state != RUN_GOING) {
		r = err_set(e, -ESRCH, "the run '%s' has ended", word);
		err_hint(e, "what it used: spotter why %s", word);
	} else if (*ret <= 0) {
		r = err_set(e, -ENODATA, "the run '%s' has not named its process yet", word);
	}
	record_close(record);
	return r;
}

static int show(struct cli *cli, struct live *l, const struct top_options *o, int64_t from_ns)
{
	struct window w = live_window(l, from_ns);
	struct snapshot v;
	int r = snapshot_take(&w, l->frame.wall_ns, l->pid ? SNAPSHOT_JOB : 0, &v);

	if (r < 0)
		return r;
	if (o->common.json)
		top_put_json(&v, (size_t)o->processes, &cli->out);
	else if (o->once)
		top_put_screen(cli, &v, (size_t)o->processes, &cli->out);
	else
		top_put_line(&v, &cli->out);
	snapshot_done(&v);
	return cli_flush(cli) ? 0 : -EPIPE;
}

/* A fixture: its states are the ticks. --once shows the whole of it, else each step. */
static int walk_fixture(struct cli *cli, struct live *l, const struct top_options *o)
{
	int64_t first, before;
	int64_t left = o->count;
	int r = live_tick(l);
	bool any = false;

	first = before = l->frame.mono_ns;
	while (r == 0 && host_advance(&l->host)) {
		r = live_tick(l);
		any = true;
		if (r == 0 && !o->once)
			r = show(cli, l, o, before);
		before = l->frame.mono_ns;
		if (!o->once && o->count && --left == 0)
			return r;
	}
	if (r == 0 && (o->once || !any))
		r = show(cli, l, o, first);
	return r;
}

static int watch(struct cli *cli, struct live *l, const struct top_options *o)
{
	int64_t every = o->once ? FIRST_S * NS_PER_S : o->every_ns;
	int64_t before, next, left = o->once ? 1 : o->count;
	int r = live_tick(l);

	/* The first line comes soon, the others at their pace. */
	before = next = l->frame.mono_ns;
	next += every < FIRST_S * NS_PER_S ? every : FIRST_S * NS_PER_S;
	while (r == 0) {
		if (!live_wait(next))
			return 0;
		r = live_tick(l);
		if (r == 0)
			r = show(cli, l, o, before);
		before = l->frame.mono_ns;
		if (o->once || (o->count && --left == 0))
			return r;
		next += every;
		if (next < clock_mono_ns()) /* the machine slept, or we were stopped */
			next = clock_mono_ns() + every;
	}
	return r;
}

static int fail_top(struct cli *cli, const struct live *l, int r)
{
	struct err e = { 0 };
	char why[80];

	if (cli->write_error)
		return EXIT_FAILED; /* said at the end */
	if (r == -ESRCH) {
		cli_say(cli, "spotter: process %d has ended", l->pid);
		return EXIT_OK;
	}
	err_set(&e, r, "cannot read this machine: %s", err_name(r, why, sizeof(why)));
	return cli_fail(cli, &e);
}

/* A person at a terminal, and nothing that asks for lines. */
static bool wants_screen(const struct top_options *o)
{
	return !o->plain && !o->once && !o->common.json && !o->root && !o->count &&
	       isatty(STDOUT_FILENO) && isatty(STDIN_FILENO);
}

static int run_top(struct cli *cli, void *options, const struct opt_rest *rest)
{
	struct top_options *o = options;
	struct live_options lo = {
		.root = o->root, .hz = 1, .points = POINTS, .nvml = nvml_path(o->nvml)
	};
	struct live l = { .host = { .root = -1, .base = -1 } };
	struct err e = { 0 };
	int r;

	if (o->once && o->plain)
		return cli_usage(cli, "--once or --plain, not both");
	if (wants_screen(o)) {
		r = top_screen(
		    cli, &(struct top_screen){
			     .word = rest->n ? rest->v[0] : NULL,
			     .nvml = o->nvml,
			     .every_ns = o->every_ns ? o->every_ns : SCREEN_EVERY_S * NS_PER_S,
			     .color = cli->color_out,
			     .ascii = o->ascii,
			 });
		if (r >= 0)
			return r;
	}
	if (!o->every_ns)
		o->every_ns = LINES_EVERY_S * NS_PER_S;
	if (rest->n && find_job(rest->v[0], o->root, &lo.pid, &e) < 0)
		return cli_fail(cli, &e);
	if (live_open(&l, &lo, &e) < 0) {
		live_close(&l);
		return cli_fail(cli, &e);
	}
	r = o->root ? walk_fixture(cli, &l, o) : watch(cli, &l, o);
	r = r < 0 ? fail_top(cli, &l, r) : EXIT_OK;
	live_close(&l);
	return r;
}

static const struct example examples[] = {
	{ "top", "the machine on the screen; Enter on a process watches it" },
	{ "top 4242", "a process with its descendants and threads, and what holds it up" },
	{ "top last", "the last run again, at any moment of it" },
	{ "top --once", "one look at the machine and its busiest processes, as text" },
	{ "top --json --every 1s --count 60 > minute.jsonl", "for a program" },
	{ NULL, NULL },
};

static const struct opt opts[] = {
	OPT("once", '1', OPT_FLAG, NULL, struct top_options, once,
	    "one second, then a table of the busiest processes"),
	OPT("plain", 'p', OPT_FLAG, NULL, struct top_options, plain,
	    "a line an interval, for pipes and logs (the default where there is no terminal)"),
	OPT("every", 'e', OPT_DURATION, "TIME", struct top_options, every_ns,
	    "time between looks (default 1s on the screen, 5s for lines)", .min = 0.1,
	    .max = 86400),
	OPT("count", 'c', OPT_INT, "N", struct top_options, count, "stop after N lines", .min = 1,
	    .max = 1e9),
	OPT("processes", 'n', OPT_INT, "N", struct top_options, processes,
	    "how many processes to show (default 15)", .min = 0, .max = 1e6),
	OPT("ascii", 0, OPT_FLAG, NULL, struct top_options, ascii,
	    "only ASCII characters on the screen, as where the locale is not UTF-8"),
	NVML_OPT(struct top_options, nvml),
	OPT("root", 0, OPT_STRING, "DIR", struct top_options, root,
	    "read the machine captured in DIR ('spotter doctor --capture'), or mounted there"),
	JSON_OPT,
	COMMON_OPTS,
	OPT_END,
};

static const struct top_options defaults = { .processes = 15 };

const struct command top_command = {
	.name = "top",
	.group = "explain",
	.summary = "what this machine, or one job on it, uses now",
	.words = "[PID|RUN]",
	.description =
	    "On a terminal, a screen: the verdict in words, what is used of what is allowed, "
	    "graphs, "
	    "both ledgers, the tree of processes, the hottest functions. '?' lists the keys, 'q' "
	    "ends "
	    "it. Without a word it is about the machine; with PID about that process and its "
	    "descendants; with RUN about that run, from its record: a run that is over can be gone "
	    "through with the arrow keys.\n"
	    "\n"
	    "With --once, --plain or --json, and where there is no terminal, text: the machine and "
	    "its busiest processes; with PID, or a RUN that is still going, that process with its "
	    "descendants and threads. CPU is in cores: 1.00 is one CPU all of the time, which "
	    "'top' "
	    "and 'htop' call 100 %.\n"
	    "\n"
	    "'Waiting' is the kernel's pressure stall information: the share of time in which some "
	    "task stood still for want of a CPU, of memory or of IO. What cannot be read is left "
	    "out, never shown as 0.\n"
	    "\n"
	    "With --json each interval is one line (\"schema\": \"spotter.top/1\"), rates a "
	    "second, "
	    "sizes in bytes, shares 0..1.",
	.examples = examples,
	.opts = opts,
	.options_size = sizeof(struct top_options),
	.defaults = &defaults,
	.max_words = 1,
	.run = run_top,
};
