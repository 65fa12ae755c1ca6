/* SPDX-License-Identifier: MIT */
#include "cli/command.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/num.h"
#include "cli/table.h"
#include "record/store.h"

#include <signal.h>
#include <string.h>

struct runs_options {
	struct common_options common;
	bool gc;
	uint64_t max_size;
};

static void put_json_run(struct json *j, const struct store_entry *r)
{
	char started[32];

	json_begin(j, '{');
	json_key_str(j, "path", r->path);
	json_key_int(j, "bytes", r->bytes);
	if (r->problem[0]) {
		json_key_str(j, "problem", r->problem);
		json_end(j, '}');
		return;
	}
	clock_iso(r->started_wall_ns, started, sizeof(started));
	json_key_str(j, "id", r->id);
	json_key_str(j, "name", r->name);
	json_key_str(j, "started", started);
	json_key_num(j, "duration_s", r->duration_s);
	json_key_str(j, "state", run_state_name(r->state));
	if (r->has_exit) {
		json_key_begin(j, "exit", '{');
		if (r->exit_signal)
			json_key_int(j, "signal", r->exit_signal);
		else
			json_key_int(j, "code", r->exit_code);
		json_end(j, '}');
	}
	json_end(j, '}');
}

static void put_json(const struct store_list *l, const char *dir, struct buf *out)
{
	struct json j;
	int64_t total = 0;

	json_init(&j, out, true);
	json_begin(&j, '{');
	json_key_str(&j, "schema", "spotter.runs/1");
	json_key_str(&j, "folder", dir);
	json_key_begin(&j, "runs", '[');
	for (size_t i = 0; i < l->rows.n; i++) {
		put_json_run(&j, &l->rows.v[i]);
		total += l->rows.v[i].bytes;
	}
	json_end(&j, ']');
	json_key_int(&j, "total_bytes", total);
	json_end(&j, '}');
	buf_char(out, '\n');
}

/* How it ended: "exit 0", "SIGKILL", or where it stands when it did not. */
static void put_end(struct table *t, const struct store_entry *r)
{
	const char *name = r->exit_signal ? sigabbrev_np(r->exit_signal) : NULL;

	if (!r->has_exit || r->state == RUN_INTERRUPTED)
		table_cell(t, run_state_name(r->state));
	else if (name)
		table_cellf(t, "SIG%s", name);
	else if (r->exit_signal)
		table_cellf(t, "signal %d", r->exit_signal);
	else
		table_cellf(t, "exit %d", r->exit_code);
}

static void put_row(struct table *t, const struct store_entry *r)
{
	char text[32];
	const char *base = strrchr(r->path, '/');

	if (r->problem[0]) {
		table_cell(t, base ? base + 1 : r->path);
		table_cell(t, "-");
		table_cell(t, "-");
		table_cell(t, "-");
		table_cell(t, r->problem);
	} else {
		struct tm tm;
		time_t when = (time_t)(r->started_wall_ns / NS_PER_S);
		char started[32] = "-";

		if (localtime_r(&when, &tm))
			strftime(started, sizeof(started), "%Y-%m-%d %H:%M:%S", &tm);
		table_cell(t, r->id);
		table_cell(t, r->name);
		table_cell(t, started);
		table_cell(t, num_seconds(r->duration_s, text, sizeof(text)));
		put_end(t, r);
	}
	table_cell(t, num_bytes((double)r->bytes, text, sizeof(text)));
}

static void put_table(const struct cli *cli, const struct store_list *l, const char *dir,
		      struct buf *out)
{
	auto_done(table) struct table t = { .bold = cli->color_out };
	double total = 0;
	char text[32];

	table_column(&t, "ID", false);
	table_column(&t, "NAME", false);
	table_column(&t, "STARTED", false);
	table_column(&t, "DURATION", true);
	table_column(&t, "END", false);
	table_column(&t, "SIZE", true);
	for (size_t i = 0; i < l->rows.n; i++) {
		put_row(&t, &l->rows.v[i]);
		total += (double)l->rows.v[i].bytes;
	}
	table_print(&t, out);
	cli_say(cli, "%zu run%s, %s, in %s", l->rows.n, l->rows.n == 1 ? "" : "s",
		num_bytes(total, text, sizeof(text)), dir);
}

static int collect_garbage(const struct cli *cli, uint64_t max_size, struct err *e)
{
	char freed[32], kept[32];
	unsigned n;
	int64_t bytes;
	int r = store_gc(max_size, &n, &bytes, e);

	if (r < 0)
		return r;
	cli_say(cli, "removed %u run%s, %s; the newest up to %s are kept", n, n == 1 ? "" : "s",
		num_bytes((double)bytes, freed, sizeof(freed)),
		num_bytes((double)max_size, kept, sizeof(kept)));
	return 0;
}

static int run_runs(struct cli *cli, void *options, const struct opt_rest *rest)
{
	const struct runs_options *o = options;
	char dir[PATH_MAX] = "";
	struct store_list l = { 0 };
	struct err e = { 0 };

	(void)rest;
	if (store_dir(false, dir, sizeof(dir), &e) < 0 ||
	    (o->gc && collect_garbage(cli, o->max_size, &e) < 0) || store_list(&l, &e) < 0)
		return cli_fail(cli, &e);
	if (o->common.json)
		put_json(&l, dir, &cli->out);
	else if (!l.rows.n)
		cli_say(cli, "no runs in %s yet; make one: spotter run -- COMMAND", dir);
	else
		put_table(cli, &l, dir, &cli->out);
	store_list_done(&l);
	return EXIT_OK;
}

static const struct example examples[] = {
	{ "runs", "what is there, oldest first, and its size" },
	{ "runs --gc --max-size 1G", "remove the oldest until the rest is under 1 GiB" },
	{ NULL, NULL },
};

static const struct opt opts[] = {
	OPT("gc", 0, OPT_FLAG, NULL, struct runs_options, gc,
	    "remove the oldest finished runs until the rest fits --max-size"),
	OPT("max-size", 0, OPT_SIZE, "SIZE", struct runs_options, max_size,
	    "what --gc may keep (default 4G)"),
	JSON_OPT,
	COMMON_OPTS,
	OPT_END,
};

static const struct runs_options defaults = { .max_size = 4ull << 30 };

const struct command runs_command = {
	.name = "runs",
	.group = "data",
	.summary = "the runs there are, how they ended and how large they are",
	.words = "",
	.description =
	    "Lists the runs in the folder of runs ($SPOTTER_DIR, else "
	    "$XDG_STATE_HOME/spotter/runs, else ~/.local/state/spotter/runs), oldest first. A "
	    "file that cannot be read is listed with the reason. Times are local; JSON has UTC.",
	.examples = examples,
	.opts = opts,
	.options_size = sizeof(struct runs_options),
	.defaults = &defaults,
	.max_words = 0,
	.run = run_runs,
};
