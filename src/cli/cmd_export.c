/* SPDX-License-Identifier: MIT */
#include "cli/command.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/text.h"
#include "cli/outfile.h"
#include "model/window.h"
#include "record/reader.h"
#include "record/store.h"
#include "sink/sink.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STACKS_LEVEL = 2 }; /* from L2 on there are stacks */
enum { WRITE_AT = 64 << 10, PROGRESS_AFTER_MS = 1000, PROGRESS_EVERY_MS = 200 };

struct export_options {
	struct common_options common;
	const char *to, *out;
	bool force;
};

struct export
{
	struct cli *cli;
	const struct sink_type *sink;
	void *state;
	struct sink_source src;
	struct outfile file; /* fd -1: standard output */
	struct buf out;
	const struct window_event *events;
	size_t n_events, next_event;
	bool any_stack; /* not only what threads waited for */
	int error;
	bool progress, shown;
	int64_t begun_ns, told_ns;
};

/* Empties the buffer when it has grown, or when all of it must go. */
static bool pour(struct export *x, bool all)
{
	if (!x->error && !buf_ok(&x->out))
		x->error = -ENOMEM;
	if (x->error || (!all && x->out.len < WRITE_AT))
		return !x->error;
	if (x->file.fd >= 0) {
		x->error = io_write_all(x->file.fd, buf_text(&x->out), x->out.len);
	} else {
		buf_put(&x->cli->out, buf_text(&x->out), x->out.len);
		if (!cli_flush(x->cli))
			x->error = x->cli->write_error;
	}
	buf_reset(&x->out);
	return !x->error;
}

static void tell_progress(struct export *x, int64_t t_ns)
{
	const struct run_info *run = x->src.run;
	int64_t now = clock_mono_ns(), whole = run->ended_mono_ns - run->started_mono_ns;
	char text[64];
	int n;

	if (!x->progress || now - x->begun_ns < PROGRESS_AFTER_MS * NS_PER_MS ||
	    now - x->told_ns < PROGRESS_EVERY_MS * NS_PER_MS || whole <= 0)
		return;
	x->told_ns = now;
	x->shown = true;
	n = snprintf(text, sizeof(text), "\rexporting: %3.0f %%",
		     100 * (double)(t_ns - run->started_mono_ns) / (double)whole);
	(void)io_write_all(STDERR_FILENO, text, (size_t)n);
}

/* Events that happened up to this time go in between the samples. */
static void put_events(struct export *x, int64_t until_ns)
{
	while (x->next_event < x->n_events && x->events[x->next_event].t_ns <= until_ns &&
	       !x->error) {
		x->error = x->sink->event(x->state, &x->src, &x->events[x->next_event++], &x->out);
		pour(x, false);
	}
}

static bool put_sample(const struct record_sample *s, void *arg)
{
	struct export *x = arg;
	struct sink_sample row = {
		.t_ns = s->t_ns,
		.metric = s->metric_name,
		.unit = s->unit ? s->unit : "",
		.entity = s->entity,
		.value = s->value,
		.kind_known = s->metric != M_NONE,
		.kind = s->metric != M_NONE ? metrics[s->metric].kind : KIND_GAUGE,
	};

	put_events(x, s->t_ns);
	if (!x->error)
		x->error = x->sink->sample(x->state, &x->src, &row, &x->out);
	if (!pour(x, false))
		return false;
	tell_progress(x, s->t_ns);
	return true;
}

static bool put_slice(const struct stack_slice *s, void *arg)
{
	struct export *x = arg;

	for (size_t i = 0; i < s->n && !x->any_stack; i++)
		x->any_stack = s->rows[i].node != 0;
	x->error = x->sink->stack(x->state, &x->src, s, &x->out);
	if (!pour(x, false))
		return false;
	tell_progress(x, s->to_ns);
	return true;
}

/* -ENODATA: there are none. Nothing is written before the end, so it is not too late to say so. */
static int copy_stacks(struct export *x, const struct window *w)
{
	int r;

	x->src.book = window_book(w);
	r = x->src.book ? window_stacks(w, put_slice, x) : -ENODATA;
	return r == 0 && !x->error && !x->any_stack ? -ENODATA : r;
}

static void copy_end(struct export *x)
{
	int more;

	put_events(x, INT64_MAX);
	do {
		more = x->error ? 0 : x->sink->end(x->state, &x->src, &x->out);
		if (more < 0)
			x->error = more;
	} while (pour(x, true) && more > 0);
}

static int copy_record(struct export *x, struct record *record)
{
	static const char wipe[] = "\r                \r"; /* as long as "exporting: 100 %" */
	struct window w = record_window(record, 0, 0);
	int r;

	x->src = (struct sink_source){ .run = record_run(record), .entities = window_entities(&w) };
	if (x->sink->event)
		x->events = w.ops->events(w.src, &x->n_events);
	x->begun_ns = clock_mono_ns();
	x->error = x->sink->begin(x->state, &x->src, &x->out);
	if (x->error)
		return x->error;
	r = x->sink->stack ? copy_stacks(x, &w) : record_each_sample(record, put_sample, x);
	if (!x->error && r < 0)
		x->error = r;
	if (!x->error)
		copy_end(x);
	if (x->shown)
		(void)io_write_all(STDERR_FILENO, wipe, sizeof(wipe) - 1);
	return x->error;
}

