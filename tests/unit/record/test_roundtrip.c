/* SPDX-License-Identifier: MIT
 *
 * What goes into a file comes out of it: while it is written, after the end, and after a crash.
 */
#include "../unit.h"

#include "base/clock.h"
#include "base/err.h"
#include "record/reader.h"
#include "record/series.h"
#include "record/writer.h"
#include "world.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define TICK (100 * NS_PER_MS)

/* Processes and threads: only changes are kept. */
static bool is_kept(const struct world_series *s, size_t i)
{
	enum entity_kind k = metrics[s->metric].entity;

	return (k != ENTITY_PROC && k != ENTITY_THREAD) || i == 0 ||
	       s->v.v[i].raw != s->v.v[i - 1].raw;
}

struct checker {
	struct world *w;
	size_t *at; /* next sample expected of each series */
	int64_t last_ns, until_ns;
	size_t n;
};

static bool check_sample(const struct record_sample *s, void *arg)
{
	struct checker *c = arg;
	const struct world_series *series = world_find(c->w, s->metric, s->entity);
	size_t *at;

	assert_non_null(series);
	at = &c->at[series - c->w->series.v];
	while (*at < series->v.n && !is_kept(series, *at))
		++*at;
	assert_true(*at < series->v.n);
	assert_int_equal(s->t_ns, series->v.v[*at].t_ns);
	assert_true(s->value == (double)series->v.v[*at].raw * series_scale(s->metric));
	assert_string_equal(s->metric_name, metrics[s->metric].name);
	assert_true(s->t_ns >= c->last_ns);
	c->last_ns = s->t_ns;
	++*at;
	c->n++;
	return true;
}

/* Everything up to until_ns is there, and nothing else. */
static void check_samples(struct record *r, struct world *w, int64_t until_ns)
{
	struct checker c = { .w = w, .at = calloc(w->series.n, sizeof(size_t)) };

	assert_int_equal(record_each_sample(r, check_sample, &c), 0);
	assert_true(c.n > 0);
	for (size_t i = 0; i < w->series.n; i++) {
		const struct world_series *s = &w->series.v[i];

		while (c.at[i] < s->v.n && !is_kept(s, c.at[i]))
			c.at[i]++;
		if (c.at[i] < s->v.n)
			assert_true(s->v.v[c.at[i]].t_ns > until_ns);
	}
	free(c.at);
}

static void check_entities(struct record *r, const struct world *w)
{
	struct window win = record_window(r, 0, 0);
	const struct entity_table *t = window_entities(&win);

	assert_int_equal(t->rows.n, w->entities.rows.n);
	for (size_t i = 0; i < t->rows.n; i++) {
		const struct entity *a = &t->rows.v[i], *b = entity_find(&w->entities, a->id);

		assert_non_null(b);
		assert_int_equal(a->parent, b->parent);
		assert_int_equal(a->kind, b->kind);
		assert_int_equal(a->key, b->key);
		assert_int_equal(a->start_ns, b->start_ns);
		assert_int_equal(a->born_ns, b->born_ns);
		assert_int_equal(a->gone_ns, b->gone_ns);
		assert_string_equal(a->name, b->name);
		assert_string_equal(a->detail, b->detail);
	}
}

static struct record *open_record(const char *path)
{
	struct record *r = NULL;
	struct err e = { 0 };

	if (record_open(path, &r, &e) < 0)
		print_error("%s\n", e.text);
	assert_non_null(r);
	return r;
}

static struct record_writer *create(const char *path, const struct world *w,
				    const struct record_options *o)
{
	struct record_writer *writer = NULL;
	struct run_info run;
	struct err e = { 0 };

	world_run(w, &run);
	if (record_create(path, &run, o, &writer, &e) < 0)
		print_error("%s\n", e.text);
	run_info_done(&run);
	assert_non_null(writer);
	return writer;
}

static void check_run(struct record *r, const struct run_info *run)
{
	const struct run_info *got = record_run(r);

	assert_int_equal(got->state, run->state);
	assert_int_equal(got->ended_mono_ns, run->ended_mono_ns);
	assert_int_equal(got->has_exit, run->has_exit);
	assert_int_equal(got->exit_code, run->exit_code);
	assert_int_equal(got->rusage_cpu_ns, run->rusage_cpu_ns);
	assert_int_equal(got->rusage_maxrss_bytes, run->rusage_maxrss_bytes);
	assert_string_equal(got->name, run->name);
	assert_string_equal(got->cwd, run->cwd);
	assert_string_equal(got->machine.hostname, run->machine.hostname);
	assert_string_equal(got->machine.kernel, run->machine.kernel);
	assert_string_equal(got->machine.cpu_model, run->machine.cpu_model);
	assert_string_equal(got->machine.virtualisation, run->machine.virtualisation);
	assert_int_equal(got->machine.cpus, run->machine.cpus);
	assert_int_equal(got->machine.threads_per_core, run->machine.threads_per_core);
	assert_int_equal(got->machine.memory_bytes, run->machine.memory_bytes);
	for (int i = 0; run->argv[i]; i++)
		assert_string_equal(got->argv[i], run->argv[i]);
}

static void check_happenings(struct record *r, const struct world *w)
{
	struct window win = record_window(r, 0, 0);
	const struct window_event *events;
	size_t n;

	events = win.ops->events(win.src, &n);
	assert_int_equal(n, w->events);
	for (size_t i = 1; i < n; i++)
		assert_true(events[i].t_ns >= events[i - 1].t_ns);
	win.ops->gaps(win.src, &n);
	assert_true(n > 0);
}

