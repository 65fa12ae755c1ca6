/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "collect/proc_parse.h"

#include <stdlib.h>

#define FIELDS                                                                                  \
	" S 1 1234 1234 34816 -1 4194560 541 130 2 3 10 4 7 3 20 0 5 0 8123456 10543104 1310 "  \
	"18446744073709551615 94116350271488 94116350960861 140736512345678 0 0 0 0 0 0 0 0 0 " \
	"17 1 0 0 0 0 0 1 2 3 4 5 6 7 768\n"

/* On the heap, so that a byte too far is seen by the sanitizer. */
static char *heap(const char *text, size_t n)
{
	char *p = malloc(n + 1);

	assert_non_null(p);
	memcpy(p, text, n);
	p[n] = '\0';
	return p;
}

static bool parse(const char *text, struct proc_stat *ret)
{
	char *p = heap(text, strlen(text));
	bool ok = proc_stat_parse(p, strlen(text), ret);

	if (ok) /* the name points into the copy */
		ret->head.name = text + (ret->head.name - p);
	free(p);
	return ok;
}

static void test_stat(void **state)
{
	struct proc_stat s;
	int64_t code;

	(void)state;
	assert_true(parse("1234 (python3)" FIELDS, &s));
	assert_memory_equal(s.head.name, "python3", 7);
	assert_int_equal(s.head.name_n, 7);
	assert_int_equal(s.head.state, 'S');
	assert_int_equal(s.ppid, 1);
	assert_int_equal(s.flags, 4194560);
	assert_int_equal(s.minor_faults, 541);
	assert_int_equal(s.major_faults, 2);
	assert_int_equal(s.utime, 10);
	assert_int_equal(s.stime, 4);
	assert_int_equal(s.child_utime, 7);
	assert_int_equal(s.child_stime, 3);
	assert_int_equal(s.threads, 5);
	assert_int_equal(s.start, 8123456);
	assert_true(s.image != 0);
	assert_true(proc_stat_exit_code("1 (a)" FIELDS, strlen("1 (a)" FIELDS), &code));
	assert_int_equal(code, 768);
	assert_true(proc_stat_exit_signal("1 (a)" FIELDS, strlen("1 (a)" FIELDS), &code));
	assert_int_equal(code, 17);
	assert_false(proc_stat_exit_signal("1 (a) S 1 2", strlen("1 (a) S 1 2"), &code));
}

static void test_stat_names(void **state)
{
	static const char *const names[] = {
		"",         ")",
		"(",        ") R 1 2 3",
		"a\nb",     "((((",
		"))))",     " ",
		"\x1b[31m", "kworker/u16:3-events_unbound_and_a_very_long_workqueue_name_here",
	};
	struct proc_stat s;
	char line[512];

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(line, sizeof(line), "4194304 (%s)%s", names[i], FIELDS);
		assert_true(parse(line, &s));
		assert_int_equal(s.head.name_n, strlen(names[i]));
		assert_memory_equal(s.head.name, names[i], strlen(names[i]));
		assert_int_equal(s.start, 8123456);
	}
}

/* Cut anywhere, it is either refused or gives the same numbers: never half a number. */
static void test_stat_cut(void **state)
{
	static const char line[] = "1234 (a) b)" FIELDS;
	struct proc_stat whole, s;

	(void)state;
	assert_true(parse(line, &whole));
	for (size_t n = 0; n < sizeof(line) - 1; n++) {
		char *p = heap(line, n);

		if (proc_stat_parse(p, n, &s)) {
			assert_int_equal(s.start, whole.start);
			assert_int_equal(s.image, whole.image);
			assert_int_equal(s.head.name_n, whole.head.name_n);
		}
		free(p);
	}
}

static void test_stat_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"1234",
		"1234 python3 S 1",
		"(python3)" FIELDS,
		"x (python3)" FIELDS,
		"1 (a) S 1 1 1 0 -1 x 0 0 0 0 0 0 0 0 20 0 1 0 1 1 1 1 1 1 1\n",
		"1 (a) S 1 1 1 0 -1 0 0 0 0 0 99999999999999999999 0 0 0 20 0 1 0 1 1 1 1 1 1 1\n",
		"1 (a) S 1 1 1 0 -1 0 0 0 0 0 -5 0 0 0 20 0 1 0 1 1 1 1 1 1 1\n",
	};
	struct proc_stat s = { .start = 42 };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(parse(bad[i], &s));
	assert_int_equal(s.start, 42);
}

