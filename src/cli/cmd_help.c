/* SPDX-License-Identifier: MIT */
#include "cli/command.h"

#include <string.h>

struct help_options {
	struct common_options common;
	bool man;
};

static int run_help(struct cli *cli, void *options, const struct opt_rest *rest)
{
	const struct help_options *o = options;
	const struct command *c = NULL;

	if (rest->n) {
		c = cli_find(cli, rest->v[0]);
		if (!c)
			return cli_unknown(cli, rest->v[0]);
	}
	if (o->man && c)
		man_page(c, &cli->out);
	else if (o->man)
		man_overview(cli, &cli->out);
	else if (c)
		help_page(c, cli->color_out, &cli->out);
	else
		help_overview(cli, &cli->out);
	return EXIT_OK;
}

static const struct example examples[] = {
	{ "help", "all commands" },
	{ "help why", "one command, with examples and all options" },
	{ NULL, NULL },
};

static const struct opt opts[] = {
	OPT("man", 0, OPT_FLAG, NULL, struct help_options, man, "print the man page in roff",
	    .hidden = true),
	COMMON_OPTS,
	OPT_END,
};

const struct command help_command = {
	.name = "help",
	.group = "about",
	.summary = "all commands, or one of them with examples",
	.words = "[COMMAND]",
	.description = "Shows all commands, or what COMMAND does, with examples and its options. "
		       "'spotter COMMAND --help' shows the same.",
	.examples = examples,
	.opts = opts,
	.options_size = sizeof(struct help_options),
	.max_words = 1,
	.run = run_help,
};
