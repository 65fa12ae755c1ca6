/* SPDX-License-Identifier: MIT
 *
 * Unwind rules and expressions from bytes, and a recorded process: a thread that sleeps in the handler
 * of a signal.
 */
#include "../../fuzz/memory.h"
#include "../unit.h"
#include "base/io.h"
#include "stack/native/process.h"

#include <fcntl.h>

static struct bytes of(const uint8_t *p, size_t n)
{
	return (struct bytes){ .p = p, .end = p + n, .at = 0x1000 };
}

static const struct rules_common common = { .code_align = 1,
					    .data_align = -8,
					    .return_column = 16 };

/* A function that pushes rbx, takes 32 bytes, and gives them back before its end. */
static const uint8_t pushes[] = {
	0x0c, 7,    8,    0x90, 1, /* cfa rsp+8, return at cfa-8 */
	0x41, 0x0e, 16,   0x83, 2, /* at 1: cfa rsp+16, rbx at cfa-16 */
	0x44, 0x0e, 48,            /* at 5: rsp+48 */
	0x0a, 0x4a, 0x0e, 16,      /* keep; at 15: rsp+16 */
	0xc3, 0x41, 0x0b, 0x0e, 40
}; /* rbx back; at 16: as kept; rsp+40 */

static void row_at(uint64_t pc, struct native_row *ret)
{
	struct native_row initial = { 0 };

	*ret = initial;
	assert_true(
	    rules_run(of(pushes, sizeof(pushes)), &common, 0x5000, 0x5000 + pc, &initial, ret));
	assert_int_equal(ret->cfa.kind, RULE_REGISTER);
	assert_int_equal(ret->cfa.value, 7);
	assert_int_equal(ret->of[16].kind, RULE_OFFSET);
	assert_int_equal(ret->of[16].value, -8);
}

static void test_rows(void **state)
{
	struct native_row row;

	(void)state;
	row_at(0, &row);
	assert_int_equal(row.cfa.extra, 8);
	assert_int_equal(row.of[3].kind, RULE_SAME);
	row_at(1, &row);
	assert_int_equal(row.cfa.extra, 16);
	assert_int_equal(row.of[3].value, -16);
	row_at(4, &row);
	assert_int_equal(row.cfa.extra, 16);
	row_at(14, &row);
	assert_int_equal(row.cfa.extra, 48);
	row_at(15, &row);
	assert_int_equal(row.cfa.extra, 16);
	assert_int_equal(row.of[3].kind, RULE_SAME);
	row_at(500, &row);
	assert_int_equal(row.cfa.extra, 40);
	assert_int_equal(row.of[3].value, -16);
}

static bool runs(const uint8_t *code, size_t n, bool aarch64, bool with_initial)
{
	struct rules_common c = common;
	struct native_row initial = { 0 }, row = { 0 };

	c.aarch64 = aarch64;
	return rules_run(of(code, n), &c, 0, 100, with_initial ? &initial : NULL, &row);
}

static void test_unknown_ends(void **state)
{
	static const uint8_t unknown[] = { 0x3f }, cut[] = { 0x0c, 7 }, recall[] = { 0x0b },
			     no_register[] = { 0x0e, 8 }, sign[] = { 0x2d }, undo[] = { 0xc3 },
			     huge_block[] = { 0x0f, 0xff, 0x7f, 0 }, column[] = { 0x0c, 99, 8 },
			     endless[] = { 0x05, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
					   0xff, 0xff, 0xff, 0xff, 0xff, 0x01 },
			     far_register[] = { 0x05, 0xff, 0x01, 1 },
			     deep[] = { 10, 10, 10, 10, 10, 10, 10, 10, 10 };

	(void)state;
	assert_false(runs(unknown, sizeof(unknown), false, true));
	assert_false(runs(cut, sizeof(cut), false, true));
	assert_false(runs(recall, sizeof(recall), false, true));
	assert_false(runs(no_register, sizeof(no_register), false, true));
	assert_false(runs(huge_block, sizeof(huge_block), false, true));
	assert_false(runs(column, sizeof(column), false, true));
	assert_false(runs(endless, sizeof(endless), false, true));
	assert_false(runs(deep, sizeof(deep), false, true));
	assert_false(runs(sign, sizeof(sign), false, true));
	assert_true(runs(sign, sizeof(sign), true, true));
	assert_false(runs(undo, sizeof(undo), false, false));
	assert_true(runs(undo, sizeof(undo), false, true));
	assert_true(runs(far_register, sizeof(far_register), false, true)); /* xmm: read over */
	assert_true(runs(unknown, 0, false, true));
}

