/* SPDX-License-Identifier: MIT */
#include "rig.h"

#include "collect/limits.h"

#include <errno.h>

static int count(const char *text)
{
	struct scan s = scan_of(text, strlen(text));
	struct cpulist l;

	return cpulist_parse(&s, &l) ? (int)cpulist_count(&l) : -1;
}

static void lists(void **s)
{
	(void)s;
	assert_int_equal(count("0"), 1);
	assert_int_equal(count("0-3,8\n"), 5);
	assert_int_equal(count("\t0-1,1-2\n"), 3);
	assert_int_equal(count("0-8191"), 8192);
	assert_int_equal(count(""), 0);
	assert_int_equal(count("\n"), 0);
	assert_int_equal(count("8192"), -1);
	assert_int_equal(count("3-1"), -1);
	assert_int_equal(count("0-"), -1);
	assert_int_equal(count("-1"), -1);
	assert_int_equal(count("0 1"), -1);
	assert_int_equal(count("0,,1"), -1);
	assert_int_equal(count("1x"), -1);
	assert_int_equal(count("0-99999999999999999999"), -1);
}

static void torment_one(const char *text, size_t n)
{
	struct cpulist l;

	if (limits_affinity_parse(text, n, &l) == 0)
		assert_true(cpulist_count(&l) > 0);
}

static void affinity(void **s)
{
	static const char text[] =
	    "Name:\tCpus_allowed_list:\nCpus_allowed:\t3\nCpus_allowed_list:\t0-1\n";
	struct cpulist l;

	(void)s;
	assert_int_equal(limits_affinity_parse(text, sizeof(text) - 1, &l), 0);
	assert_int_equal(cpulist_count(&l), 2);
	assert_int_equal(limits_affinity_parse("Cpus_allowed_list:\t\n", 20, &l), -EINVAL);
	assert_int_equal(limits_affinity_parse("", 0, &l), -EINVAL);
	rig_torment(text, torment_one);
}

static void least_of_three(void **s)
{
	(void)s;
	assert_int_equal(limits_allowed(8, 16, -1), 8000);
	assert_int_equal(limits_allowed(16, 8, -1), 8000);
	assert_int_equal(limits_allowed(8, 16, 1500), 1500);
	assert_int_equal(limits_allowed(1, 16, 1500), 1000);
	assert_int_equal(limits_allowed(-1, 4, -1), 4000);
	assert_int_equal(limits_allowed(-1, -1, 250), 250);
	assert_int_equal(limits_allowed(3, -1, -1), 3000);
	assert_int_equal(limits_allowed(-1, -1, -1), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists),
		cmocka_unit_test(affinity),
		cmocka_unit_test(least_of_three),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
