/* SPDX-License-Identifier: MIT
 *
 * Text of /proc about waiting threads, and the table of system calls against the kernel's headers.
 */
#include "../unit.h"

#include "base/auto.h"
#include "base/io.h"
#include "base/scan.h"
#include "stack/wait/calls.h"
#include "stack/wait/parse.h"

#include <fcntl.h>
#include <poll.h>

static bool call(const char *text, struct wait_call *ret)
{
	return wait_parse_call(text, strlen(text), ret);
}

static void test_call(void **state)
{
	struct wait_call c;

	(void)state;
	assert_true(call("running\n", &c));
	assert_true(c.running && c.nr == -1);
	assert_true(call("202 0x7f0d8aef8b30 0x189 0x0 0x1 0x2 0xffffffff 0x7f0d 0x7f0e\n", &c));
	assert_false(c.running);
	assert_int_equal(c.nr, 202);
	assert_int_equal(c.arg[0], 0x7f0d8aef8b30);
	assert_int_equal(c.arg[5], 0xffffffff);
	assert_true(c.sp == 0x7f0d && c.pc == 0x7f0e);
	assert_true(call("-1 0x7f0d 0x7f0e\n", &c));
	assert_true(!c.running && c.nr == -1 && c.sp == 0x7f0d && c.pc == 0x7f0e);

	assert_false(call("", &c));
	assert_false(call("runnin", &c));
	assert_false(call("-2 0x1 0x2", &c));
	assert_false(call("0 0x1 0x2 0x3 0x4 0x5 0x6 0x7", &c)); /* cut */
	assert_false(call("0 0x1 0x2 0x3 0x4 0x5 0x6 0x7 0x12345678123456781", &c));
	assert_false(call("99999999999999999999 0x1 0x2", &c));
}

static void test_sched_and_letter(void **state)
{
	static const char odd[] = "4711 (a) R (b\n) D 1 4711";
	static const char status[] = "State:\tR (running)\nvoluntary_ctxt_switches:\t39\n"
				     "nonvoluntary_ctxt_switches:\t3\n";
	struct wait_sched sched;
	struct wait_switches off = { 0 };

	(void)state;
	assert_true(wait_parse_sched("46036249 98621 39\n", 18, &sched));
	assert_int_equal(sched.run, 46036249);
	assert_int_equal(sched.queue, 98621);
	assert_int_equal(sched.slices, 39);
	assert_true(wait_parse_sched("1 2\n", 4, &sched));
	assert_int_equal(sched.slices, 0);
	assert_false(wait_parse_sched("5\n", 2, &sched));
	assert_true(wait_parse_switches(status, sizeof(status) - 1, &off));
	assert_true(off.left == 39 && off.taken == 3);
	assert_false(wait_parse_switches(status, 40, &off));
	assert_false(wait_parse_switches("", 0, &off));
	assert_int_equal(wait_parse_letter(odd, sizeof(odd) - 1), 'D');
	assert_int_equal(wait_parse_letter("1 (a) ", 6), 0);
	assert_int_equal(wait_parse_letter("1 (a)", 5), 0);
	assert_int_equal(wait_parse_letter("1 a S", 5), 0);
	assert_int_equal(wait_parse_letter("", 0), 0);
}

static void test_links(void **state)
{
	static const struct {
		const char *link;
		enum wait_kind kind;
		uint64_t inode;
	} rows[] = {
		{ "pipe:[3497034]", WAIT_PIPE, 3497034 },
		{ "pipe:[", WAIT_PIPE, 0 },
		{ "socket:[12]", WAIT_SOCKET, 12 },
		{ "anon_inode:[eventfd]", WAIT_OTHER, 0 },
		{ "anon_inode:[pidfd]", WAIT_CHILD, 0 },
		{ "/dev/nvidia0", WAIT_GPU_DRIVER, 0 },
		{ "/dev/nvidia-uvm", WAIT_GPU_DRIVER, 0 },
		{ "/dev/dri/renderD128", WAIT_GPU_DRIVER, 0 },
		{ "/dev/kfd", WAIT_GPU_DRIVER, 0 },
		{ "/dev/pts/3", WAIT_TERMINAL, 0 },
		{ "/dev/null", WAIT_FILE, 0 },
		{ "/data/pipe:[3]", WAIT_FILE, 0 },
		{ "/data/a.tar (deleted)", WAIT_FILE, 0 },
		{ "", WAIT_OTHER, 0 },
	};
	uint64_t inode;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const char *link = rows[i].link;

		assert_int_equal(wait_link_kind(link, strlen(link), &inode), rows[i].kind);
		assert_int_equal(inode, rows[i].inode);
	}
}