static bool read_word(void *arg, uint64_t at, uint64_t *ret)
{
	(void)arg;
	*ret = at + 1000;
	return at != 0;
}

static bool value_of(const uint8_t *code, size_t n, uint64_t *ret)
{
	static const uint64_t registers[COLUMNS] = { [7] = 5000, [16] = 0x40100b };
	struct rules_machine machine = { .registers = registers,
					 .known = 1u << 7 | 1u << 16,
					 .read = read_word };

	return rules_evaluate(of(code, n), &machine, NULL, ret);
}

static void test_expressions(void **state)
{
	static const uint8_t signal_frame[] = { 0x77, 0xa0, 0x01, 0x06 },
			     plt[] = { 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22 },
			     unknown_register[] = { 0x76, 0 }, empty_stack[] = { 0x22 },
			     one_only[] = { 0x31, 0x22 }, no_memory[] = { 0x30, 0x06 },
			     unknown[] = { 0x31, 0xe0 }, negative[] = { 0x09, 0xff, 0x23, 3 },
			     shift[] = { 0x31, 0x08, 200, 0x24 }, cut[] = { 0x0e, 1, 2 };
	uint8_t many[20];
	uint64_t v = 0;

	(void)state;
	assert_true(value_of(signal_frame, sizeof(signal_frame), &v));
	assert_int_equal(v, 5000 + 160 + 1000);
	assert_true(value_of(plt, sizeof(plt), &v)); /* 11 bytes in: something was pushed */
	assert_int_equal(v, 5000 + 8 + 8);
	assert_true(value_of(negative, sizeof(negative), &v));
	assert_int_equal(v, 2);
	assert_true(value_of(shift, sizeof(shift), &v));
	assert_int_equal(v, 0);
	assert_false(value_of(unknown_register, sizeof(unknown_register), &v));
	assert_false(value_of(empty_stack, sizeof(empty_stack), &v));
	assert_false(value_of(one_only, sizeof(one_only), &v));
	assert_false(value_of(no_memory, sizeof(no_memory), &v));
	assert_false(value_of(unknown, sizeof(unknown), &v));
	assert_false(value_of(cut, sizeof(cut), &v));
	assert_false(value_of(cut, 0, &v));
	memset(many, 0x31, sizeof(many));
	assert_false(value_of(many, sizeof(many), &v));
}

static void test_numbers(void **state)
{
	static const uint8_t raw[] = { 0xe5, 0x8e, 0x26, 0x7f, 0x80, 0x01, 0xff,
				       0xff, 0xfc, 0xff, 0xff, 0xff, 0x80 };
	struct bytes b = of(raw, sizeof(raw));

	(void)state;
	assert_int_equal(bytes_uleb(&b), 624485);
	assert_int_equal(bytes_sleb(&b), -1);
	assert_int_equal(bytes_sleb(&b), 128);
	assert_int_equal(bytes_signed(&b, 2), -1);
	assert_int_equal(bytes_pointer(&b, 0x1b), 0x1000 + 8 - 4);
	assert_false(b.bad);
	(void)bytes_uleb(&b);
	assert_true(b.bad);
	b = of(raw, 3);
	assert_int_equal(bytes_unsigned(&b, 8), 0);
	assert_true(b.bad);
	assert_int_equal(bytes_unsigned(&b, 1), 0);
}

