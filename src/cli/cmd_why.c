/* SPDX-License-Identifier: MIT */
#include "cli/command.h"

#include "base/clock.h"
#include "base/err.h"
#include "cli/judge.h"

#include <unistd.h>

struct why_options {
	struct common_options common;
	int64_t duration_ns;
	struct judge_part part;
	bool facts;
};

static int run_why(struct cli *cli, void *options, const struct opt_rest *rest)
{
	const struct why_options *o = options;
	struct render_style style = { .color = cli->color_out,
				      .width = cli_columns(STDOUT_FILENO) };
	struct judged j;
	struct err e = { 0 };
	int r = judge_part(cli, rest->n ? rest->v[0] : NULL, o->duration_ns, o->part, &j, &e);

	if (r == 0 && o->facts && o->common.json)
		render_facts_json(&j.verdict, &cli->out);
	else if (r == 0 && o->facts)
		render_facts(&j.verdict, &cli->out);
	else if (r == 0 && o->common.json)
		render_json(&j.verdict, &cli->out);
	else if (r == 0)
		render_text(&j.verdict, &style, &cli->out);
	judged_done(&j);
	return r == 0 ? EXIT_OK : cli_fail(cli, &e);
}

static const struct example examples[] = {
	{ "why", "the last run" },
	{ "why train.py --json", "the newest run of that name, for a program" },
	{ "why --from 10m --to 20m", "what held it back in that part of the run" },
	{ "why --facts", "every figure the rules were told, or why it is not known" },
	{ "why 4242 --for 30s", "a process that runs now, without recording it" },
	{ NULL, NULL },
};

static const struct opt opts[] = {
	OPT("for", 0, OPT_DURATION, "TIME", struct why_options, duration_ns,
	    "how long to look at a process that runs now (default 5s)", .min = 0.2, .max = 3600),
	OPT("from", 0, OPT_DURATION, "TIME", struct why_options, part.from_ns,
	    "of a run, only what came later than this after its begin", .min = 0, .max = 1e8),
	OPT("to", 0, OPT_DURATION, "TIME", struct why_options, part.to_ns,
	    "of a run, only what came earlier than this after its begin", .min = 0.2, .max = 1e8),
	OPT("facts", 0, OPT_FLAG, NULL, struct why_options, facts,
	    "every figure the rules were told, with its interval, or why it is not known"),
	JSON_OPT,
	COMMON_OPTS,
	OPT_END,
};

static const struct why_options defaults = { .duration_ns = 5 * NS_PER_S };

const struct command why_command = {
	.name = "why",
	.group = "explain",
	.summary = "what a run used, and what held it back",
	.words = "[RUN|PID]",
	.description =
	    "Says what the job used (CPU as cores of the cores it may use, memory, disks), who "
	    "used "
	    "it, and what slowed it down, each finding with its evidence, what to change and what "
	    "that gains. What could not be told is listed too.\n"
	    "\n"
	    "A number that is no run is taken as a process: it and its descendants are looked at "
	    "for a few seconds and explained. Nothing is recorded then, and the process is left as "
	    "it is.\n"
	    "\n"
	    "The JSON has stable keys (\"schema\": \"spotter.verdict/1\"): shares are 0..1, times "
	    "seconds, sizes bytes; a value that is not known is an absent key.",
	.examples = examples,
	.opts = opts,
	.options_size = sizeof(struct why_options),
	.defaults = &defaults,
	.max_words = 1,
	.run = run_why,
};
