/* SPDX-License-Identifier: MIT
 *
 * Records of several machines as one run: whose rank is late, by which clock, and what is refused.
 */
#include "../unit.h"

#include "nodes_made.h"

#include "model/node.h"
#include "record/join.h"
#include "record/reader.h"

#include <errno.h>
#include <math.h>
#include <unistd.h>

struct world {
	char folder[64];
	char paths[NODES][128];
	const char *labels[NODES];
	struct record *records[NODES];
	struct record *joined;
	struct verdict v;
	struct join j;
	struct err e;
};

static void open_world(struct world *w, int who, enum rank_does does)
{
	*w = (struct world){ .folder = "/tmp/spotter-join-XXXXXX" };
	assert_non_null(mkdtemp(w->folder));
	make_nodes(w->folder, SCENARIOS, who, does);
	for (unsigned i = 0; i < NODES; i++) {
		snprintf(w->paths[i], sizeof(w->paths[i]), "%s/node%u.spot", w->folder, i);
		w->labels[i] = w->paths[i];
		if (record_open(w->paths[i], &w->records[i], &w->e) < 0)
			fail_msg("%s", w->e.text);
	}
}

static void close_world(struct world *w)
{
	char path[128];

	join_done(&w->j);
	verdict_done(&w->v);
	record_close(w->joined);
	for (unsigned i = 0; i < NODES; i++) {
		record_close(w->records[i]);
		unlink(w->paths[i]);
	}
	snprintf(path, sizeof(path), "%s/all.spot", w->folder);
	unlink(path);
	assert_int_equal(rmdir(w->folder), 0);
}

/* In another order than that of the ranks. */
static void join_all(struct world *w, bool force)
{
	struct record *const mixed[] = { w->records[2], w->records[0], w->records[3],
					 w->records[1] };
	const char *const labels[] = { "c", "a", "d", "b" };
	struct record_writer *writer = NULL;
	struct window whole;
	char path[128];

	if (join_open(&w->j, mixed, labels, NODES, force, &w->e) < 0)
		fail_msg("%s", w->e.text);
	snprintf(path, sizeof(path), "%s/all.spot", w->folder);
	if (record_create(path, &w->j.run, &(struct record_options){ 0 }, &writer, &w->e) < 0)
		fail_msg("%s", w->e.text);
	assert_int_equal(join_write(&w->j, writer, NULL, NULL), 0);
	assert_int_equal(record_finish(writer, &w->j.run), 0);
	if (record_open(path, &w->joined, &w->e) < 0)
		fail_msg("%s", w->e.text);
	whole = record_window(w->joined, 0, 0);
	assert_int_equal(explain(&whole, &w->v), 0);
}

static const struct finding *found(const struct world *w, const char *cause)
{
	for (size_t i = 0; i < w->v.findings.n; i++)
		if (strcmp(w->v.findings.v[i].cause, cause) == 0)
			return &w->v.findings.v[i];
	return NULL;
}

static const struct finding *must_find(const struct world *w, const char *cause)
{
	static const struct finding none;
	const struct finding *x = found(w, cause);

	if (!x)
		fail_msg("no finding %s", cause);
	return x ? x : &none;
}

static void slow_loader_is_named(void **state)
{
	struct world w;
	const struct finding *x;

	(void)state;
	open_world(&w, 5, RANK_LATE_DATA);
	join_all(&w, false);
	x = must_find(&w, "input_straggler");
	assert_non_null(strstr(x->title, "rank 5 (pid 1001 on node2)"));
	assert_string_equal(x->where.file, "/home/u/train.py");
	assert_true(near(x->speedup, 1 / (1 - 0.30), 0.05));
	assert_null(found(&w, "compute_straggler"));
	assert_null(found(&w, "exposed_communication"));
	close_world(&w);
}

