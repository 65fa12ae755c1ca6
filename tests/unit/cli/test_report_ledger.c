/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "../explain/verdict_made.h"

#include "base/auto.h"
#include "base/buf.h"
#include "cli/report_ledger.h"

static void time_section(void **state)
{
	auto_done(buf) struct buf out = { 0 };
	struct run_info run;
	struct verdict v;

	(void)state;
	verdict_make(&v, &run);
	report_time(&v, false, &out);
	assert_string_equal(
	    buf_text(&out),
	    "\nWhere the time went: main thread of python3, pid 4711\n"
	    "STATE                                    SHARE    TIME\n"
	    "data_wait    waiting for data             61 %  24.4 s  ######\n"
	    "     93 % Queue.get  /usr/lib/python3.11/multiprocessing/queues.py:102\n"
	    "gpu_wait     waiting for the GPU          22 %   8.8 s  ##\n"
	    "python       other code on the CPU       9.0 %   3.6 s  #\n"
	    "cpu_queue    queued for a CPU            5.0 %   2.0 s  #\n"
	    "lock_wait    waiting for a lock          0.8 %  320 ms  .\n"
	    "transfer     copying to or from the GPU  0.4 %  160 ms  .\n"
	    "unaccounted  not seen, or not proven     1.8 %  720 ms  .\n"
	    "shares are give or take 2 points\n");
	verdict_done(&v);
}

static void cpu_section(void **state)
{
	auto_done(buf) struct buf out = { 0 };
	struct run_info run;
	struct verdict v;

	(void)state;
	verdict_make(&v, &run);
	report_cpu(&v, false, &out);
	assert_string_equal(
	    buf_text(&out),
	    "\nWho used the CPU\n"
	    "ROLE                   CORES  SHARE  PROCS  THREADS\n"
	    "loader_worker           3.20   64 %      4        4\n"
	    "     71 % Images.decode  /home/somebody/projects/training/data/loader.py:41\n"
	    "     18 % jpeg_read_scanlines  /usr/lib/x86_64-linux-gnu/libjpeg.so.62\n"
	    "    0.4 % /usr/lib/libz.so.1\n"
	    "main                    0.95   19 %      1        1\n"
	    "     50 % a_function_with_a_name_that_is_longer_than_its_column  train.py:88\n"
	    "framework_threads       0.50   10 %      1        3\n"
	    "kernel_side             0.20  4.0 %      0        0\n"
	    "other                   0.10  2.0 %      -        -\n"
	    "unaccounted             0.05  1.0 %\n"
	    "charged by the kernel   5.00  100 %\n");
	verdict_done(&v);
}

static unsigned widest(const char *s)
{
	unsigned most = 0;

	while (*s) {
		size_t n = strcspn(s, "\n");
		char line[512];

		snprintf(line, sizeof(line), "%.*s", (int)n, s);
		most = text_width(line) > most ? (unsigned)text_width(line) : most;
		if (n)
			assert_true(s[n - 1] != ' ');
		s += n + (s[n] == '\n');
	}
	return most;
}

/* Names as long as they can be, or hostile. */
static void fits(void **state)
{
	auto_done(buf) struct buf out = { 0 };
	struct ledger_top *t;
	struct run_info run;
	struct verdict v;

	(void)state;
	verdict_make(&v, &run);
	t = &v.cpu.v[0].top[0];
	memset(t->function, 'f', sizeof(t->function) - 1);
	memset(t->file, '/', sizeof(t->file) - 1);
	t->line = 2147483647;
	t = &v.cpu.v[0].top[1];
	memset(t->file, 'x', sizeof(t->file) - 1);
	t->line = 123456;
	for (size_t i = 0; i + 1 < sizeof(t->function); i += 3)
		memcpy(t->function + i, "\xe2\x82\xac", 3);
	text_copy(v.cpu.v[0].top[2].function, 20, "\033[2J\n");
	v.time.v[0].seconds = 86399;
	v.time.v[0].share = 1;
	report_time(&v, false, &out);
	report_cpu(&v, false, &out);
	assert_true(buf_ok(&out));
	assert_null(strchr(buf_text(&out), '\033'));
	assert_in_range(widest(buf_text(&out)), 60, 80);
	verdict_done(&v);
}

static void absent(void **state)
{
	auto_done(buf) struct buf out = { 0 };
	struct run_info run;
	struct verdict v;

	(void)state;
	verdict_make(&v, &run);
	v.time_unaccounted = v.time_error = v.time.v[0].seconds = NAN;
	report_time(&v, false, &out);
	assert_null(strstr(buf_text(&out), "nan"));
	assert_null(strstr(buf_text(&out), "unaccounted"));
	assert_null(strstr(buf_text(&out), "give or take"));
	buf_reset(&out);
	v.time_tid = 0;
	v.cpu_cores = NAN;
	report_time(&v, true, &out);
	report_cpu(&v, true, &out);
	assert_int_equal(out.len, 0);
	verdict_done(&v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(time_section),
		cmocka_unit_test(cpu_section),
		cmocka_unit_test(fits),
		cmocka_unit_test(absent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
