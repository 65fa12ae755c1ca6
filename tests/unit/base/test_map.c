/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "base/auto.h"
#include "base/map.h"

static void empty_is_valid(void **state)
{
	struct map m = { 0 };
	uint32_t v = 9;

	(void)state;
	assert_false(map_get(&m, 1, &v));
	assert_int_equal(v, 9);
	assert_false(map_del(&m, 1));
	map_clear(&m);
	map_done(&m);
	map_done(&m);
}

static void put_get_del(void **state)
{
	auto_done(map) struct map m = { 0 };
	uint32_t v;

	(void)state;
	assert_true(map_put(&m, 0, 10));
	assert_true(map_put(&m, UINT64_MAX, 11));
	assert_true(map_put(&m, 0, 12));
	assert_int_equal(m.n, 2);
	assert_true(map_get(&m, 0, &v));
	assert_int_equal(v, 12);
	assert_true(map_get(&m, UINT64_MAX, &v));
	assert_int_equal(v, 11);
	assert_true(map_del(&m, 0));
	assert_false(map_del(&m, 0));
	assert_false(map_get(&m, 0, &v));
	assert_int_equal(m.n, 1);
	map_clear(&m);
	assert_int_equal(m.n, 0);
	assert_false(map_get(&m, UINT64_MAX, &v));
}

/* A naive model: arrays indexed by a small key space, so that puts, hits, misses and deletions all
 * happen often, and runs of neighbours wrap around the end of the table. */
enum { KEYS = 700, OPS = 60000 };

struct model {
	bool there[KEYS];
	uint32_t value[KEYS];
	size_t n;
};

static void compare(const struct map *m, const struct model *model, uint64_t (*key)(unsigned))
{
	assert_int_equal(m->n, model->n);
	for (unsigned k = 0; k < KEYS; k++) {
		uint32_t v = 0;

		assert_int_equal(map_get(m, key(k), &v), model->there[k]);
		if (model->there[k])
			assert_int_equal(v, model->value[k]);
	}
}

static void against_model(uint64_t (*key)(unsigned))
{
	auto_done(map) struct map m = { 0 };
	struct model model = { 0 };
	uint64_t random = 88172645463325252ull;

	for (unsigned i = 0; i < OPS; i++) {
		unsigned k;

		random ^= random << 13, random ^= random >> 7, random ^= random << 17;
		k = (unsigned)(random >> 20) % KEYS;
		if (random % 100 < 48) {
			assert_true(map_put(&m, key(k), i));
			model.n += !model.there[k];
			model.there[k] = true;
			model.value[k] = i;
		} else {
			assert_int_equal(map_del(&m, key(k)), model.there[k]);
			model.n -= model.there[k];
			model.there[k] = false;
		}
		if (i % 997 == 0)
			compare(&m, &model, key);
	}
	compare(&m, &model, key);
}

static uint64_t small_key(unsigned k)
{
	return k;
}

static uint64_t pid_and_start(unsigned k)
{
	return (uint64_t)k << 40 | 12345678;
}

/* Inverse of map_mix up to its last shift: keys whose homes collide in the low bits. */
static uint64_t colliding_key(unsigned k)
{
	static uint64_t found[KEYS];
	static unsigned n;
	static uint64_t next;

	while (n <= k) {
		if ((map_mix(next) & 1023) >= 1016)
			found[n++] = next;
		next++;
	}
	return found[k];
}

static void model_small_keys(void **state)
{
	(void)state;
	against_model(small_key);
}

static void model_pid_keys(void **state)
{
	(void)state;
	against_model(pid_and_start);
}

static void model_colliding_keys(void **state)
{
	(void)state;
	against_model(colliding_key);
}

/* pids come and go for days: the table must not grow beyond what its largest moment needed. */
static void churn_does_not_grow(void **state)
{
	auto_done(map) struct map m = { 0 };
	size_t cap;

	(void)state;
	for (uint64_t k = 0; k < 300; k++)
		assert_true(map_put(&m, k, 1));
	cap = m.cap;
	for (uint64_t k = 300; k < 200000; k++) {
		assert_true(map_del(&m, k - 300));
		assert_true(map_put(&m, k, 1));
	}
	assert_int_equal(m.cap, cap);
	assert_int_equal(m.n, 300);
}

static void mix_spreads_small_keys(void **state)
{
	unsigned hits[64] = { 0 };

	(void)state;
	for (uint64_t k = 0; k < 6400; k++)
		hits[map_mix(k << 32) & 63]++;
	for (unsigned i = 0; i < 64; i++)
		assert_in_range(hits[i], 50, 150);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(empty_is_valid),         cmocka_unit_test(put_get_del),
		cmocka_unit_test(model_small_keys),       cmocka_unit_test(model_pid_keys),
		cmocka_unit_test(model_colliding_keys),   cmocka_unit_test(churn_does_not_grow),
		cmocka_unit_test(mix_spreads_small_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
