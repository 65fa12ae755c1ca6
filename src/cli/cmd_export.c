/* SPDX-License-Identifier: MIT */
#include "cli/command.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/text.h"
#include "cli/judge.h"
#include "cli/outfile.h"
#include "cli/progress.h"
#include "model/window.h"
#include "record/reader.h"
#include "record/store.h"
#include "sink/sink.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { STACKS_LEVEL = 2 }; /* from L2 on there are stacks */
enum { WRITE_AT = 64 << 10 };

struct export_options {
	struct common_options common;
	const char *to, *out, *what;
	bool force, quiet;
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
	const struct window_step *steps;
	const struct window_scalar *scalars;
	const struct window_phase *phases;
	size_t n_steps, next_step, n_scalars, next_scalar, n_phases, next_phase;
	bool any_stack; /* not only what threads waited for */
	int error;
	struct progress progress;
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
	double whole = (double)run->ended_mono_ns - (double)run->started_mono_ns;

	if (whole > 0)
		progress_share(&x->progress, ((double)t_ns - (double)run->started_mono_ns) / whole);
}

/* What comes next: 0 an event, 1 a phase, 2 a step, 3 a scalar; and when. At the same time in this
 * order, as what is said with a step comes behind it. */
static int next_of(const struct export *x, int64_t *ret_ns)
{
	int64_t at[4] = { INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX };
	int least = 0;

	if (x->next_event < x->n_events)
		at[0] = x->events[x->next_event].t_ns;
	if (x->next_phase < x->n_phases)
		at[1] = x->phases[x->next_phase].begin_ns;
	if (x->next_step < x->n_steps)
		at[2] = x->steps[x->next_step].end_ns;
	if (x->next_scalar < x->n_scalars)
		at[3] = x->scalars[x->next_scalar].t_ns;
	for (int i = 1; i < 4; i++)
		least = at[i] < at[least] ? i : least;
	*ret_ns = at[least];
	return least;
}

/* What happened or was said up to this time goes in between the samples. */
static void put_said(struct export *x, int64_t until_ns)
{
	const struct sink_type *k = x->sink;
	int64_t t_ns;

	while (!x->error) {
		int what = next_of(x, &t_ns);

		/* a time that no clock shows: there is no more */
		if (t_ns > until_ns || t_ns == INT64_MAX)
			return;
		if (what == 0)
			x->error =
			    k->event(x->state, &x->src, &x->events[x->next_event++], &x->out);
		else if (what == 1)
			x->error =
			    k->phase(x->state, &x->src, &x->phases[x->next_phase++], &x->out);
		else if (what == 3)
			x->error =
			    k->scalar(x->state, &x->src, &x->scalars[x->next_scalar++], &x->out);
		else
			x->error = k->step(x->state, &x->src, &x->steps[x->next_step++], &x->out);
		pour(x, false);
	}
}

static void find_said(struct export *x, const struct window *w)
{
	if (x->sink->event)
		x->events = w->ops->events(w->src, &x->n_events);
	if (x->sink->phase && w->ops->phases)
		x->phases = w->ops->phases(w->src, &x->n_phases);
	if (x->sink->scalar && w->ops->scalars)
		x->scalars = w->ops->scalars(w->src, &x->n_scalars);
	if (x->sink->step && w->ops->steps)
		x->steps = w->ops->steps(w->src, &x->n_steps);
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

	put_said(x, s->t_ns);
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

	do {
		more = x->error ? 0 : x->sink->end(x->state, &x->src, &x->out);
		if (more < 0)
			x->error = more;
		progress_pulse(&x->progress);
	} while (pour(x, true) && more > 0);
}

