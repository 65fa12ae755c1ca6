/* SPDX-License-Identifier: MIT
 *
 * What the training says on its way into the file: put together by model/training, as rows that land
 * with the commit of their second. One prepared statement a kind: a thousand steps a second cost
 * the writer one millisecond.
 */
#include "record/db.h"
#include "record/write.h"

#include <errno.h>
#include <math.h>
#include <sqlite3.h>

static int take_step(void *arg, const struct window_step *s)
{
	struct record_writer *w = arg;
	struct pending *p = backlog_mark(&w->backlog, PENDING_STEP, s->end_ns, NULL);

	if (!p)
		return -ENOMEM;
	p->step = *s;
	return 0;
}

static int begin_phase(void *arg, uint32_t id, const struct window_phase *is)
{
	struct record_writer *w = arg;
	struct pending *p = backlog_mark(&w->backlog, PENDING_PHASE, is->begin_ns, is->name);

	if (!p)
		return -ENOMEM;
	p->phase.id = id;
	p->phase.entity = is->entity;
	return 0;
}

static int end_phase(void *arg, uint32_t id, int64_t t_ns)
{
	struct record_writer *w = arg;
	struct pending *p = backlog_mark(&w->backlog, PENDING_PHASE_END, t_ns, NULL);

	if (!p)
		return -ENOMEM;
	p->phase.id = id;
	return 0;
}

static int take_value(struct record_writer *w, enum pending_kind kind,
		      const struct window_scalar *s)
{
	struct pending *p = backlog_mark(&w->backlog, kind, s->t_ns, s->name);

	if (!p)
		return -ENOMEM;
	p->scalar = *s;
	p->scalar.name = NULL;
	return 0;
}

static int take_scalar(void *arg, const struct window_scalar *s)
{
	return take_value(arg, PENDING_SCALAR, s);
}

static int take_setting(void *arg, const struct window_scalar *s)
{
	return take_value(arg, PENDING_SETTING, s);
}

static int take_source(void *arg, const struct window_scalar *s)
{
	return take_value(arg, PENDING_SOURCE, s);
}

int marks_frame(struct record_writer *w, const struct frame *f)
{
	static const struct training_sink sink = {
		.step = take_step,
		.phase_begin = begin_phase,
		.phase_end = end_phase,
		.scalar = take_scalar,
		.setting = take_setting,
		.source = take_source,
	};

	return training_frame(&w->training, f, &sink, w);
}

int marks_step(struct record_writer *w, const struct window_step *s)
{
	return take_step(w, s);
}

int marks_phase(struct record_writer *w, const struct window_phase *p)
{
	uint32_t id = ++w->training.phases;
	int r = begin_phase(w, id, p);

	return r < 0 || !p->end_ns ? r : end_phase(w, id, p->end_ns);
}

int marks_scalar(struct record_writer *w, const struct window_scalar *s)
{
	return take_scalar(w, s);
}

int marks_setting(struct record_writer *w, const struct window_scalar *s)
{
	return take_setting(w, s);
}

int marks_source(struct record_writer *w, const struct window_scalar *s)
{
	return take_source(w, s);
}

/* Numbers beyond what SQLite has are nobody's steps. */
static int64_t number_of(uint64_t n)
{
	return n <= INT64_MAX ? (int64_t)n : INT64_MAX;
}

static int write_step(struct record_writer *w, const struct pending *p)
{
	const struct window_step *step = &p->step;
	struct sqlite3_stmt *s = w->rows[ROW_STEP];

	db_int_or_null(s, 1, step->rank >= 0, step->rank);
	db_int(s, 2, number_of(step->number));
	db_int_or_null(s, 3, step->begin_ns < step->end_ns, step->begin_ns);
	db_int(s, 4, step->end_ns);
	db_int(s, 5, step->entity);
	sqlite3_bind_double(s, 6, step->loss); /* NAN becomes NULL */
	db_int_or_null(s, 7, !isnan(step->data_wait),
		       isnan(step->data_wait) ? 0 : llround(step->data_wait * 1e9));
	db_int_or_null(s, 8, step->micro > 0, step->micro);
	return db_run(s);
}

static int write_value(struct record_writer *w, const struct pending *p)
{
	struct sqlite3_stmt *s = w->rows[p->kind == PENDING_SCALAR ? ROW_SCALAR : ROW_SETTING];
	int r;

	db_int(s, 1, p->scalar.t_ns);
	db_int_or_null(s, 2, p->scalar.rank >= 0, p->scalar.rank);
	if (p->kind == PENDING_SCALAR)
		db_int(s, 3, number_of(p->scalar.step));
	db_text(s, 4, w->backlog.bytes.data + p->at);
	sqlite3_bind_double(s, 5, p->scalar.value);
	db_int(s, 6, p->scalar.entity);
	r = db_run(s);
	sqlite3_clear_bindings(s);
	return r;
}

static int write_phase(struct record_writer *w, const struct pending *p)
{
	struct sqlite3_stmt *s = w->rows[ROW_PHASE];
	int r;

	db_int(s, 1, p->phase.id);
	db_int(s, 2, p->t_ns);
	db_int(s, 3, p->phase.entity);
	db_text(s, 4, w->backlog.bytes.data + p->at);
	r = db_run(s);
	sqlite3_clear_bindings(s);
	return r;
}

static int write_source(struct record_writer *w, const struct pending *p)
{
	struct sqlite3_stmt *s = w->rows[ROW_SOURCE];
	int r;

	db_int(s, 1, p->scalar.entity);
	db_int_or_null(s, 2, p->scalar.rank >= 0, p->scalar.rank);
	db_text(s, 3, w->backlog.bytes.data + p->at);
	db_int(s, 4, p->scalar.t_ns);
	r = db_run(s);
	sqlite3_clear_bindings(s);
	return r;
}

int marks_write(struct record_writer *w, const struct pending *p)
{
	switch (p->kind) {
	case PENDING_STEP:
		return write_step(w, p);
	case PENDING_PHASE:
		return write_phase(w, p);
	case PENDING_PHASE_END:
		db_int(w->rows[ROW_PHASE_END], 1, p->phase.id);
		db_int(w->rows[ROW_PHASE_END], 2, p->t_ns);
		return db_run(w->rows[ROW_PHASE_END]);
	case PENDING_SOURCE:
		return write_source(w, p);
	default:
		return write_value(w, p);
	}
}
