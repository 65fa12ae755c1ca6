/* SPDX-License-Identifier: MIT
 *
 * How the ledgers, the level and the place of a finding are shown.
 */
#include "../unit.h"

#include "verdict_made.h"

#include "base/auto.h"
#include "base/buf.h"

static void show(struct verdict *v, unsigned width, unsigned lines, struct buf *out)
{
	struct render_style style = { .width = width, .max_lines = lines };

	buf_reset(out);
	render_text(v, &style, out);
	assert_true(buf_ok(out));
}

#define has(out, text)                                                           \
	do {                                                                     \
		if (!strstr(buf_text(out), text))                                \
			fail_msg("'%s' is missing in\n%s", text, buf_text(out)); \
	} while (0)

#define has_not(out, text)                                                          \
	do {                                                                        \
		if (strstr(buf_text(out), text))                                    \
			fail_msg("'%s' should not be in\n%s", text, buf_text(out)); \
	} while (0)

static void in_short(void **state)
{
	auto_done(buf) struct buf out = { 0 };
	struct run_info run;
	struct verdict v;

	(void)state;
	verdict_make(&v, &run);
	show(&v, 100, 12, &out);
	assert_string_equal(
	    buf_text(&out),
	    "Run     train.py: 40.0 s, exit 0\n"
	    "CPU     5 of 8 cores allowed (62 %), 8 in the machine; `top` calls this 500 % "
	    "[limit: affinity]\n"
	    "Where   4 loader workers 3.20 cores, main 0.95, 3 framework threads 0.50, kernel side "
	    "0.20,\n"
	    "        short-lived 0.10, unaccounted 1.0 %\n"
	    "Time    61 % waiting for data, 22 % waiting for the GPU, 9.0 % other code on the CPU, "
	    "5.0 % "
	    "queued\n"
	    "        for a CPU, 1.2 % in others, 1.8 % unaccounted (main thread of python3, pid "
	    "4711)\n"
	    "Finding the training loop loads its data itself (no_workers)\n"
	    "At      /home/u/data/loader.py:41, in Images.__getitem__\n"
	    "Because it did\n"
	    "Fix     load in workers\n"
	    "Spotter cost 0.8 % of one core, 12 MB\n");
	verdict_done(&v);
}

static void in_full(void **state)
{
	auto_done(buf) struct buf out = { 0 };
	struct run_info run;
	struct verdict v;

	(void)state;
	verdict_make(&v, &run);
	show(&v, 300, 0, &out);
	has(&out, "Time    61 % waiting for data, 22 % waiting for the GPU, 9.0 % other code on "
		  "the CPU, 5.0 % "
		  "queued for a CPU, 0.8 % waiting for a lock, 0.4 % copying to or from the GPU, "
		  "1.8 % unaccounted (main thread of python3, pid 4711; give or take 2 points)\n");
	has(&out, "Ledger  role                 cores    share  processes  threads\n");
	has(&out, "        framework_threads     0.50     10 %          1        3\n");
	has(&out, "Level   L2: stacks and waits\n");
	verdict_done(&v);
}

/* Without a time ledger nothing is said about time: absent is not zero. */
static void without_stacks(void **state)
{
	auto_done(buf) struct buf out = { 0 };
	struct run_info run;
	struct verdict v;

	(void)state;
	verdict_make(&v, &run);
	v.time_pid = v.time_tid = 0;
	v.level = 1;
	show(&v, 300, 12, &out);
	has_not(&out, "Time ");
	has_not(&out, "Level ");
	v.level_refused = true;
	text_copy(v.level_why, sizeof(v.level_why), "no permission: sysctl x=0");
	show(&v, 300, 12, &out);
	has(&out, "Level   L1: /proc only; no permission: sysctl x=0\n");
	show(&v, 300, 0, &out);
	has(&out, "Level   L1: /proc only; no permission: sysctl x=0\n");
	v.level = 2;
	show(&v, 300, 12, &out);
	has_not(&out, "Level ");
	v.time.n = 0;
	v.time_tid = 4712;
	show(&v, 300, 12, &out);
	has_not(&out, "Time ");
	verdict_done(&v);
}

