/* SPDX-License-Identifier: MIT */
#include "cli/command.h"

#include "base/auto.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/table.h"
#include "explain/cause.h"

#include <errno.h>
#include <string.h>

struct causes_options {
	struct common_options common;
};

static void put_json_cause(struct json *j, const struct cause *c)
{
	char level[4];

	snprintf(level, sizeof(level), "L%d", c->level & 3);
	json_begin(j, '{');
	json_key_str(j, "id", c->id);
	json_key_str(j, "family", c->family);
	json_key_str(j, "level", level);
	json_key_str(j, "text", c->text);
	json_key_bool(j, "implemented", cause_implemented(c));
	json_end(j, '}');
}

static void put_json(const struct cause *one, struct buf *out)
{
	struct json j;

	json_init(&j, out, true);
	json_begin(&j, '{');
	json_key_str(&j, "schema", "spotter.causes/1");
	json_key_begin(&j, "causes", '[');
	for (const struct cause *c = causes; c->id; c++)
		if (!one || c == one)
			put_json_cause(&j, c);
	json_end(&j, ']');
	json_end(&j, '}');
	buf_char(out, '\n');
}

static void put_table(const struct cli *cli, struct buf *out)
{
	auto_done(table) struct table t = { .bold = cli->color_out };
	size_t later = 0;

	table_column(&t, "CAUSE", false);
	table_column(&t, "FAMILY", false);
	table_column(&t, "LEVEL", false);
	table_column(&t, "WHAT IT IS", false);
	for (const struct cause *c = causes; c->id; c++) {
		if (!cause_implemented(c)) {
			later++;
			continue;
		}
		table_cell(&t, c->id);
		table_cell(&t, c->family);
		table_cellf(&t, "L%d", c->level);
		table_cell(&t, c->text);
	}
	table_print(&t, out);
	if (later)
		cli_say(cli,
			"%zu more are known by name and not yet diagnosed by this version; "
			"--json lists them",
			later);
}

static void put_one(const struct cli *cli, const struct cause *c, struct buf *out)
{
	static const char *const needs[] = {
		"L0: control group and machine figures",
		"L1: /proc of the job's processes and threads",
		"L2: stacks and waits of its threads",
		"L3: stacks, waits and sampled native code",
	};

	buf_printf(out, "%s%s%s\n  %s\n", cli_ink(cli->color_out, INK_BOLD), c->id,
		   cli_ink(cli->color_out, INK_PLAIN), c->text);
	buf_printf(out, "  family      %s\n", c->family);
	buf_printf(out, "  needs       %s\n", needs[c->level & 3]);
	buf_printf(out, "  diagnosed   %s\n",
		   cause_implemented(c) ? "yes" : "not by this version: nothing is said about it");
}

static int unknown_cause(const struct cli *cli, const char *id)
{
	const char *best = NULL;
	unsigned best_distance = 5;
	struct err e = { 0 };

	for (const struct cause *c = causes; c->id; c++) {
		unsigned d = text_distance(c->id, id);

		if (d >= best_distance)
			continue;
		best_distance = d;
		best = c->id;
	}
	err_set(&e, -ENOENT, "no cause '%s'", id);
	if (best)
		err_hint(&e, "did you mean '%s'?", best);
	else
		err_hint(&e, "'spotter causes' lists them");
	return cli_fail(cli, &e);
}

static int run_causes(struct cli *cli, void *options, const struct opt_rest *rest)
{
	const struct causes_options *o = options;
	const struct cause *one = rest->n ? cause_find(rest->v[0]) : NULL;

	if (rest->n && !one)
		return unknown_cause(cli, rest->v[0]);
	if (o->common.json)
		put_json(one, &cli->out);
	else if (one)
		put_one(cli, one, &cli->out);
	else
		put_table(cli, &cli->out);
	return EXIT_OK;
}

static const struct example examples[] = {
	{ "causes", "what Spotter can find out" },
	{ "causes cpu_quota", "one of them" },
	{ NULL, NULL },
};

static const struct opt opts[] = {
	JSON_OPT,
	COMMON_OPTS,
	OPT_END,
};

const struct command causes_command = {
	.name = "causes",
	.group = "about",
	.summary = "what Spotter can diagnose",
	.words = "[CAUSE]",
	.description =
	    "The catalogue of causes a verdict may name. Their ids are stable: they stand in "
	    "records, in the JSON of 'spotter why' and in the documentation. The level says what "
	    "must be readable to tell ('spotter doctor' says what is, here).",
	.examples = examples,
	.opts = opts,
	.options_size = sizeof(struct causes_options),
	.max_words = 1,
	.run = run_causes,
};
