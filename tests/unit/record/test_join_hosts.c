/* SPDX-License-Identifier: MIT
 *
 * Records of two containers of one host as one run: the host is there once. Those of two hosts, or of containers that are shown a
 * share of it each, are added.
 */
#include "../unit.h"

#include "base/clock.h"
#include "base/err.h"
#include "record/join.h"
#include "record/reader.h"
#include "record/writer.h"
#include "world.h"

#include <sqlite3.h>
#include <stdlib.h>

enum { PARTS = 2, CPUS = 16, MEMORY_GB = 64 };

struct pair {
	char paths[PARTS][256], all[256];
	struct record *records[PARTS], *joined;
	struct join j;
};

static void make_record(char *path, size_t size, int part, const char *change)
{
	char id[40], sql[300], *message = NULL;
	struct record_writer *writer;
	struct run_info run;
	struct world w;
	struct err e = { 0 };
	sqlite3 *db;

	test_path(path, size);
	world_init(&w, 3 + (uint64_t)part, 4);
	world_run(&w, &run);
	snprintf(id, sizeof(id), "20261115-211209-000%d", part);
	snprintf(run.id, sizeof(run.id), "%s", id);
	assert_int_equal(record_create(path, &run, NULL, &writer, &e), 0);
	for (int i = 0; i < 100; i++)
		record_frame(writer, world_tick(&w, 100 * NS_PER_MS));
	run.state = RUN_ENDED;
	run.ended_mono_ns = w.t_ns;
	assert_int_equal(record_finish(writer, &run), 0);
	/* another container: pids are its own, and so is the name */
	snprintf(sql, sizeof(sql),
		 "UPDATE run SET recorder_namespace = %d, hostname = 'box%d', boot_id = 'one'; %s",
		 part + 1, part, change);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	sqlite3_exec(db, sql, NULL, NULL, &message);
	if (message)
		fail_msg("%s: %s", sql, message);
	sqlite3_close(db);
	run_info_done(&run);
	world_done(&w);
}

/* change: SQL on the second one. */
static void join_two(struct pair *p, const char *change)
{
	const char *const labels[PARTS] = { "a", "b" };
	struct record_writer *writer;
	struct err e = { 0 };

	*p = (struct pair){ 0 };
	for (int i = 0; i < PARTS; i++) {
		make_record(p->paths[i], sizeof(p->paths[i]), i, i ? change : "");
		if (record_open(p->paths[i], &p->records[i], &e) < 0)
			fail_msg("%s", e.text);
	}
	if (join_open(&p->j, p->records, labels, PARTS, false, &e) < 0)
		fail_msg("%s", e.text);
	test_path(p->all, sizeof(p->all));
	assert_int_equal(record_create(p->all, &p->j.run, NULL, &writer, &e), 0);
	assert_int_equal(join_write(&p->j, writer, NULL, NULL), 0);
	assert_int_equal(record_finish(writer, &p->j.run), 0);
	if (record_open(p->all, &p->joined, &e) < 0)
		fail_msg("%s", e.text);
}

static void pair_done(struct pair *p)
{
	join_done(&p->j);
	record_close(p->joined);
	test_path_rm(p->all);
	for (int i = 0; i < PARTS; i++) {
		record_close(p->records[i]);
		test_path_rm(p->paths[i]);
	}
}

/* While all of them are there. */
static double memory(struct record *r)
{
	struct window w = record_window(r, 0, 0);
	struct series_stat s;

	assert_int_equal(window_stat(&w, M_MEM_TOTAL, ID_HOST, &s), 0);
	return s.max;
}

static bool is_noted(const struct join *j, const char *words)
{
	for (size_t i = 0; i < j->notes.n; i++)
		if (strstr(j->notes.v[i].text, words))
			return true;
	return false;
}

static void assert_hosts(const struct pair *p, int hosts)
{
	double one = memory(p->records[0]);

	assert_int_equal(p->j.machines.n, PARTS);
	assert_true(one > 0 && near(memory(p->records[1]), one, 1e-6));
	assert_true(near(memory(p->joined), hosts * one, 1e-6));
	assert_int_equal(is_noted(&p->j, "box1 is on the host of box0"), hosts == 1);
}

static void two_containers(void **state)
{
	struct pair p;

	(void)state;
	join_two(&p, "");
	assert_hosts(&p, 1);
	assert_int_equal(p.j.run.machine.cpus, CPUS);
	assert_int_equal(p.j.run.machine.memory_bytes, (int64_t)MEMORY_GB << 30);
	pair_done(&p);
}

static void two_hosts(void **state)
{
	struct pair p;

	(void)state;
	join_two(&p, "UPDATE run SET boot_id = 'two'");
	assert_hosts(&p, 2);
	assert_int_equal(p.j.run.machine.cpus, 2 * CPUS);
	pair_done(&p);
	/* nobody knows what boot it was */
	join_two(&p, "UPDATE run SET boot_id = ''");
	assert_hosts(&p, 2);
	pair_done(&p);
}

static void shares_of_a_host(void **state)
{
	struct pair p;

	(void)state;
	join_two(&p, "UPDATE run SET cpus = 4");
	assert_hosts(&p, 2);
	assert_int_equal(p.j.run.machine.cpus, CPUS + 4);
	pair_done(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_containers),
		cmocka_unit_test(two_hosts),
		cmocka_unit_test(shares_of_a_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
