/* SPDX-License-Identifier: MIT */
#include "cli/command.h"

#include "base/auto.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/table.h"
#include "explain/fact.h"
#include "model/metric.h"

#include <errno.h>
#include <string.h>

struct metrics_options {
	struct common_options common;
};

static void put_json_metric(struct json *j, const struct metric *m)
{
	json_begin(j, '{');
	json_key_str(j, "name", m->name);
	json_key_str(j, "unit", metric_unit_name(m->unit));
	json_key_str(j, "kind", metric_kind_name(m->kind));
	json_key_str(j, "entity", entity_kind_name(m->entity));
	json_key_str(j, "help", m->help);
	if (m->prometheus[0])
		json_key_str(j, "prometheus", m->prometheus);
	if (m->opentelemetry[0])
		json_key_str(j, "opentelemetry", m->opentelemetry);
	json_end(j, '}');
}

/* The metric itself, or all of a family: "cpu" means cpu.user, cpu.nice... */
static bool is_wanted(const struct metric *m, const char *name)
{
	size_t n = name ? strlen(name) : 0;

	return !n || (strncmp(m->name, name, n) == 0 &&
		      (!m->name[n] || m->name[n] == '.' || name[n - 1] == '.'));
}

static void put_json(const char *name, struct buf *out)
{
	struct json j;

	json_init(&j, out, true);
	json_begin(&j, '{');
	json_key_str(&j, "schema", "spotter.metrics/1");
	json_key_begin(&j, "metrics", '[');
	for (int i = 1; i < METRICS; i++)
		if (is_wanted(&metrics[i], name))
			put_json_metric(&j, &metrics[i]);
	json_end(&j, ']');
	json_end(&j, '}');
	buf_char(out, '\n');
}

static void put_table(const struct cli *cli, const char *name, struct buf *out)
{
	auto_done(table) struct table t = { .bold = cli->color_out };

	table_column(&t, "METRIC", false);
	table_column(&t, "OF", false);
	table_column(&t, "UNIT", false);
	table_column(&t, "KIND", false);
	table_column(&t, "WHAT IT IS", false);
	for (int i = 1; i < METRICS; i++) {
		const struct metric *m = &metrics[i];

		if (!is_wanted(m, name))
			continue;
		table_cell(&t, m->name);
		table_cell(&t, entity_kind_name(m->entity));
		table_cell(&t, metric_unit_name(m->unit));
		table_cell(&t, metric_kind_name(m->kind));
		table_cell(&t, m->help);
	}
	table_print(&t, out);
}

static void put_one(const struct cli *cli, const struct metric *m, struct buf *out)
{
	buf_printf(out, "%s%s%s\n  %s\n", cli_ink(cli->color_out, INK_BOLD), m->name,
		   cli_ink(cli->color_out, INK_PLAIN), m->help);
	buf_printf(out, "  of             %s\n", entity_kind_name(m->entity));
	buf_printf(out, "  unit           %s\n", metric_unit_name(m->unit));
	buf_printf(out, "  kind           %s\n",
		   m->kind == KIND_COUNTER ? "counter: only grows; its growth is what counts"
					   : "gauge: what it is now");
	if (m->prometheus[0])
		buf_printf(out, "  Prometheus     %s\n", m->prometheus);
	if (m->opentelemetry[0])
		buf_printf(out, "  OpenTelemetry  %s\n", m->opentelemetry);
}

static int unknown_metric(const struct cli *cli, const char *name)
{
	const char *best = NULL;
	unsigned best_distance = 4;
	struct err e = { 0 };

	for (int i = 1; i < METRICS; i++) {
		unsigned d = text_distance(metrics[i].name, name);

		if (d >= best_distance)
			continue;
		best_distance = d;
		best = metrics[i].name;
	}
	err_set(&e, -ENOENT, "no metric '%s'", name);
	if (best)
		err_hint(&e, "did you mean '%s'?", best);
	else
		err_hint(&e, "'spotter metrics' lists them all");
	return cli_fail(cli, &e);
}

/* Evidence of a verdict may also name a figure that is computed from metrics. */
static bool put_fact(const char *name, bool json, struct buf *out)
{
	struct json j;

	for (int i = 0; i < FACTS; i++) {
		const struct fact_info *f = &fact_infos[i];

		if (!f->name || strcmp(f->name, name) != 0)
			continue;
		if (!json) {
			buf_printf(out,
				   "%s\n  %s\n  unit           %s\n  computed from metrics "
				   "when a run is judged\n",
				   f->name, f->help, f->unit);
			return true;
		}
		json_init(&j, out, true);
		json_begin(&j, '[');
		json_begin(&j, '{');
		json_key_str(&j, "name", f->name);
		json_key_str(&j, "unit", f->unit);
		json_key_str(&j, "kind", "derived");
		json_key_str(&j, "help", f->help);
		json_end(&j, '}');
		json_end(&j, ']');
		buf_char(out, '\n');
		return true;
	}
	return false;
}

static int run_metrics(struct cli *cli, void *options, const struct opt_rest *rest)
{
	const struct metrics_options *o = options;
	const char *name = rest->n ? rest->v[0] : NULL;
	const struct metric *one = name ? metric_by_name(name) : NULL;
	bool any = false;

	for (int i = 1; i < METRICS; i++)
		any |= is_wanted(&metrics[i], name);
	if (!any && put_fact(name, o->common.json, &cli->out))
		return EXIT_OK;
	if (!any)
		return unknown_metric(cli, name);
	if (o->common.json)
		put_json(name, &cli->out);
	else if (one)
		put_one(cli, one, &cli->out);
	else
		put_table(cli, name, &cli->out);
	return EXIT_OK;
}

static const struct example examples[] = {
	{ "metrics", "everything Spotter measures" },
	{ "metrics cgroup", "those of the control group" },
	{ "metrics psi.io.some", "one of them, with its names elsewhere" },
	{ NULL, NULL },
};

static const struct opt opts[] = {
	JSON_OPT,
	COMMON_OPTS,
	OPT_END,
};

const struct command metrics_command = {
	.name = "metrics",
	.group = "about",
	.summary = "what Spotter measures: name, unit, meaning",
	.words = "[METRIC]",
	.description =
	    "The catalogue of measured numbers, as they are named in a record, in 'spotter sql' "
	    "and "
	    "in exports. With METRIC, that one or its family ('cpu', 'cgroup').\n"
	    "\n"
	    "A counter only grows while its subject lives: the growth between two moments is what "
	    "was used. A gauge is what it is now, and holds until the next sample.",
	.examples = examples,
	.opts = opts,
	.options_size = sizeof(struct metrics_options),
	.max_words = 1,
	.run = run_metrics,
};