static uint8_t *load(const char *path, struct memory *memory, uint64_t ret[2])
{
	size_t n;
	int r;
	uint8_t *data = (uint8_t *)io_slurp(AT_FDCWD, path, 1 << 20, &n, &r);

	assert_non_null(data);
	assert_true(n > 17);
	memcpy(ret, data + 1, 16);
	memory_parse(memory, data + 17, n - 17);
	return data;
}

static void test_recorded(void **state)
{
	static const char *const truth[] = { NULL,         NULL, "plain_sleeps",  "plain_handler",
					     NULL,         NULL, "plain_signals", "plain_middle",
					     "plain_outer" };
	static struct memory memory;
	struct native_process *p;
	struct native_place place;
	uint64_t at[2], found[NATIVE_FRAMES_MAX], reads;
	uint8_t *data = load(CORPUS "/native/signal", &memory, at);
	struct mem m;
	size_t n;

	(void)state;
	mem_open_source(&m, memory_read, &memory);
	assert_int_equal(native_open_memory(&p, &m, memory.maps, memory.maps_n), 0);
	n = native_unwind(p, at[0], at[1], 0, found, NATIVE_FRAMES_MAX);
	assert_int_equal(n, 13); /* up to _start */
	for (size_t i = 0; i < sizeof(truth) / sizeof(truth[0]); i++) {
		assert_true(native_place(p, found[i] - (i > 0), 0, &place));
		assert_int_equal(place.libc, truth[i] == NULL);
		assert_string_equal(place.symbol, truth[i] ? truth[i] : "");
	}
	/* Again: the stack only, which is one window. The frame of the signal has two expressions. */
	reads = memory.reads;
	assert_int_equal(native_unwind(p, at[0], at[1], 0, found, NATIVE_FRAMES_MAX), 13);
	assert_true(memory.reads - reads <= 24);
	native_close(p);
	free(data);
}

/* A function that was chosen by another one when its library was loaded has that one's name. */
static void test_chosen(void **state)
{
	static struct memory memory;
	struct native_process *p;
	struct native_place place;
	uint64_t at[2], found[NATIVE_FRAMES_MAX];
	uint8_t *data = load(CORPUS "/native/chosen", &memory, at);
	struct mem m;

	(void)state;
	mem_open_source(&m, memory_read, &memory);
	assert_int_equal(native_open_memory(&p, &m, memory.maps, memory.maps_n), 0);
	assert_int_equal(native_unwind(p, at[0], at[1], 0, found, NATIVE_FRAMES_MAX), 7);
	assert_true(native_place(p, found[1] - 1, 0, &place));
	assert_string_equal(place.symbol, "chosen_reads");
	assert_string_equal(place.file, "/libnative_chosen.so");
	assert_true(native_place(p, found[2] - 1, 0, &place));
	assert_string_equal(place.symbol, "calls_chosen");
	/* Its end is known: what comes behind it is not it. */
	assert_true(native_place(p, (found[1] & ~0xfull) + 0xf, 0, &place));
	assert_string_equal(place.symbol, "");
	native_close(p);
	free(data);
}

/* Memory that changes while it is read: fewer frames, or those that the tables then prove; never a
 * crash, and the first frame is always where the thread is. */
static void test_torn(void **state)
{
	static struct memory memory;
	uint64_t at[2], found[NATIVE_FRAMES_MAX];
	uint8_t *data = load(CORPUS "/native/signal", &memory, at);

	(void)state;
	for (unsigned tear = 1; tear < 60; tear++) {
		struct native_process *p;
		struct mem m;

		memory.tear = tear;
		mem_open_source(&m, memory_read, &memory);
		assert_int_equal(native_open_memory(&p, &m, memory.maps, memory.maps_n), 0);
		assert_true(native_unwind(p, at[0], at[1], 0, found, NATIVE_FRAMES_MAX) >= 1);
		assert_int_equal(found[0], at[0]);
		native_close(p);
	}
	free(data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),        cmocka_unit_test(test_unknown_ends),
		cmocka_unit_test(test_expressions), cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_recorded),    cmocka_unit_test(test_chosen),
		cmocka_unit_test(test_torn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
