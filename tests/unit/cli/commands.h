/* SPDX-License-Identifier: MIT
 *
 * A small program: one command with every kind of option and odd texts, one that stops at the first
 * word, one that is hidden.
 */
#ifndef SPOTTER_TESTS_CLI_COMMANDS_H
#define SPOTTER_TESTS_CLI_COMMANDS_H

#include "cli/command.h"

struct cook_options {
	struct common_options common;
	const char *sauce, *out;
	int64_t minutes;
	bool quick;
};

struct seen {
	int runs;
	struct cook_options cook;
	char sauce[16]; /* words of the command line are gone afterwards */
	int n_words;
	char words[8][32];
};

/* What the last command saw: the tests' own memory, since a command has no other way to tell. */
extern struct seen seen;

static inline int cook(struct cli *cli, void *options, const struct opt_rest *rest)
{
	seen = (struct seen){ .runs = seen.runs + 1,
			      .cook = *(struct cook_options *)options,
			      .n_words = rest->n };
	snprintf(seen.sauce, sizeof(seen.sauce), "%s", seen.cook.sauce ? seen.cook.sauce : "");
	for (int i = 0; i < rest->n && i < 8; i++)
		snprintf(seen.words[i], sizeof(seen.words[i]), "%s", rest->v[i]);
	buf_str(&cli->out, "cooked\n");
	return EXIT_OK;
}

static const struct opt cook_opts[] = {
	OPT("sauce", 's', OPT_STRING, "NAME", struct cook_options, sauce,
	    "which sauce: don't be shy", .choices = "red|green"),
	OPT("out", 'o', OPT_STRING, "FILE", struct cook_options, out,
	    "where the plate goes; a text that is long enough to need a second line, and even a "
	    "third one, because it goes on and on"),
	OPT("minutes", 0, OPT_INT, "N", struct cook_options, minutes, "how long [1:60]", .min = 1,
	    .max = 60),
	OPT("a-very-long-option-name-here", 0, OPT_FLAG, NULL, struct cook_options, quick,
	    "in a hurry"),
	OPT("salt", 0, OPT_FLAG, NULL, struct cook_options, quick, "no need to know",
	    .hidden = true),
	JSON_OPT,
	COMMON_OPTS,
	OPT_END,
};

static const struct opt eat_opts[] = { COMMON_OPTS, OPT_END };

static const struct example cook_examples[] = {
	{ "cook --sauce red", "the usual" },
	{ "cook -- .dots 'quotes' \\back", "odd characters" },
	{ NULL, NULL },
};

static const struct cook_options cook_defaults = { .minutes = 10 };

static const struct command cook_command = {
	.name = "cook",
	.group = "kitchen",
	.summary = "make a meal - well done",
	.words = "[RUN]",
	.description =
	    "First paragraph, long enough that it will not fit on a single line of eighty "
	    "columns.\n\n  verbatim   line\n  .second\n\n'Last' one.\n.SH is text",
	.examples = cook_examples,
	.opts = cook_opts,
	.options_size = sizeof(struct cook_options),
	.defaults = &cook_defaults,
	.max_words = 1,
	.run = cook,
};

static const struct command eat_command = {
	.name = "eat",
	.group = "table",
	.summary = "run a program",
	.words = "[--] CMD [ARG...]",
	.description = "Eats.",
	.opts = eat_opts,
	.options_size = sizeof(struct cook_options),
	.min_words = 1,
	.max_words = -1,
	.stop_at_word = true,
	.usage_status = 125,
	.run = cook,
};

static const struct command wash_command = {
	.name = "wash",
	.group = "table",
	.summary = "not shown",
	.words = "",
	.description = "Washes.",
	.opts = eat_opts,
	.options_size = sizeof(struct cook_options),
	.hidden = true,
	.run = cook,
};

static const struct command *const test_commands[] = { &cook_command, &eat_command, &wash_command,
						       NULL };

#endif
