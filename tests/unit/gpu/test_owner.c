/* SPDX-License-Identifier: MIT */
#include "fixture.h"

#include "gpu/owner.h"

#include <errno.h>

#define NSPID(text, c) gpu_nspid((text), sizeof(text) - 1, (c))

static void test_nspid(void **state)
{
	struct gpu_candidate c = { 0 };

	(void)state;
	assert_true(NSPID("Name:\tx\nNSpid:\t4312\t17\nThreads:\t1\n", &c));
	assert_int_equal(c.inner[0], 17);
	assert_int_equal(c.inner[1], 0);
	assert_true(NSPID("NSpid:\t4312", &c));
	assert_int_equal(c.inner[0], 0);
	/* Deeper than there is room for: the innermost is kept. */
	assert_true(NSPID("NSpid:\t1\t2\t3\t4\t5\t6\t7\n", &c));
	assert_int_equal(c.inner[0], 2);
	assert_int_equal(c.inner[3], 7);
	assert_false(NSPID("Pid:\t4312\n", &c));
	assert_false(NSPID("NSpid:\n", &c));
	assert_false(NSPID("NSpid:\t1\t99999999999\n", &c));
	assert_false(NSPID("NSpid:\t1\t0\n", &c));
	assert_false(NSPID("", &c));
	assert_int_equal(c.inner[3], 7);
}

static void test_host(void **state)
{
	const struct gpu_candidate all[] = { { .pid = 10 }, { .pid = 11, .inner = { 10 } } };
	struct gpu_owner o;

	(void)state;
	/* On the host the number is the number, whatever is loaded and whatever is inside. */
	o = gpu_owner_find(10, true, all, 2);
	assert_int_equal(o.pid, 10);
	o = gpu_owner_find(17, true, all, 2);
	assert_int_equal(o.pid, 0);
	assert_non_null(o.why);
	o = gpu_owner_find(0, true, all, 2);
	assert_int_equal(o.pid, 0);
	assert_non_null(o.why);
	o = gpu_owner_find(-5, false, NULL, 0);
	assert_int_equal(o.pid, 0);
	assert_non_null(o.why);
}

/* A driver that passes numbers on as the process sees them: the process of that number here is an
 * accident when it has no GPU code and one further in has. */
static void test_host_inner(void **state)
{
	struct gpu_candidate all[] = {
		{ .pid = 1, .gpu_known = true },
		{ .pid = 900, .inner = { 1 }, .gpu_known = true, .gpu_code = true },
		{ .pid = 901, .inner = { 1 }, .gpu_known = true, .gpu_code = true },
	};
	struct gpu_owner o;

	(void)state;
	assert_int_equal(gpu_owner_find(1, true, all, 2).pid, 900);
	assert_int_equal(gpu_owner_find(1, true, all + 1, 1).pid, 900);
	o = gpu_owner_find(1, true, all, 3);
	assert_int_equal(o.pid, 0);
	assert_non_null(o.why);
	all[0].gpu_known = false;
	assert_int_equal(gpu_owner_find(1, true, all, 2).pid, 0);
	all[0].gpu_known = all[0].gpu_code = true;
	assert_int_equal(gpu_owner_find(1, true, all, 2).pid, 1);
}

static void test_container(void **state)
{
	const struct gpu_candidate by_chance[] = { { .pid = 40, .gpu_known = true } };
	const struct gpu_candidate same[] = {
		{ .pid = 40, .gpu_known = true, .gpu_code = true },
		{ .pid = 41, .gpu_known = true, .gpu_code = true },
	};
	const struct gpu_candidate inner[] = {
		{ .pid = 900, .inner = { 40 }, .gpu_known = true, .gpu_code = true },
		{ .pid = 901, .inner = { 41 }, .gpu_known = true, .gpu_code = true },
	};
	const struct gpu_candidate both[] = { same[0], inner[0] };
	const struct gpu_candidate idle_inner[] = {
		{ .pid = 900, .inner = { 40 }, .gpu_known = true },
	};
	const struct gpu_candidate unknown[] = { { .pid = 40 } };
	struct gpu_owner o;

	(void)state;
	o = gpu_owner_find(40, false, by_chance, 1);
	assert_int_equal(o.pid, 0);
	assert_non_null(strstr(o.why, "no GPU code"));
	assert_int_equal(gpu_owner_find(40, false, same, 2).pid, 40);
	assert_int_equal(gpu_owner_find(40, false, inner, 2).pid, 900);
	o = gpu_owner_find(40, false, both, 2);
	assert_int_equal(o.pid, 0);
	assert_non_null(strstr(o.why, "several"));
	assert_int_equal(gpu_owner_find(40, false, idle_inner, 1).pid, 0);
	o = gpu_owner_find(40, false, unknown, 1);
	assert_int_equal(o.pid, 0);
	assert_non_null(strstr(o.why, "cannot be looked up"));
	o = gpu_owner_find(99, false, same, 2);
	assert_int_equal(o.pid, 0);
	assert_non_null(strstr(o.why, "another pid namespace"));
}

static void test_first_namespace(void **state)
{
	int host = open(ROOTS "/gpu-amd-mi300", O_RDONLY | O_DIRECTORY);
	int container = open(ROOTS "/gpu-mixed", O_RDONLY | O_DIRECTORY);
	int nothing = open(ROOTS "/no-psi", O_RDONLY | O_DIRECTORY);

	(void)state;
	assert_true(gpu_first_namespace(host));
	assert_false(gpu_first_namespace(container));
	assert_false(gpu_first_namespace(nothing));
	close(host);
	close(container);
	close(nothing);
}

static void test_code_loaded(void **state)
{
	static const char tail[] = " /usr/lib/libcuda.so.535.54\n";
	char dir[] = "/tmp/spotter-owner-XXXXXX";
	char *maps = malloc(40000);
	int root = open(ROOTS "/gpu-mixed", O_RDONLY | O_DIRECTORY);

	(void)state;
	assert_int_equal(gpu_code_loaded(root, 17), 1);
	assert_int_equal(gpu_code_loaded(root, 18), 0);
	assert_int_equal(gpu_code_loaded(root, 19), -ENOENT);
	close(root);
	/* The name over the end of a chunk, at each place it can be cut. */
	assert_non_null(mkdtemp(dir));
	assert_non_null(maps);
	root = open(dir, O_RDONLY | O_DIRECTORY);
	for (size_t at = 16384 - sizeof(tail); at <= 16384; at++) {
		memset(maps, 'x', 40000);
		memcpy(maps + at, tail, sizeof(tail) - 1);
		fixture_put(dir, "proc/5/maps", maps, 40000);
		assert_int_equal(gpu_code_loaded(root, 5), 1);
	}
	memset(maps, 0, 40000);
	fixture_put(dir, "proc/5/maps", maps, 40000);
	assert_int_equal(gpu_code_loaded(root, 5), 0);
	fixture_put(dir, "proc/5/maps", maps, 0);
	assert_int_equal(gpu_code_loaded(root, 5), 0);
	close(root);
	free(maps);
	fixture_remove(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nspid),           cmocka_unit_test(test_host),
		cmocka_unit_test(test_host_inner),      cmocka_unit_test(test_container),
		cmocka_unit_test(test_first_namespace), cmocka_unit_test(test_code_loaded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
