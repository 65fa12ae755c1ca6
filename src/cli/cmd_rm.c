/* SPDX-License-Identifier: MIT */
#include "cli/command.h"

#include "base/err.h"
#include "record/store.h"

#include <limits.h>

struct rm_options {
	struct common_options common;
	bool quiet;
};

static int run_rm(struct cli *cli, void *options, const struct opt_rest *rest)
{
	const struct rm_options *o = options;
	int status = EXIT_OK;

	for (int i = 0; i < rest->n; i++) {
		char path[PATH_MAX];
		struct err e = { 0 };

		if (store_find(rest->v[i], path, sizeof(path), &e) < 0 ||
		    store_remove(path, &e) < 0) {
			status = cli_fail(cli, &e);
			continue; /* one that is gone must not save the others */
		}
		if (!o->quiet)
			cli_say(cli, "removed %s", path);
	}
	return status;
}

static const struct example examples[] = {
	{ "rm 20261115-211209-4f3a", "one run, by its id" },
	{ "rm last", "the one just made" },
	{ NULL, NULL },
};

static const struct opt opts[] = {
	OPT("quiet", 'q', OPT_FLAG, NULL, struct rm_options, quiet, "do not say what was removed"),
	COMMON_OPTS,
	OPT_END,
};

const struct command rm_command = {
	.name = "rm",
	.group = "data",
	.summary = "remove runs",
	.words = "RUN...",
	.description =
	    "Removes the record of each RUN. One that is still going is left alone. To keep "
	    "the folder of runs under a size instead, see 'spotter runs --gc'.",
	.examples = examples,
	.opts = opts,
	.options_size = sizeof(struct rm_options),
	.min_words = 1,
	.max_words = -1,
	.run = run_rm,
};