static void slow_rank_is_named(void **state)
{
	struct world w;
	const struct finding *x;

	(void)state;
	open_world(&w, 6, RANK_SLOW);
	join_all(&w, false);
	x = must_find(&w, "compute_straggler");
	assert_non_null(strstr(x->title, "rank 6 (pid 1000 on node3)"));
	/* the line that only this rank is at: places are the same on all machines */
	assert_int_equal(x->where.line, 51);
	/* and its machine's only GPU is hot: the fourth of all */
	assert_non_null(strstr(must_find(&w, "gpu_throttled")->title, "GPU 3"));
	assert_null(found(&w, "input_straggler"));
	close_world(&w);
}

static void everything_is_there_once(void **state)
{
	struct world w;
	struct window whole;
	const struct entity_table *t;
	size_t n = 0, hosts = 0, processes = 0, gpus = 0, notes = 0;
	const struct window_step *steps;
	const struct window_event *events;
	double cpu;

	(void)state;
	open_world(&w, -1, RANK_FINE);
	join_all(&w, false);
	whole = record_window(w.joined, 0, 0);
	t = window_entities(&whole);
	for (size_t i = 0; i < t->rows.n; i++) {
		const struct entity *e = &t->rows.v[i];

		hosts += e->kind == ENTITY_HOST;
		processes += e->kind == ENTITY_PROC;
		gpus += e->kind == ENTITY_GPU;
		if (e->kind == ENTITY_GPU)
			assert_int_equal(e->key,
					 strtol(node_name(t, e) + 4, NULL, 10)); /* "node2" */
		if (e->kind == ENTITY_THREAD && e->parent)
			assert_string_equal(node_name(t, e),
					    node_name(t, entity_find(t, e->parent)));
	}
	assert_int_equal(hosts, NODES + 1);
	assert_int_equal(processes, NODES * 3);
	assert_int_equal(gpus, NODES);
	steps = whole.ops->steps(whole.src, &n);
	assert_int_equal(n, NODES * RANKS_EACH * 90);
	for (size_t i = 0; i < n; i++)
		assert_true(near((double)(steps[i].end_ns - steps[i].begin_ns), 0.4e9, 1e-6) ||
			    steps[i].begin_ns == steps[i].end_ns);
	events = whole.ops->events(whole.src, &n);
	for (size_t i = 0; i < n; i++)
		notes += strncmp(events[i].text, "of machine ", 11) == 0;
	assert_int_equal(notes, NODES);
	/* 48.1 s on each of four */
	assert_true(window_delta(&whole, M_JOB_CPU, ID_JOB, &cpu));
	assert_true(near(cpu, NODES * 48.1, 0.02));
	assert_true(window_last(&whole, M_JOB_CORES_ALLOWED, ID_JOB, &cpu));
	assert_true(cpu == NODES * 16);
	/* time of all CPUs: what each machine's grew by, not what it was since it booted */
	assert_true(window_delta(&whole, M_CPU_USER, ID_HOST, &cpu));
	assert_true(near(cpu, NODES * 48, 0.05));
	/* 4 GB on each; the limit of one machine's group is not that of all */
	assert_true(near(w.v.usage.memory_used, NODES * 4e9, 0.01));
	assert_true(!w.v.usage.memory_limit || strcmp(w.v.usage.memory_limit, "cgroup") != 0);
	assert_true(near(window_seconds(&whole), 40, 0.01));
	assert_int_equal(w.v.steps.ranks, NODES * RANKS_EACH);
	close_world(&w);
}

static void clocks_are_told(void **state)
{
	struct world w;
	char text[JOIN_NOTE_BYTES];

	(void)state;
	open_world(&w, -1, RANK_FINE);
	join_all(&w, false);
	assert_int_equal(w.j.machines.n, NODES);
	for (unsigned i = 1; i < NODES; i++) {
		const struct join_clock *c = &w.j.clocks.v[w.j.machines.v[i].clock];

		assert_int_equal(c->by, JOIN_BY_STEPS);
		assert_int_equal(c->steps, 90);
		assert_true(fabs((double)c->offset_ns / 1e9 - node_clock[i]) < 1e-4);
	}
	assert_string_equal(join_clock_text(&w.j, 0, text, sizeof(text)), "");
	assert_non_null(strstr(join_clock_text(&w.j, 1, text, sizeof(text)),
			       "node1: clock 1.2 s ahead of node0's, by 90 steps"));
	assert_non_null(
	    strstr(join_clock_text(&w.j, 2, text, sizeof(text)), "40.0 s behind node0's"));
	close_world(&w);
}

