/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "model/entity.h"

static void put(struct frame *f, enum life_change change, uint32_t id, int64_t pid,
		const char *name)
{
	frame_life(f,
		   &(struct life){ .change = change,
				   .id = id,
				   .parent = ID_JOB,
				   .kind = ENTITY_PROC,
				   .key = pid,
				   .start_ns = pid * 10 },
		   name, "args");
}

static void life(void **state)
{
	struct entity_table t = { 0 };
	struct frame f = { 0 };
	const struct entity *e;

	(void)state;
	frame_begin(&f, 100, 0);
	put(&f, LIFE_BORN, 20, 7, "bash");
	assert_int_equal(entity_table_frame(&t, &f), 0);
	frame_begin(&f, 200, 0);
	put(&f, LIFE_CHANGED, 20, 7, "python3");
	put(&f, LIFE_CHANGED, 99, 7, "unknown"); /* ignored */
	put(&f, LIFE_GONE, 98, 7, "unknown");
	assert_int_equal(entity_table_frame(&t, &f), 0);
	assert_int_equal(t.rows.n, 1);
	e = entity_find(&t, 20);
	assert_non_null(e);
	assert_string_equal(e->name, "python3");
	assert_string_equal(e->detail, "args");
	assert_int_equal(e->born_ns, 100);
	assert_int_equal(e->gone_ns, 0);
	frame_begin(&f, 300, 0);
	put(&f, LIFE_GONE, 20, 7, "");
	assert_int_equal(entity_table_frame(&t, &f), 0);
	assert_int_equal(entity_find(&t, 20)->gone_ns, 300);
	assert_null(entity_find(&t, 21));
	frame_done(&f);
	entity_table_done(&t);
}

/* A pid that was used again is the later process. Born twice is born once. */
static void reused_pid(void **state)
{
	struct entity_table t = { 0 };
	struct frame f = { 0 };

	(void)state;
	frame_begin(&f, 1, 0);
	put(&f, LIFE_BORN, 20, 7, "first");
	put(&f, LIFE_GONE, 20, 7, "");
	put(&f, LIFE_BORN, 21, 7, "second");
	put(&f, LIFE_BORN, 21, 7, "again");
	assert_int_equal(entity_table_frame(&t, &f), 0);
	assert_int_equal(t.rows.n, 2);
	assert_int_equal(entity_find_pid(&t, 7)->id, 21);
	assert_string_equal(entity_find_pid(&t, 7)->name, "second");
	assert_null(entity_find_pid(&t, 8));
	frame_done(&f);
	entity_table_done(&t);
}

static void forget(void **state)
{
	struct entity_table t = { 0 };
	struct frame f = { 0 };

	(void)state;
	for (uint32_t i = 0; i < 1000; i++) {
		frame_begin(&f, 10 * (i + 1), 0);
		put(&f, LIFE_BORN, 20 + i, i, "x");
		if (i >= 10 && i % 3)
			put(&f, LIFE_GONE, 20 + i - 10, i - 10, "x");
		assert_int_equal(entity_table_frame(&t, &f), 0);
	}
	entity_table_forget(&t, 5000);
	for (uint32_t i = 0; i < 1000; i++) {
		const struct entity *e = entity_find(&t, 20 + i);
		bool ended = i + 10 < 1000 && (i + 10) % 3;
		bool early = 10 * (i + 11) < 5000;

		assert_int_equal(e == NULL, ended && early);
		if (e)
			assert_int_equal(e->key, i);
	}
	for (size_t i = 1; i < t.rows.n; i++)
		assert_true(t.rows.v[i - 1].born_ns < t.rows.v[i].born_ns);
	frame_done(&f);
	entity_table_done(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(life),
		cmocka_unit_test(reused_pid),
		cmocka_unit_test(forget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
