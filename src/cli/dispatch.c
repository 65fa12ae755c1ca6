/* SPDX-License-Identifier: MIT
 *
 * From the words of the command line to the command that runs.
 */
#include "cli/command.h"

#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"

#include <errno.h>
#include <unistd.h>

struct global_options {
	struct common_options common;
	bool version;
};

static const struct opt global_opts[] = {
	OPT("version", 'V', OPT_FLAG, NULL, struct global_options, version, "show the version"),
	COMMON_OPTS,
	OPT_END,
};

const struct command *cli_find(const struct cli *cli, const char *name)
{
	for (const struct command *const *c = cli->commands; *c; c++)
		if (strcmp((*c)->name, name) == 0)
			return *c;
	return NULL;
}

int cli_unknown(const struct cli *cli, const char *name)
{
	const struct command *best = NULL;
	unsigned best_distance = 3;
	struct err e = { 0 };

	for (const struct command *const *c = cli->commands; *c; c++) {
		unsigned d = (*c)->hidden ? 99 : text_distance((*c)->name, name);

		if (d >= best_distance)
			continue;
		best_distance = d;
		best = *c;
	}
	err_set(&e, -EINVAL, "unknown command '%s'", name);
	if (best)
		err_hint(&e, "did you mean 'spotter %s'?", best->name);
	else
		err_hint(&e, "'spotter help' lists the commands");
	return cli_misuse(cli, &e);
}

static void use_color(struct cli *cli, const char *flag)
{
	cli->color_out = cli_color(flag, STDOUT_FILENO);
	cli->color_err = cli_color(flag, STDERR_FILENO);
}

/* "--help" among its own options, wherever the parser would have met it: a user who asks for help
 * gets it even when the rest of the line is wrong. */
static bool asks_for_help(const struct command *c, int argc, char **argv)
{
	for (int i = 0; i < argc; i++) {
		if (strcmp(argv[i], "--") == 0 || (c->stop_at_word && argv[i][0] != '-'))
			return false;
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			return true;
	}
	return false;
}

static int show_help(struct cli *cli, const struct command *c)
{
	help_page(c, cli->color_out, &cli->out);
	return EXIT_OK;
}

static int run_command(struct cli *cli, const struct command *c, int argc, char **argv)
{
	auto_free void *options = calloc(1, c->options_size + 1);
	const struct common_options *common;
	struct opt_rest rest = { 0 };
	struct err e = { 0 };

	cli->command = c;
	if (!options)
		return cli_fail(cli, &(struct err){ .code = -ENOMEM });
	if (c->defaults)
		memcpy(options, c->defaults, c->options_size);
	if (asks_for_help(c, argc, argv))
		return show_help(cli, c);
	if (opt_parse(c->opts, argc, argv, c->stop_at_word, options, &rest, &e) < 0)
		return cli_misuse(cli, &e);
	common = options;
	if (common->color)
		use_color(cli, common->color);
	if (common->help)
		return show_help(cli, c);
	if (rest.n < c->min_words)
		return cli_usage(cli, "'%s' needs %s", c->name, c->words);
	if (c->max_words >= 0 && rest.n > c->max_words)
		return cli_usage(cli, "'%s': unexpected '%s'", c->name, rest.v[c->max_words]);
	return c->run(cli, options, &rest);
}

int cli_main(struct cli *cli, int argc, char **argv)
{
	struct global_options o = { 0 };
	struct opt_rest rest;
	struct err e = { 0 };
	const struct command *c;

	use_color(cli, NULL);
	if (opt_parse(global_opts, argc, argv, true, &o, &rest, &e) < 0) {
		err_hint(&e, "options of a command stand behind it: spotter COMMAND [OPTION...]");
		return cli_misuse(cli, &e);
	}
	use_color(cli, o.common.color);
	if (o.version) {
		buf_printf(&cli->out, "spotter %s\n", SPOTTER_VERSION);
		return EXIT_OK;
	}
	if (o.common.help) {
		help_overview(cli, &cli->out);
		return EXIT_OK;
	}
	if (!rest.n) {
		err_set(&e, -EINVAL, "no command given");
		err_hint(&e, "try 'spotter run -- python train.py', or 'spotter help'");
		return cli_misuse(cli, &e);
	}
	c = cli_find(cli, rest.v[0]);
	if (!c)
		return cli_unknown(cli, rest.v[0]);
	return run_command(cli, c, rest.n - 1, rest.v + 1);
}