static int copy_record(struct export *x, struct record *record)
{
	struct window w = record_window(record, 0, 0);
	int r;

	x->src = (struct sink_source){ .run = record_run(record),
				       .entities = window_entities(&w),
				       .window = &w };
	find_said(x, &w);
	if (x->sink->needs_steps && !x->n_steps)
		return -ENODATA;
	x->error = x->sink->begin(x->state, &x->src, &x->out);
	if (x->error)
		return x->error;
	r = x->sink->sample ? record_each_sample(record, put_sample, x) : 0;
	put_said(x, INT64_MAX);
	if (r == 0 && x->sink->stack) {
		r = copy_stacks(x, &w);
		/* a trace without stacks is one still */
		r = r == -ENODATA && x->sink->sample ? 0 : r;
	}
	if (!x->error && r < 0)
		x->error = r;
	if (!x->error)
		copy_end(x);
	progress_end(&x->progress);
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

static int export_record(struct export *x, struct record *record, const char *path,
			 const struct export_options *o, struct err *e)
{
	char why[80];
	int r;

	if (o->out && outfile_is_same(o->out, path))
		return err_set(e, -EINVAL, "'%s' is the record itself", o->out);
	if (o->out) {
		r = outfile_open(&x->file, o->out, o->force, e);
		if (r < 0)
			return r;
	}
	r = copy_record(x, record);
	if (r < 0 && x->cli->write_error)
		return r; /* said once, at the end */
	if (r == -ENODATA && x->sink->needs_steps) {
		r = err_set(e, r, "no steps were recorded in '%s'", path);
		err_hint(e, "'spotter run' marks the steps of PyTorch, Keras and others; elsewhere "
			    "call spotter.step() in the training loop");
		return r;
	}
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
	struct export x = { .cli = cli, .file = { .fd = -1 } };
	char path[PATH_MAX], name[48];
	struct record *record;
	struct err e = { 0 };
	bool by_step;
	int r;

	if (!o->to)
		return cli_usage(cli, "which format: --to csv, parquet, jsonl, tensorboard, "
				      "perfetto, speedscope, collapsed or openmetrics?");
	by_step = strcmp(o->what, "steps") == 0;
	snprintf(name, sizeof(name), "%s%s", o->to, by_step ? "-steps" : "");
	x.sink = sink_by_name(name);
	if (!x.sink)
		return cli_usage(cli, "--what steps is for --to csv and parquet; the other formats "
				      "have the steps anyway");
	if (store_find(rest->n ? rest->v[0] : NULL, path, sizeof(path), &e) < 0 ||
	    judge_open(cli, path, &record, &e) < 0)
		return cli_fail(cli, &e);
	progress_begin(&x.progress, "exporting", o->quiet);
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
	{ "export --to csv --what steps", "a table of steps: loss, times, what each used" },
	{ "export --to parquet --out run.parquet", "every sample, for duckdb, pandas and polars" },
	{ "export train.py --to jsonl --out run.jsonl", "with processes and events" },
	{ "export --to tensorboard --out logs/spotter.tfevents.1",
	  "for tensorboard --logdir logs" },
	{ "export --to perfetto --out run.pftrace", "open it in ui.perfetto.dev" },
	{ "export --to speedscope --out run.json", "stacks; open it in speedscope.app" },
	{ "export --to collapsed | flamegraph.pl > run.svg", "stacks as a flame graph" },
	{ "export --to openmetrics --out run.om", "for promtool tsdb create-blocks-from" },
	{ NULL, NULL },
};

static const struct opt opts[] = {
	OPT("to", 't', OPT_STRING, "FORMAT", struct export_options, to,
	    "csv: one line a sample; parquet: the same as columns, with types; jsonl: run, "
	    "entities, samples, events and steps, one JSON "
	    "object "
	    "a line; tensorboard: an event file of loss, step times, CPU and GPUs; perfetto: "
	    "steps, "
	    "phases, threads and counters for ui.perfetto.dev; speedscope: stacks of every thread "
	    "for speedscope.app; collapsed: stacks for "
	    "flame graphs, with microseconds; openmetrics: series with their times, for Prometheus",
	    .choices = "csv|parquet|jsonl|tensorboard|perfetto|speedscope|collapsed|openmetrics"),
	OPT("what", 'w', OPT_STRING, "WHAT", struct export_options, what,
	    "with csv and parquet: samples (the default), or steps, one line each: loss and other "
	    "scalars, "
	    "time, "
	    "data wait, and what longer ones used of CPU, memory and GPUs",
	    .choices = "samples|steps"),
	OPT("out", 'o', OPT_STRING, "FILE", struct export_options, out,
	    "write to FILE instead of standard output; it appears when it is whole"),
	OPT("force", 'f', OPT_FLAG, NULL, struct export_options, force,
	    "overwrite FILE when it exists"),
	OPT("quiet", 'q', OPT_FLAG, NULL, struct export_options, quiet,
	    "no line of progress on a terminal"),
	COMMON_OPTS,
	OPT_END,
};

static const struct export_options defaults = { .what = "samples" };

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
	    "tensorboard writes an event file: TensorBoard reads files that have 'tfevents' in "
	    "their "
	    "name. Figures of the machine stand at the step that ended last, one a second.\n"
	    "\n"
	    "speedscope and collapsed write the stacks of the run, by wall-clock time. A thread "
	    "that "
	    "did not run has a mark as innermost frame that says what it waited for, such as "
	    "'[waiting: pipe]'; '[not proven]' stands for frames that could not be read whole.\n"
	    "\n"
	    "openmetrics writes the series of the machine, its GPUs, the job and its steps under "
	    "the names "
	    "of Spotter's exporter, family by family with times, as 'promtool tsdb "
	    "create-blocks-from "
	    "openmetrics' takes it; processes and threads are left out.\n"
	    "\n"
	    "For a part of it, or for sums, 'spotter sql --csv' is quicker.",
	.examples = examples,
	.opts = opts,
	.options_size = sizeof(struct export_options),
	.defaults = &defaults,
	.max_words = 1,
	.run = run_export,
};