static struct record *check_live(const char *path, struct world *w)
{
	struct record *live = open_record(path);

	assert_int_equal(record_run(live)->state, RUN_GOING);
	assert_int_equal(record_run(live)->ended_mono_ns, w->t_ns);
	check_samples(live, w, w->t_ns);
	check_entities(live, w);
	return live;
}

static void test_live_and_finished(void **state)
{
	static const char verdict[] = "{\"findings\": [{\"cause\": \"cpu_quota\"}]}";
	char path[256], wal[300];
	struct world w;
	struct record_writer *writer;
	struct record *live = NULL, *r;
	struct run_info run;

	(void)state;
	test_path(path, sizeof(path));
	world_init(&w, 7, 12);
	writer = create(path, &w, NULL);
	for (int i = 0; i < 1500; i++) { /* 150 s */
		struct frame *f = world_tick(&w, TICK + (int64_t)random_below(&w.random, 100000));

		assert_int_equal(record_frame(writer, f), 0);
		if (i == 777) {
			assert_int_equal(record_flush(writer), 0);
			live = check_live(path, &w);
		}
	}
	assert_int_equal(record_flush(writer), 0);
	assert_int_equal(record_refresh(live), 0);
	check_samples(live, &w, w.t_ns);
	check_entities(live, &w);
	record_close(live);

	world_run(&w, &run);
	run.state = RUN_ENDED;
	run.ended_mono_ns = w.t_ns + 5;
	run.has_exit = true;
	run.exit_code = 3;
	run.rusage_cpu_ns = 123456789;
	record_set_verdict(writer, verdict);
	assert_int_equal(record_finish(writer, &run), 0);
	snprintf(wal, sizeof(wal), "%s-wal", path);
	assert_int_equal(access(wal, F_OK), -1);

	r = open_record(path);
	check_samples(r, &w, w.t_ns);
	check_entities(r, &w);
	check_run(r, &run);
	check_happenings(r, &w);
	assert_string_equal(record_verdict(r), verdict);
	record_close(r);
	run_info_done(&run);
	world_done(&w);
	test_path_rm(path);
}

static void folder_mode(const char *path, mode_t mode)
{
	char folder[256];

	snprintf(folder, sizeof(folder), "%s", path);
	*strrchr(folder, '/') = '\0';
	assert_int_equal(chmod(folder, mode), 0);
}

/* An abandoned file is what a killed recorder leaves; whoever opens it first closes it. In this
 * process the recorder's pid is alive, so the row is made to name one that is not. */
static void test_interrupted(void **state)
{
	char path[256], wal[300];
	struct world w;
	struct record_writer *writer;
	struct record *r;
	sqlite3 *db;
	struct window win;

	(void)state;
	test_path(path, sizeof(path));
	world_init(&w, 8, 6);
	writer = create(path, &w, NULL);
	for (int i = 0; i < 700; i++)
		record_frame(writer, world_tick(&w, TICK));
	record_flush(writer);
	record_abandon(writer);
	snprintf(wal, sizeof(wal), "%s-wal", path);
	assert_int_equal(access(wal, F_OK), 0);

	r = open_record(path);
	assert_int_equal(record_run(r)->state, RUN_GOING);
	record_close(r);

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "UPDATE run SET recorder_start = 1", 0, 0, 0), SQLITE_OK);
	sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	sqlite3_close(db);
	/* where others may put a journal beside it, it is read as it is */
	folder_mode(path, 0777);
	record_close(open_record(path));
	assert_int_equal(access(wal, F_OK), 0);
	folder_mode(path, 0700);
	r = open_record(path);
	assert_int_equal(record_run(r)->state, RUN_INTERRUPTED);
	assert_int_equal(record_run(r)->ended_mono_ns, w.t_ns);
	assert_int_equal(access(wal, F_OK), -1);
	check_samples(r, &w, w.t_ns);
	win = record_window(r, 0, 0);
	for (size_t i = 0; i < window_entities(&win)->rows.n; i++) {
		const struct entity *e = &window_entities(&win)->rows.v[i];

		if (e->kind == ENTITY_PROC || e->kind == ENTITY_THREAD)
			assert_true(e->gone_ns > 0 && e->gone_ns <= w.t_ns);
	}
	record_close(r);
	world_done(&w);
	test_path_rm(path);
}

/* Two readers while it is written: neither keeps the writer waiting, and both see what came. */
static void test_end_with_a_reader(void **state)
{
	char path[256];
	struct world w;
	struct record_writer *writer;
	struct record *r, *again;

	(void)state;
	test_path(path, sizeof(path));
	world_init(&w, 15, 4);
	writer = create(path, &w, NULL);
	for (int i = 0; i < 200; i++)
		record_frame(writer, world_tick(&w, TICK));
	record_flush(writer);
	r = open_record(path);
	check_samples(r, &w, w.t_ns);
	for (int i = 0; i < 200; i++)
		record_frame(writer, world_tick(&w, TICK));
	assert_int_equal(record_finish(writer, NULL), 0);
	assert_int_equal(record_refresh(r), 0);
	check_samples(r, &w, w.t_ns);
	again = open_record(path);
	check_samples(again, &w, w.t_ns);
	record_close(again);
	record_close(r);
	world_done(&w);
	test_path_rm(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_live_and_finished),
		cmocka_unit_test(test_interrupted),
		cmocka_unit_test(test_end_with_a_reader),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