/* As older and newer kernels call them. */
static void test_wchan(void **state)
{
	static const struct {
		const char *name;
		enum wait_kind kind;
	} rows[] = {
		{ "futex_wait_queue_me", WAIT_LOCK },
		{ "futex_do_wait", WAIT_LOCK },
		{ "pipe_wait", WAIT_PIPE },
		{ "pipe_read", WAIT_PIPE },
		{ "anon_pipe_read", WAIT_PIPE },
		{ "unix_stream_read_generic", WAIT_SOCKET },
		{ "sk_wait_data", WAIT_SOCKET },
		{ "poll_schedule_timeout.constprop.0", WAIT_POLL },
		{ "ep_poll", WAIT_POLL },
		{ "hrtimer_nanosleep", WAIT_SLEEP },
		{ "do_wait", WAIT_CHILD },
		{ "wait_woken", WAIT_UNKNOWN },
		{ "folio_wait_bit_common", WAIT_UNKNOWN }, /* the letter decides */
		{ "0", WAIT_UNKNOWN },
		{ "", WAIT_UNKNOWN },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_int_equal(wait_wchan_kind(rows[i].name, strlen(rows[i].name)), rows[i].kind);
}

static void test_sets(void **state)
{
	static const char info[] = "pos:\t0\nflags:\t02\nmnt_id:\t15\nino:\t2\n"
				   "tfd:        4 events:       19 data: 4  pos:0 ino:3 sdev:f\n"
				   "tfd:       99999999999 events: 1\n"
				   "tfd:        7 events:       19 data: 7  pos:0 ino:3 sdev:f\n"
				   "tfd: ";
	struct pollfd array[] = { { 3, POLLIN, 0 }, { -1, POLLIN, 0 }, { 9, 0, 0 } };
	uint8_t bits[4] = { 0x81, 0, 0, 0x80 };
	int32_t fds[2];

	(void)state;
	assert_int_equal(wait_parse_epoll(info, sizeof(info) - 1, fds, 2), 2);
	assert_true(fds[0] == 4 && fds[1] == 7);
	assert_int_equal(wait_parse_epoll(info, sizeof(info) - 1, fds, 1), 2);
	assert_int_equal(wait_pollfds((uint8_t *)array, sizeof(array), fds, 2), 2);
	assert_true(fds[0] == 3 && fds[1] == 9);
	assert_int_equal(wait_pollfds((uint8_t *)array, 7, fds, 2), 0);
	assert_int_equal(wait_bitmap(bits, 4, 31, fds, 0, 2), 2);
	assert_true(fds[0] == 0 && fds[1] == 7);
	assert_int_equal(wait_bitmap(bits, 4, UINT64_MAX, fds, 2, 2), 5);
}

static void test_names(void **state)
{
	(void)state;
	for (int i = 0; i < WAIT_KINDS; i++)
		assert_true(wait_kind_name((enum wait_kind)i)[0]);
	assert_string_equal(wait_kind_name((enum wait_kind) - 1), "unknown");
	assert_string_equal(call_find(CALL_X86_64, 202)->name, "futex");
	assert_string_equal(call_find(CALL_AARCH64, 98)->name, "futex");
	assert_null(call_find(CALL_AARCH64, -1)); /* not the first that aarch64 lacks */
	assert_null(call_find(CALL_X86_64, 100000));
}

/* Rows that disagree with "#define __NR_read 63" or "#define __NR3264_fstat 80" in a header; a call
 * that the header does not have may be newer than it. */
static unsigned disagreeing(const char *header, enum call_machine machine, unsigned *ret_agreeing)
{
	size_t n = 0;
	int e = 0;
	auto_free char *text = io_slurp(AT_FDCWD, header, 1 << 20, &n, &e);
	struct scan s = scan_of(text ? text : "", text ? n : 0), line;
	unsigned wrong = 0;

	while (scan_line(&s, &line)) {
		const char *name;
		size_t name_n;
		uint64_t nr;

		if (!scan_lit(&line, "#define __NR") ||
		    !(scan_lit(&line, "_") || scan_lit(&line, "3264_")) ||
		    !scan_word(&line, &name, &name_n) || !scan_u64(&line, &nr))
			continue;
		for (size_t i = 0; i < call_rows_n; i++) {
			if (strlen(call_rows[i].name) != name_n ||
			    memcmp(call_rows[i].name, name, name_n) != 0)
				continue;
			if (call_rows[i].nr[machine] == (int64_t)nr)
				++*ret_agreeing;
			else
				wrong++;
		}
	}
	return wrong;
}

static void test_numbers(void **state)
{
	unsigned agreeing = 0;

	(void)state;
	assert_int_equal(disagreeing("/usr/include/asm-generic/unistd.h", CALL_AARCH64, &agreeing),
			 0);
	assert_int_equal(
	    disagreeing("/usr/include/x86_64-linux-gnu/asm/unistd_64.h", CALL_X86_64, &agreeing),
	    0);
	assert_int_equal(disagreeing("/usr/include/asm/unistd_64.h", CALL_X86_64, &agreeing), 0);
	print_message("%u numbers agree with the headers of this machine\n", agreeing);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_call),    cmocka_unit_test(test_sched_and_letter),
		cmocka_unit_test(test_links),   cmocka_unit_test(test_wchan),
		cmocka_unit_test(test_sets),    cmocka_unit_test(test_names),
		cmocka_unit_test(test_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
