/* SPDX-License-Identifier: MIT */
#include "cli/command.h"

#include "base/err.h"
#include "cli/judge.h"
#include "explain/compare.h"
#include "record/store.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

struct compare_options {
	struct common_options common;
};

/* A run, and never a process: two looks at something that goes on compare nothing. */
static int open_run(struct cli *cli, const char *word, struct judged *ret, struct err *e)
{
	char path[PATH_MAX];
	int r = store_find(word, path, sizeof(path), e);

	*ret = (struct judged){ .live = { .host = { .root = -1, .base = -1 } } };
	return r < 0 ? r : judge(cli, path, 0, ret, e);
}

static int check_different(const struct run_info *a, const struct run_info *b, struct err *e)
{
	if (!a->id[0] || strcmp(a->id, b->id) != 0)
		return 0;
	err_set(e, -EINVAL, "both are the same run, %s", a->id);
	err_hint(e, "'spotter runs' lists the runs there are; a name stands for its newest one");
	return e->code;
}

static int show(struct cli *cli, const struct judged *a, const struct judged *b, bool json,
		struct err *e)
{
	const struct compare_side side[COMPARE_SIDES] = {
		[COMPARE_A] = { &a->verdict, &a->window },
		[COMPARE_B] = { &b->verdict, &b->window },
	};
	struct comparison c;
	char why[80];
	int r = compare_runs(side, &c);

	if (r < 0)
		return err_set(e, r, "cannot compare: %s", err_name(r, why, sizeof(why)));
	if (json)
		compare_json(&c, &cli->out);
	else
		compare_text(&c, cli_columns(STDOUT_FILENO), cli->color_out, &cli->out);
	comparison_done(&c);
	return 0;
}

static int run_compare(struct cli *cli, void *options, const struct opt_rest *rest)
{
	const struct compare_options *o = options;
	struct judged a = { 0 }, b = { 0 };
	struct err e = { 0 };
	int r = open_run(cli, rest->v[0], &a, &e);

	if (r == 0) {
		r = open_run(cli, rest->v[1], &b, &e);
		if (r == 0)
			r = check_different(a.verdict.run, b.verdict.run, &e);
		if (r == 0)
			r = show(cli, &a, &b, o->common.json, &e);
		judged_done(&b);
	}
	judged_done(&a);
	return r == 0 ? EXIT_OK : cli_fail(cli, &e);
}

static const struct example examples[] = {
	{ "compare before.spot after.spot", "what the change brought, and where" },
	{ "compare train last --json", "the newest run called train against the last one" },
	{ NULL, NULL },
};

static const struct opt opts[] = {
	JSON_OPT,
	COMMON_OPTS,
	OPT_END,
};

const struct command compare_command = {
	.name = "compare",
	.group = "explain",
	.summary = "what changed between two runs, and why",
	.words = "RUN RUN",
	.description =
	    "Sets two runs side by side: how many times as fast the second (B) is as the first "
	    "(A), with an interval where their steps are known; where the time of a step went and "
	    "who used the CPU, the largest change first; which causes vanished, appeared or "
	    "changed; what the program set differently; what each used. What keeps the two from "
	    "being compared fairly (another machine, another level, no stacks, no steps, other "
	    "programs beside it) is said.\n"
	    "\n"
	    "Without steps the ledgers are compared as shares and cores, and the lengths of the "
	    "runs if both are of the same program and came to their end.\n"
	    "\n"
	    "The JSON has stable keys (\"schema\": \"spotter.compare/1\"); a value that is not "
	    "known is an absent key.",
	.examples = examples,
	.opts = opts,
	.options_size = sizeof(struct compare_options),
	.min_words = 2,
	.max_words = 2,
	.run = run_compare,
};