static void of_another_thread(void **state)
{
	auto_done(buf) struct buf out = { 0 };
	struct run_info run;
	struct verdict v;

	(void)state;
	verdict_make(&v, &run);
	v.time_tid = 4720;
	v.time_unaccounted = -0.001;
	v.time_error = NAN;
	show(&v, 300, 0, &out);
	has(&out, "0 % unaccounted (thread 4720 of python3, pid 4711)\n");
	v.time_name[0] = '\0';
	v.time_unaccounted = NAN;
	show(&v, 300, 12, &out);
	has(&out, "1.2 % in others (thread 4720 of pid 4711)\n");
	show(&v, 300, 0, &out);
	has_not(&out, "unaccounted (");
	verdict_done(&v);
}

/* The place is said once. */
static void place_in_the_title(void **state)
{
	auto_done(buf) struct buf out = { 0 };
	struct run_info run;
	struct verdict v;

	(void)state;
	verdict_make(&v, &run);
	text_copy(v.findings.v[0].title, sizeof(v.findings.v[0].title), "loads in loader.py:41");
	show(&v, 300, 12, &out);
	has_not(&out, "\nAt ");
	v.findings.v[0].where.line = 4;
	show(&v, 300, 12, &out);
	has(&out, "\nAt      /home/u/data/loader.py:4, in Images.__getitem__\n");
	v.findings.v[0].where.line = 0;
	v.findings.v[0].where.file[0] = '\0';
	show(&v, 300, 12, &out);
	has(&out, "\nAt      Images.__getitem__\n");
	v.findings.v[0].where.function[0] = '\0';
	show(&v, 300, 12, &out);
	has_not(&out, "\nAt ");
	verdict_done(&v);
}

static void tables_elsewhere(void **state)
{
	struct render_style style = { .width = 100, .no_tables = true };
	auto_done(buf) struct buf out = { 0 };
	struct run_info run;
	struct verdict v;

	(void)state;
	verdict_make(&v, &run);
	render_text(&v, &style, &out);
	has_not(&out, "Ledger ");
	has(&out, "Time ");
	has(&out, "Window ");
	verdict_done(&v);
}

static void as_json(void **state)
{
	auto_done(buf) struct buf out = { 0 };
	struct run_info run;
	struct verdict v;

	(void)state;
	verdict_make(&v, &run);
	render_json(&v, &out);
	has(&out,
	    "\"time\": {\n    \"pid\": 4711,\n    \"tid\": 4711,\n    \"name\": \"python3\",\n"
	    "    \"ledger\": [\n      {\n        \"state\": \"data_wait\",\n"
	    "        \"share\": 0.61,\n        \"seconds\": 24.4,\n        \"top\": [");
	has(&out, "    ],\n    \"unaccounted\": 0.018,\n    \"error\": 0.021\n  },");
	has(&out, "\"top\": [\n          {\n            \"function\": \"Images.decode\",\n"
		  "            \"file\": \"/home/somebody/projects/training/data/loader.py\",\n"
		  "            \"line\": 41,\n            \"share\": 0.71\n          },");
	/* a library without a symbol: neither function nor line */
	has(&out,
	    "{\n            \"file\": \"/usr/lib/libz.so.1\",\n            \"share\": 0.004\n");
	has(&out, "\"where\": {\n        \"file\": \"/home/u/data/loader.py\",\n"
		  "        \"line\": 41,\n        \"function\": \"Images.__getitem__\"\n");
	has(&out, "\"stack_samples\": 12000,\n    \"stack_unproven\": 20,\n"
		  "    \"stack_partial\": 4\n");
	has_not(&out, "level_why");
	has_not(&out, "seconds_per_step");
	verdict_done(&v);
}

static void absent_in_json(void **state)
{
	auto_done(buf) struct buf out = { 0 };
	struct run_info run;
	struct verdict v;

	(void)state;
	verdict_make(&v, &run);
	v.time_pid = v.time_tid = 0;
	v.overhead.stack_samples = v.overhead.stack_unproven = v.overhead.stack_partial = NAN;
	for (size_t i = 0; i < v.cpu.n; i++)
		v.cpu.v[i].n_top = 0;
	text_copy(v.level_why, sizeof(v.level_why), "why");
	render_json(&v, &out);
	has_not(&out, "\"time\"");
	has_not(&out, "\"top\"");
	has_not(&out, "stack_");
	has(&out, "\"level_why\": \"why\"");
	verdict_done(&v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_short),
		cmocka_unit_test(in_full),
		cmocka_unit_test(without_stacks),
		cmocka_unit_test(of_another_thread),
		cmocka_unit_test(place_in_the_title),
		cmocka_unit_test(tables_elsewhere),
		cmocka_unit_test(as_json),
		cmocka_unit_test(absent_in_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
