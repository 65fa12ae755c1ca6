/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "model/metric_family.h"
#include "model/node.h"

static void add(struct entity_table *t, uint32_t id, uint32_t parent, enum entity_kind kind,
		int64_t key, const char *name)
{
	assert_int_equal(entity_table_add(t, &(struct entity){ .id = id,
							       .parent = parent,
							       .kind = kind,
							       .key = key,
							       .name = (char *)name,
							       .detail = (char *)"" }),
			 0);
}

static const char *name_of(const struct entity_table *t, uint32_t id)
{
	return node_name(t, entity_find(t, id));
}

static void things_know_their_machine(void **state)
{
	struct entity_table t = { 0 };
	char text[64];

	(void)state;
	add(&t, ID_HOST, 0, ENTITY_HOST, 0, "machines");
	add(&t, ID_JOB, ID_HOST, ENTITY_JOB, 0, "job");
	add(&t, 20, 0, ENTITY_HOST, 1, "a");
	add(&t, 21, 0, ENTITY_HOST, 2, "b\033[2J");
	add(&t, 30, 0, ENTITY_PROC, 4242, "python3");
	add(&t, 31, 0, ENTITY_PROC, node_key(1, 4242), "python3");
	add(&t, 32, 31, ENTITY_THREAD, node_key(1, 4243), "python3");
	add(&t, 33, 21, ENTITY_GPU, 9, "H100");
	add(&t, 34, 33, ENTITY_GPU_PROC, node_key(1, 4242), "python3");
	add(&t, 35, 21, ENTITY_JOB, 2, "job");
	add(&t, 36, 35, ENTITY_CGROUP, 0, "docker");
	add(&t, 37, 38, ENTITY_DISK, 0, "in a circle");
	add(&t, 38, 37, ENTITY_DISK, 0, "in a circle");
	add(&t, 39, 0, ENTITY_PROC, node_key(7, 1), "of nobody");
	assert_true(node_several(&t));
	assert_string_equal(name_of(&t, 30), "a");
	for (uint32_t id = 31; id <= 36; id++)
		assert_string_equal(name_of(&t, id), "b\033[2J");
	assert_string_equal(name_of(&t, ID_HOST), "");
	assert_string_equal(name_of(&t, ID_JOB), "");
	assert_string_equal(name_of(&t, 37), "");
	assert_string_equal(name_of(&t, 39), "");
	assert_string_equal(node_pid_text(&t, entity_find(&t, 30), text, sizeof(text)),
			    "4242 on a");
	assert_string_equal(node_pid_text(&t, entity_find(&t, 31), text, sizeof(text)),
			    "4242 on b?[2J");
	assert_int_equal(node_own_key(node_key(1023, 4194303)), 4194303);
	entity_table_done(&t);
}

static void one_machine_has_no_nodes(void **state)
{
	struct entity_table t = { 0 };
	char text[64];

	(void)state;
	add(&t, ID_HOST, 0, ENTITY_HOST, 0, "machine");
	add(&t, 30, 0, ENTITY_PROC, 4242, "python3");
	add(&t, 31, ID_HOST, ENTITY_GPU, 0, "H100");
	assert_false(node_several(&t));
	assert_null(node_host(&t, entity_find(&t, 30)));
	assert_string_equal(name_of(&t, 31), "");
	assert_string_equal(node_pid_text(&t, entity_find(&t, 30), text, sizeof(text)), "4242");
	/* numbers that are no pids stay as they are */
	assert_int_equal(node_key(3, -1), -1);
	assert_int_equal(node_key(3, INT64_MAX), INT64_MAX);
	assert_int_equal(node_own_key(INT64_MAX), INT64_MAX);
	assert_int_equal(node_own_key(-5), -5);
	entity_table_done(&t);
}

/* Two metrics with one name would be one series with two values. */
static void families_tell_their_metrics_apart(void **state)
{
	static struct metric_families all;

	(void)state;
	metric_families(UINT32_MAX, &all);
	assert_true(all.n > 50);
	for (int a = 1; a < METRICS; a++)
		for (int b = a + 1; b < METRICS; b++) {
			struct series_label x, y;

			if (!metrics[a].prometheus[0] ||
			    strcmp(metrics[a].prometheus, metrics[b].prometheus) != 0)
				continue;
			if (!metric_family_label((enum metric_id)a, &x) ||
			    !metric_family_label((enum metric_id)b, &y) ||
			    strcmp(x.name, y.name) != 0 || strcmp(x.value, y.value) == 0)
				fail_msg("%s and %s are both %s", metrics[a].name, metrics[b].name,
					 metrics[a].prometheus);
			assert_int_equal(metrics[a].kind, metrics[b].kind);
			assert_int_equal(metrics[a].unit, metrics[b].unit);
		}
	for (size_t i = 0; i < all.n; i++) {
		const char *name = all.v[i].name;
		size_t n = strlen(name);

		assert_true(n > 6);
		assert_int_equal(strcmp(name + n - 6, "_total") == 0,
				 all.v[i].type == SERIES_COUNTER);
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(name, all.v[k].name);
	}
	metric_families(METRIC_KIND(ENTITY_GPU), &all);
	for (size_t i = 0; i < all.n; i++)
		assert_int_equal(strncmp(all.v[i].name, "spotter_gpu_", 12), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(things_know_their_machine),
		cmocka_unit_test(one_machine_has_no_nodes),
		cmocka_unit_test(families_tell_their_metrics_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
