/* SPDX-License-Identifier: MIT
 *
 * The verdict without a limit, and behind it what it rests on: who ran, what happened, what could
 * not be read.
 */
#include "cli/command.h"

#include "base/clock.h"
#include "base/err.h"
#include "cli/judge.h"
#include "cli/report_file.h"
#include "cli/report_ledger.h"
#include "cli/report_steps.h"
#include "cli/report_tables.h"
#include "record/store.h"

#include <limits.h>
#include <unistd.h>

struct report_options {
	struct common_options common;
	int64_t duration_ns;
	int64_t step; /* -1: all of it */
	struct report_paths paths;
	bool quiet;
};

static void put_text(struct cli *cli, const struct judged *j)
{
	struct render_style style = { .color = cli->color_out,
				      .width = cli_columns(STDOUT_FILENO),
				      .no_tables = true };

	render_text(&j->verdict, &style, &cli->out);
	report_steps(&j->window, &j->verdict.steps, cli->color_out, &cli->out);
	report_time(&j->verdict, cli->color_out, &cli->out);
	report_cpu(&j->verdict, cli->color_out, &cli->out);
	report_tables(cli, &j->window, &j->verdict.usage);
}

/* The files first: nobody waits for a verdict that cannot be written. */
static int to_files(struct cli *cli, const struct report_options *o, const char *word,
		    struct err *e)
{
	struct report_files files = { .html = { .fd = -1 }, .svg = { .fd = -1 } };
	char record[PATH_MAX] = "";
	struct err not_found = { 0 };
	struct judged j;
	int r;

	if (store_find(word, record, sizeof(record), &not_found) < 0)
		record[0] = '\0';
	r = report_files_open(&files, &o->paths, record, e);
	if (r == 0) {
		r = judge(cli, word, o->duration_ns, &j, e);
		if (r == 0)
			r = report_files_write(cli, &files, &o->paths, &j, e);
		judged_done(&j);
	}
	report_files_done(&files);
	return r;
}

static int run_report(struct cli *cli, void *options, const struct opt_rest *rest)
{
	const struct report_options *o = options;
	const char *word = rest->n ? rest->v[0] : NULL;
	struct err e = { 0 };
	struct judged j;
	int r;

	cli->quiet = o->quiet;
	if (o->paths.html || o->paths.svg) {
		if (o->common.json || o->step >= 0)
			return cli_usage(cli, "--html and --svg are the whole story, in a file; "
					      "they do not go with --json and --step");
		r = to_files(cli, o, word, &e);
		return r == 0 ? EXIT_OK : cli_fail(cli, &e);
	}
	r = judge(cli, word, o->duration_ns, &j, &e);
	if (r == 0 && o->step >= 0)
		r = report_step(cli, &j.window, &j.verdict.steps, (uint64_t)o->step, o->common.json,
				&e);
	else if (r == 0 && o->common.json)
		render_json(&j.verdict, &cli->out);
	else if (r == 0)
		put_text(cli, &j);
	judged_done(&j);
	return r == 0 ? EXIT_OK : cli_fail(cli, &e);
}

static const struct example examples[] = {
	{ "report", "the last run, the whole story" },
	{ "report train.py | less", "another one" },
	{ "report --html run.html", "a page to look at, to send and to keep" },
	{ "report --svg run.svg", "timeline and ledgers as a picture" },
	{ "report --step 412", "what happened in one step" },
	{ NULL, NULL },
};

static const struct opt opts[] = {
	OPT("for", 0, OPT_DURATION, "TIME", struct report_options, duration_ns,
	    "how long to look at a process that runs now (default 5s)", .min = 0.2, .max = 3600),
	OPT("step", 0, OPT_INT, "N", struct report_options, step,
	    "only step N: its time, data wait and loss, what its thread did, CPU, memory and GPUs "
	    "during it, and what differed from the other steps",
	    .min = 0, .max = 9e15),
	OPT("html", 0, OPT_STRING, "FILE", struct report_options, paths.html,
	    "write it as one HTML file that needs nothing else: verdict, ledgers, timeline, flame "
	    "graph; - is standard output"),
	OPT("svg", 0, OPT_STRING, "FILE", struct report_options, paths.svg,
	    "write ledgers and timeline as a picture"),
	OPT("force", 'f', OPT_FLAG, NULL, struct report_options, paths.force,
	    "overwrite FILE when it exists"),
	OPT("quiet", 'q', OPT_FLAG, NULL, struct report_options, quiet,
	    "no line of progress on a terminal"),
	JSON_OPT,
	COMMON_OPTS,
	OPT_END,
};

static const struct report_options defaults = { .duration_ns = 5 * NS_PER_S, .step = -1 };

const struct command report_command = {
	.name = "report",
	.group = "explain",
	.summary = "the whole story of a run",
	.words = "[RUN|PID]",
	.description =
	    "The verdict of 'spotter why', and what it rests on: ranks, loss and the slowest steps "
	    "with what differed in them, where the time of the critical thread went, who used the "
	    "CPU and in which functions, the processes of the job by the "
	    "CPU time they used, GPUs and who was on them, what happened when, and what could not "
	    "be read on this machine.\n\n"
	    "--html writes all of it as a page that opens in any browser, with no network; it "
	    "stays "
	    "under 500 kB however long the run was.",
	.examples = examples,
	.opts = opts,
	.options_size = sizeof(struct report_options),
	.defaults = &defaults,
	.max_words = 1,
	.run = run_report,
};