static void test_image(void **state)
{
	static const char fmt[] =
	    "1 (a) S 1 1 1 0 -1 0 0 0 0 0 1 1 1 1 20 0 1 0 1 1 1 1 %s 1 %s 0 0\n";
	struct proc_stat a, b;
	char line[200];

	(void)state;
	snprintf(line, sizeof(line), fmt, "1", "0"); /* not permitted */
	assert_true(parse(line, &a));
	assert_int_equal(a.image, 0);
	snprintf(line, sizeof(line), fmt, "93824992231424", "140737488347136");
	assert_true(parse(line, &a));
	snprintf(line, sizeof(line), fmt, "93824992231424", "140737488347120");
	assert_true(parse(line, &b));
	assert_true(a.image && b.image && a.image != b.image);
}

static void test_small_files(void **state)
{
	struct proc_statm m;
	struct schedstat t;
	struct proc_io io;
	int64_t pid;
	static const char io_text[] = "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 5\n"
				      "write_bytes: 6\ncancelled_write_bytes: 7\n";

	(void)state;
	assert_true(proc_statm_parse("2574 1310 890 220 0 301 0\n", 26, &m));
	assert_int_equal(m.size, 2574);
	assert_int_equal(m.resident, 1310);
	assert_int_equal(m.shared, 890);
	assert_false(proc_statm_parse("2574 1310", 9, &m));
	assert_true(schedstat_parse("812345678 12345678 912\n", 23, &t));
	assert_int_equal(t.run_ns, 812345678);
	assert_int_equal(t.delay_ns, 12345678);
	assert_int_equal(t.slices, 912);
	assert_false(schedstat_parse("812345678 12345678 91", 21, &t));
	assert_true(proc_io_parse(io_text, sizeof(io_text) - 1, &io));
	assert_int_equal(io.rchar, 1);
	assert_int_equal(io.syscw, 4);
	assert_int_equal(io.cancelled, 7);
	for (size_t n = 0; n < sizeof(io_text) - 1; n++) {
		char *p = heap(io_text, n);

		assert_false(proc_io_parse(p, n, &io));
		free(p);
	}
	assert_true(last_pid_parse("2.38 1.48 0.60 1/91 11223\n", 26, &pid));
	assert_int_equal(pid, 11223);
	assert_false(last_pid_parse("2.38 1.48 0.60\n", 15, &pid));
}

static void test_status(void **state)
{
	static const char text[] =
	    "Name:\tVmHWM: 9\\nVmHWM:\nState:\tS (sleeping)\nVmHWM:\t    1712 kB\n"
	    "VmSwap:\t       8 kB\nvoluntary_ctxt_switches:\t12\n"
	    "nonvoluntary_ctxt_switches:\t3\n";
	static const char kernel[] = "Name:\tkthreadd\nvoluntary_ctxt_switches:\t12\n";
	struct proc_status s;

	(void)state;
	assert_true(proc_status_parse(text, sizeof(text) - 1, &s));
	assert_int_equal(s.peak_kb, 1712);
	assert_int_equal(s.swap_kb, 8);
	assert_int_equal(s.switches, 12);
	assert_int_equal(s.preemptions, 3);
	assert_true(proc_status_parse(kernel, sizeof(kernel) - 1, &s));
	assert_int_equal(s.peak_kb, -1);
	assert_int_equal(s.swap_kb, -1);
	assert_int_equal(s.switches, 12);
	assert_int_equal(s.preemptions, -1);
	assert_false(proc_status_parse("", 0, &s));
	assert_false(proc_status_parse("Name:\tx\n", 8, &s));
}

static void test_smaps(void **state)
{
	static const char text[] =
	    "55e0b1b1f000-7ffe49b3d000 ---p 00000000 00:00 0                          [rollup]\n"
	    "Rss:                1704 kB\nPss:                 326 kB\nPss_Dirty:           116 "
	    "kB\n"
	    "Private_Clean:        48 kB\nPrivate_Dirty:       116 kB\nPrivate_Hugetlb:    2048 "
	    "kB\n";
	struct proc_smaps s;

	(void)state;
	assert_true(proc_smaps_parse(text, sizeof(text) - 1, &s));
	assert_int_equal(s.pss_kb, 326);
	assert_int_equal(s.private_kb, 48 + 116 + 2048);
	assert_false(proc_smaps_parse(text, 120, &s));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stat),     cmocka_unit_test(test_stat_names),
		cmocka_unit_test(test_stat_cut), cmocka_unit_test(test_stat_refused),
		cmocka_unit_test(test_image),    cmocka_unit_test(test_small_files),
		cmocka_unit_test(test_status),   cmocka_unit_test(test_smaps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
