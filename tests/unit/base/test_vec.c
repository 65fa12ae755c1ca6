/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "base/vec.h"

struct item {
	uint64_t a;
	char b[13];
};

static void pushes_are_zeroed_and_kept(void **state)
{
	VEC(struct item) v = { 0 };

	(void)state;
	for (size_t i = 0; i < 5000; i++) {
		struct item *it = vec_push(&v);

		assert_non_null(it);
		assert_ptr_equal(it, &v.v[v.n - 1]);
		assert_true(it->a == 0 && it->b[0] == 0 && it->b[12] == 0);
		it->a = i;
		memset(it->b, 0xff, sizeof(it->b));
	}
	assert_int_equal(v.n, 5000);
	for (size_t i = 0; i < v.n; i++)
		assert_true(v.v[i].a == i);
	vec_done(&v);
	assert_null(v.v);
	assert_int_equal(v.n + v.cap, 0);
	vec_done(&v);
}

/* Once warm, a frame's arrays are emptied and filled again every tick without an allocation. */
static void warm_does_not_move(void **state)
{
	VEC(uint32_t) v = { 0 };
	uint32_t *first;
	size_t cap;

	(void)state;
	for (int i = 0; i < 1000; i++)
		assert_non_null(vec_push(&v));
	first = v.v;
	cap = v.cap;
	for (int tick = 0; tick < 10; tick++) {
		v.n = 0;
		for (int i = 0; i < 1000; i++)
			*vec_push(&v) = (uint32_t)i;
	}
	assert_ptr_equal(v.v, first);
	assert_int_equal(v.cap, cap);
	vec_done(&v);
}

static void reserve(void **state)
{
	VEC(struct item) v = { 0 };

	(void)state;
	assert_true(vec_reserve(&v, 100));
	assert_true(v.cap >= 100);
	assert_int_equal(v.n, 0);
	assert_true(vec_reserve(&v, 10));
	assert_false(vec_reserve(&v, (size_t)-1 / sizeof(struct item)));
	assert_false(vec_reserve(&v, (size_t)-1));
	assert_true(v.cap >= 100); /* as it was */
	vec_done(&v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pushes_are_zeroed_and_kept),
		cmocka_unit_test(warm_does_not_move),
		cmocka_unit_test(reserve),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
