/* SPDX-License-Identifier: MIT */
#include "cli/command.h"

#include "base/err.h"
#include "explain/cause.h"
#include "model/metric.h"
#include "record/store.h"

#include <string.h>

struct completion_options {
	struct common_options common;
	const char *list;
};

/* bash expands the words it completes from: a run called '$(date)' would be run. And a name with a
 * blank would be two words. Such runs have an id. */
static bool is_plain_word(const char *s)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "._+=@:,/-";

	return *s && *s != '-' && s[strspn(s, plain)] == '\0';
}

static void list_runs(struct cli *cli)
{
	struct store_list l = { 0 };
	struct err e = { 0 };

	buf_str(&cli->out, "last\n");
	if (store_list(&l, &e) < 0)
		return; /* a completion has nobody to complain to */
	for (size_t i = l.rows.n; i > 0; i--) {
		const struct store_entry *r = &l.rows.v[i - 1];

		if (r->problem[0])
			continue;
		buf_printf(&cli->out, "%s\n", r->id);
		if (is_plain_word(r->name))
			buf_printf(&cli->out, "%s\n", r->name);
	}
	store_list_done(&l);
}

static void list_words(struct cli *cli, const char *what)
{
	if (strcmp(what, "runs") == 0)
		list_runs(cli);
	if (strcmp(what, "metrics") == 0)
		for (int i = 1; i < METRICS; i++)
			buf_printf(&cli->out, "%s\n", metrics[i].name);
	if (strcmp(what, "causes") == 0)
		for (const struct cause *c = causes; c->id; c++)
			buf_printf(&cli->out, "%s\n", c->id);
}

static int run_completion(struct cli *cli, void *options, const struct opt_rest *rest)
{
	const struct completion_options *o = options;
	static const struct {
		const char *name;
		void (*write)(const struct cli *cli, struct buf *out);
	} shells[] = { { "bash", complete_bash },
		       { "zsh", complete_zsh },
		       { "fish", complete_fish } };

	if (o->list) {
		list_words(cli, o->list);
		return EXIT_OK;
	}
	for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++) {
		if (!rest->n || strcmp(shells[i].name, rest->v[0]) != 0)
			continue;
		shells[i].write(cli, &cli->out);
		return EXIT_OK;
	}
	return rest->n ? cli_usage(cli, "no completions for '%s'", rest->v[0])
		       : cli_usage(cli, "which shell: bash, zsh or fish?");
}

static const struct example examples[] = {
	{ "completion bash > ~/.local/share/bash-completion/completions/spotter",
	  "for new shells of this user" },
	{ "completion zsh > \"${fpath[1]}/_spotter\"", "the same for zsh" },
	{ "completion fish > ~/.config/fish/completions/spotter.fish", "the same for fish" },
	{ NULL, NULL },
};

static const struct opt opts[] = {
	OPT("list", 0, OPT_STRING, "WHAT", struct completion_options, list,
	    "words for a completion, one a line", .choices = "runs|metrics|causes", .hidden = true),
	COMMON_OPTS,
	OPT_END,
};

const struct command completion_command = {
	.name = "completion",
	.group = "about",
	.summary = "completions for your shell",
	.words = "bash|zsh|fish",
	.description =
	    "Prints a script that lets the shell complete Spotter's commands, options, runs "
	    "and metrics. 'make install' puts all three where the shells look for them.",
	.examples = examples,
	.opts = opts,
	.options_size = sizeof(struct completion_options),
	.max_words = 1,
	.run = run_completion,
};