/* The recorder says it when it cannot read stacks; the last word of it stands. */
static int no_stacks(struct record *record, const char *path, struct err *e)
{
	struct window w = record_window(record, 0, 0);
	size_t n = 0;
	const struct window_event *events = w.ops->events(w.src, &n);
	const char *why = NULL;
	char shown[200];
	int r;

	for (size_t i = 0; i < n; i++)
		if (events[i].kind == EVENT_STACKS && events[i].value < STACKS_LEVEL)
			why = events[i].text;
	r = err_set(e, -ENODATA, "no stacks were recorded in '%s'%s%s", path,
		    why && why[0] ? ": " : "",
		    why ? text_safe_copy(shown, sizeof(shown), why) : "");
	err_hint(e,
		 "'spotter doctor' says whether they can be read here; 'spotter run' records them "
		 "unless told --stacks 0");
	return r;
}

static bool is_same_file(const char *a, const char *b)
{
	struct stat x, y;

	return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static int export_record(struct export *x, struct record *record, const char *path,
			 const struct export_options *o, struct err *e)
{
	char why[80];
	int r;

	if (o->out && is_same_file(o->out, path))
		return err_set(e, -EINVAL, "'%s' is the record itself", o->out);
	if (o->out) {
		r = outfile_open(&x->file, o->out, o->force, e);
		if (r < 0)
			return r;
	}
	r = copy_record(x, record);
	if (r < 0 && x->cli->write_error)
		return r; /* said once, at the end */
	if (r == -ENODATA && x->sink->stack)
		return no_stacks(record, path, e);
	if (r < 0)
		return err_set(e, r, "cannot export '%s'%s%s: %s", path, o->out ? " to " : "",
			       o->out ? o->out : "", err_name(r, why, sizeof(why)));
	return o->out ? outfile_commit(&x->file, e) : 0;
}

static int run_export(struct cli *cli, void *options, const struct opt_rest *rest)
{
	const struct export_options *o = options;
	struct export x = { .cli = cli, .file = { .fd = -1 }, .progress = isatty(STDERR_FILENO) };
	char path[PATH_MAX];
	struct record *record;
	struct err e = { 0 };
	int r;

	if (!o->to)
		return cli_usage(cli, "which format: --to csv, jsonl, speedscope or collapsed?");
	x.sink = sink_by_name(o->to);
	if (store_find(rest->n ? rest->v[0] : NULL, path, sizeof(path), &e) < 0 ||
	    record_open(path, &record, &e) < 0)
		return cli_fail(cli, &e);
	x.state = calloc(1, x.sink->state_size + 1);
	r = x.state ? export_record(&x, record, path, o, &e) : -ENOMEM;
	if (x.state && x.sink->done)
		x.sink->done(x.state);
	outfile_done(&x.file);
	buf_done(&x.out);
	free(x.state);
	record_close(record);
	if (r < 0 && cli->write_error)
		return EXIT_FAILED;
	return r < 0 ? cli_fail(cli, &e) : EXIT_OK;
}

static const struct example examples[] = {
	{ "export --to csv > run.csv", "every sample of the last run" },
	{ "export train.py --to jsonl --out run.jsonl", "with processes and events" },
	{ "export --to speedscope --out run.json", "stacks; open it in speedscope.app" },
	{ "export --to collapsed | flamegraph.pl > run.svg", "stacks as a flame graph" },
	{ NULL, NULL },
};

static const struct opt opts[] = {
	OPT("to", 't', OPT_STRING, "FORMAT", struct export_options, to,
	    "csv: one line a sample; jsonl: run, entities, samples and events, one JSON object a "
	    "line; speedscope: stacks of every thread for speedscope.app; collapsed: stacks for "
	    "flame graphs, with microseconds",
	    .choices = "csv|jsonl|speedscope|collapsed"),
	OPT("out", 'o', OPT_STRING, "FILE", struct export_options, out,
	    "write to FILE instead of standard output; it appears when it is whole"),
	OPT("force", 'f', OPT_FLAG, NULL, struct export_options, force,
	    "overwrite FILE when it exists"),
	COMMON_OPTS,
	OPT_END,
};

const struct command export_command = {
	.name = "export",
	.group = "data",
	.summary = "a record in another format",
	.words = "[RUN]",
	.description =
	    "csv and jsonl write every sample of the run that is still kept, in order of time. "
	    "Counters are as the kernel counts them: what was used is the growth between two "
	    "lines. "
	    "Times are UTC, 'seconds' and 't' count from the start of the run.\n"
	    "\n"
	    "speedscope and collapsed write the stacks of the run, by wall-clock time. A thread "
	    "that "
	    "did not run has a mark as innermost frame that says what it waited for, such as "
	    "'[waiting: pipe]'; '[not proven]' stands for frames that could not be read whole.\n"
	    "\n"
	    "For a part of it, or for sums, 'spotter sql --csv' is quicker.",
	.examples = examples,
	.opts = opts,
	.options_size = sizeof(struct export_options),
	.max_words = 1,
	.run = run_export,
};