static void what_is_no_run_is_refused(void **state)
{
	struct world w;
	struct record *twice[2], *copy = NULL;
	const char *const labels[] = { "one", "two" };
	struct err e = { 0 };
	struct join j;

	(void)state;
	open_world(&w, -1, RANK_FINE);
	twice[0] = twice[1] = w.records[1];
	assert_int_equal(join_open(&j, twice, labels, 2, true, &e), -EEXIST);
	assert_string_equal(e.text, "'one' and 'two' are the same run");
	join_done(&j);
	/* ranks 2 and 3 again, of another machine */
	unlink(w.paths[3]);
	make_node(w.paths[3], SCENARIOS, 1, -1, RANK_FINE);
	{
		sqlite3 *db = NULL;

		assert_int_equal(sqlite3_open(w.paths[3], &db), SQLITE_OK);
		assert_int_equal(
		    sqlite3_exec(db, "UPDATE run SET id = 'x', boot_id = 'y'", NULL, NULL, NULL),
		    SQLITE_OK);
		assert_int_equal(sqlite3_close(db), SQLITE_OK);
	}
	assert_int_equal(record_open(w.paths[3], &copy, &e), 0);
	twice[1] = copy;
	e = (struct err){ 0 };
	assert_int_equal(join_open(&j, twice, labels, 2, false, &e), -EINVAL);
	assert_string_equal(e.text, "rank 2 is in 'one' and in 'two'");
	join_done(&j);
	e = (struct err){ 0 };
	assert_int_equal(join_open(&j, twice, labels, 2, true, &e), 0);
	assert_string_equal(j.notes.v[0].text, "rank 2 is in 'one' and in 'two'");
	join_done(&j);
	/* ranks that nobody has */
	twice[1] = w.records[2];
	e = (struct err){ 0 };
	assert_int_equal(join_open(&j, twice, labels, 2, false, &e), 0);
	assert_string_equal(j.notes.v[0].text,
			    "of ranks 0 to 5 these are in none of the records: 0, 1");
	join_done(&j);
	e = (struct err){ 0 };
	assert_int_equal(join_open(&j, twice, labels, 1, false, &e), -EINVAL);
	join_done(&j);
	record_close(copy);
	close_world(&w);
}

static void only_once(void **state)
{
	struct world w;
	struct record *pair[2];
	const char *const labels[] = { "all", "one" };
	struct err e = { 0 };
	struct join j;

	(void)state;
	open_world(&w, -1, RANK_FINE);
	join_all(&w, false);
	pair[0] = w.joined;
	pair[1] = w.records[0];
	assert_int_equal(join_open(&j, pair, labels, 2, true, &e), -EINVAL);
	assert_string_equal(e.text, "'all' is a merged run itself");
	join_done(&j);
	close_world(&w);
}

static void ranks_in_words(void **state)
{
	int32_t some[] = { 0, 1, 2, 5, 7, 8 };
	struct join_part p = { .ranks = { some, 6, 6 } };
	char text[64];

	(void)state;
	assert_string_equal(join_ranks_text(&p, text, sizeof(text)), "0-2, 5, 7, 8");
	p.ranks.n = 0;
	assert_string_equal(join_ranks_text(&p, text, sizeof(text)), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slow_loader_is_named),
		cmocka_unit_test(slow_rank_is_named),
		cmocka_unit_test(everything_is_there_once),
		cmocka_unit_test(clocks_are_told),
		cmocka_unit_test(what_is_no_run_is_refused),
		cmocka_unit_test(only_once),
		cmocka_unit_test(ranks_in_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
