/* SPDX-License-Identifier: MIT */
#include "crew_run.h"

#include "base/err.h"
#include "world.h"

#include <sqlite3.h>
#include <stdlib.h>

static void make_run(struct run_info *ret)
{
	*ret = (struct run_info){ .id = "20261115-211209-4f3a",
				  .name = "train.py",
				  .started_mono_ns = START,
				  .started_wall_ns = 1,
				  .rusage_cpu_ns = -1,
				  .rusage_maxrss_bytes = -1 };
}

void run_begin(struct set_up *s, unsigned processes, const struct record_options *o)
{
	struct run_info run;
	struct err e = { 0 };

	*s = (struct set_up){ .t_ns = START };
	test_path(s->path, sizeof(s->path));
	crew_init(&s->crew, 7, processes);
	make_run(&run);
	s->history = history_new(&run, 4000);
	assert_non_null(s->history);
	if (record_create(s->path, &run, o, &s->writer, &e) < 0)
		fail_msg("%s", e.text);
}

void run_end(struct set_up *s)
{
	if (s->writer)
		record_abandon(s->writer);
	history_free(s->history);
	frame_done(&s->frame);
	crew_done(&s->crew);
	test_path_rm(s->path);
}

void run_frame(struct set_up *s)
{
	int64_t from = s->t_ns;

	s->t_ns += NS_PER_S;
	frame_begin(&s->frame, s->t_ns, s->t_ns);
	frame_put(&s->frame, M_MEM_FREE, ID_HOST, s->t_ns);
	crew_slice(&s->crew, &s->frame, from, s->t_ns);
	assert_int_equal(history_frame(s->history, &s->frame), 0);
}

void run_second(struct set_up *s)
{
	run_frame(s);
	assert_int_equal(record_frame(s->writer, &s->frame), 0);
}

void run_finish(struct set_up *s)
{
	struct run_info run;

	make_run(&run);
	run.state = RUN_ENDED;
	assert_int_equal(record_finish(s->writer, &run), 0);
	s->writer = NULL;
}

struct record *run_open(const char *path)
{
	struct record *r = NULL;
	struct err e = { 0 };

	if (record_open(path, &r, &e) < 0)
		fail_msg("%s", e.text);
	return r;
}

void run_sql(const char *path, const char *sql)
{
	char *message = NULL;
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	sqlite3_exec(db, sql, NULL, NULL, &message);
	if (message)
		fail_msg("%s: %s", sql, message);
	sqlite3_close(db);
}

double run_number(struct record *r, const char *sql)
{
	sqlite3_stmt *s = NULL;
	double v;

	if (sqlite3_prepare_v2(record_db(r), sql, -1, &s, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(record_db(r)));
	assert_int_equal(sqlite3_step(s), SQLITE_ROW);
	v = sqlite3_column_double(s, 0);
	sqlite3_finalize(s);
	return v;
}

bool copy_add(const struct stack_slice *s, void *arg)
{
	struct copy *c = arg;
	struct stack_slice *mine = vec_push(&c->slices);
	struct stack_row *rows = malloc((s->n + 1) * sizeof(*rows));

	memcpy(rows, s->rows, s->n * sizeof(*rows));
	*mine = *s;
	mine->rows = rows;
	for (size_t i = 0; i < s->n; i++) {
		c->samples += s->rows[i].count;
		c->weight_ns += s->rows[i].weight_ns;
	}
	return c->slices.n != c->stop_after;
}

void copy_done(struct copy *c)
{
	for (size_t i = 0; i < c->slices.n; i++)
		free((struct stack_row *)c->slices.v[i].rows);
	vec_done(&c->slices);
}

static void assert_same_rows(const struct stack_slice *a, const struct stack_slice *b)
{
	assert_int_equal(a->from_ns, b->from_ns);
	assert_int_equal(a->to_ns, b->to_ns);
	assert_int_equal(a->n, b->n);
	for (size_t i = 0; i < a->n; i++) {
		const struct stack_row *x = &a->rows[i], *y = &b->rows[i];

		assert_int_equal(x->entity, y->entity);
		assert_int_equal(x->node, y->node);
		assert_int_equal(x->peer, y->peer);
		assert_int_equal(x->kind, y->kind);
		assert_int_equal(x->on, y->on);
		assert_int_equal(x->flags, y->flags);
		assert_int_equal(x->count, y->count);
		assert_int_equal(x->weight_ns, y->weight_ns);
	}
}

void assert_same_book(const struct stack_book *a, const struct stack_book *b)
{
	assert_int_equal(a->places.n, b->places.n);
	for (uint32_t i = 1; i <= a->places.n; i++) {
		const struct place *x = stack_book_find_place(a, i);
		const struct place *y = stack_book_find_place(b, i);

		assert_int_equal(x->kind, y->kind);
		assert_int_equal(x->line, y->line);
		assert_string_equal(x->function, y->function);
		assert_string_equal(x->file, y->file);
		assert_string_equal(x->source, y->source);
	}
	assert_int_equal(a->nodes.n, b->nodes.n);
	assert_memory_equal(a->nodes.v, b->nodes.v, a->nodes.n * sizeof(*a->nodes.v));
}

/* The file says what the history says, from from_ns on. */
void assert_same_as_history(struct set_up *s, struct record *r, int64_t from_ns, size_t expected)
{
	struct window live = history_window(s->history, from_ns);
	struct window file = record_window(r, from_ns, 0);
	struct copy a = { 0 }, b = { 0 };

	assert_int_equal(window_stacks(&live, copy_add, &a), 0);
	assert_int_equal(window_stacks(&file, copy_add, &b), 0);
	assert_int_equal(a.slices.n, expected);
	assert_int_equal(b.slices.n, expected);
	for (size_t i = 0; i < expected; i++)
		assert_same_rows(&a.slices.v[i], &b.slices.v[i]);
	assert_same_book(window_book(&live), window_book(&file));
	copy_done(&a);
	copy_done(&b);
}
