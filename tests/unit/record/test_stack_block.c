/* SPDX-License-Identifier: MIT
 *
 * The codec of stacks by itself, and what waits for a disk: extremes come back, cut and wrong bytes are
 * refused, and no more is kept than fits.
 */
#include "../unit.h"

#include "base/clock.h"
#include "record/backlog.h"
#include "record/stack_block.h"

#include <errno.h>

static const struct stack_row extremes[] = {
	{ .entity = 0, .node = 0 },
	{ .entity = 0, .node = STACK_NODES_MAX, .kind = 255, .on = 255, .flags = 255 },
	{ .entity = 7, .node = 3, .peer = UINT32_MAX, .count = UINT32_MAX, .weight_ns = 1ll << 60 },
	{ .entity = 7, .node = 3, .kind = 1 },
	{ .entity = UINT32_MAX, .node = 1 },
};

static size_t pack(struct block_codec *c, const struct buf *payload, const void **blob)
{
	size_t n = 0;

	assert_true(buf_ok(payload));
	assert_int_equal(block_pack(c, payload->data, payload->len, blob, &n), 0);
	return n;
}

static void assert_rows(const struct stack_slice *s, const struct stack_row *rows, size_t n)
{
	assert_int_equal(s->n, n);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(s->rows[i].entity, rows[i].entity);
		assert_int_equal(s->rows[i].node, rows[i].node);
		assert_int_equal(s->rows[i].peer, rows[i].peer);
		assert_int_equal(s->rows[i].kind, rows[i].kind);
		assert_int_equal(s->rows[i].on, rows[i].on);
		assert_int_equal(s->rows[i].flags, rows[i].flags);
		assert_int_equal(s->rows[i].count, rows[i].count);
		assert_int_equal(s->rows[i].weight_ns, rows[i].weight_ns);
	}
}

static void test_round_trip(void **state)
{
	struct stack_slice a = { .from_ns = -5, .to_ns = 5, .rows = extremes, .n = 5 }, s;
	struct stack_slice none = { .from_ns = 5, .to_ns = 6 };
	struct block_codec codec = { 0 };
	struct stack_block b = { 0 };
	struct buf payload = { 0 };
	const void *blob;
	size_t n;

	(void)state;
	stack_block_put(&payload, &a);
	stack_block_put(&payload, &none);
	n = pack(&codec, &payload, &blob);
	assert_int_equal(stack_block_open(&b, blob, n), 0);
	assert_int_equal(stack_block_next(&b, &s), 1);
	assert_int_equal(s.from_ns, -5);
	assert_int_equal(s.to_ns, 5);
	assert_rows(&s, extremes, 5);
	assert_int_equal(stack_block_next(&b, &s), 1);
	assert_int_equal(s.from_ns, 5);
	assert_int_equal(s.n, 0);
	assert_int_equal(stack_block_next(&b, &s), 0);
	assert_false(b.damaged);
	stack_block_done(&b);
	buf_done(&payload);
	block_codec_done(&codec);
}

/* How many slices can be read of a payload; *damaged says whether it ended well. */
static int slices_of(const void *p, size_t n, bool *damaged)
{
	struct block_codec codec = { 0 };
	struct stack_block b = { 0 };
	struct stack_slice s;
	const void *blob;
	size_t size;
	int got = 0, r;

	assert_int_equal(block_pack(&codec, p, n, &blob, &size), 0);
	r = stack_block_open(&b, blob, size);
	*damaged = r < 0;
	while (r >= 0 && stack_block_next(&b, &s) > 0)
		got++;
	*damaged |= b.damaged;
	stack_block_done(&b);
	block_codec_done(&codec);
	return got;
}

static void test_cut_short(void **state)
{
	struct stack_slice a = { .from_ns = 1, .to_ns = 5, .rows = extremes, .n = 5 };
	struct buf payload = { 0 };
	size_t first;
	bool damaged;

	(void)state;
	stack_block_put(&payload, &a);
	first = payload.len;
	a.from_ns = 5;
	a.to_ns = 9;
	a.n = 2;
	stack_block_put(&payload, &a);
	for (size_t n = 1; n <= payload.len; n++) {
		int got = slices_of(payload.data, n, &damaged);

		assert_int_equal(got, n < first ? 0 : n < payload.len ? 1 : 2);
		assert_int_equal(damaged, n != 1 && n != first && n != payload.len);
	}
	payload.data[0]++; /* another version */
	assert_int_equal(slices_of(payload.data, payload.len, &damaged), 0);
	assert_true(damaged);
	buf_done(&payload);
}

/* A slice by its numbers: from, length, rows. */
static bool is_refused(int64_t from, uint64_t length, uint64_t rows, const char *bytes, size_t n)
{
	struct buf b = { 0 };
	bool damaged;
	int got;

	buf_char(&b, STACK_BLOCK_VERSION);
	buf_zigzag(&b, from);
	buf_varint(&b, length);
	buf_varint(&b, rows);
	buf_put(&b, bytes, n);
	got = slices_of(b.data, b.len, &damaged);
	buf_done(&b);
	return got == 0 && damaged;
}

static void test_wrong_numbers(void **state)
{
	static const char zero[64];
	static const char far_node[] = "\0\xff\xff\xff\x7f\0\0\0\0\0\0";
	static const char heavy[] = "\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\x7f";

	(void)state;
	assert_false(is_refused(0, 1, 8, zero, 64));
	assert_true(is_refused(0, 0, 8, zero, 64));
	assert_true(is_refused(0, 1, 9, zero, 64));
	assert_true(is_refused(0, 1, UINT64_MAX, zero, 64));
	assert_true(is_refused(0, 1, 1ull << 33, zero, 64));
	assert_true(is_refused(INT64_MAX, 1, 0, zero, 0));
	assert_true(is_refused(INT64_MIN, 1, 0, zero, 0));
	assert_true(is_refused(0, UINT64_MAX, 0, zero, 0));
	assert_true(is_refused(0, 1, 1, far_node, sizeof(far_node) - 1));
	assert_true(is_refused(0, 1, 1, heavy, sizeof(heavy) - 1));
}

/* Sums over a whole file cannot overflow: the rows that would make them are not given. */
static void test_weights_are_bounded(void **state)
{
	struct stack_row rows[] = { { .entity = 1, .weight_ns = 1ll << 60 } };
	struct stack_slice a = { .from_ns = 1, .to_ns = 2, .rows = rows, .n = 1 }, s;
	struct block_codec codec = { 0 };
	struct stack_block b = { 0 };
	struct buf payload = { 0 };
	const void *blob;
	int64_t sum = 0;
	size_t n;
	int got = 0;

	(void)state;
	stack_block_put(&payload, &a);
	n = pack(&codec, &payload, &blob);
	for (int i = 0; i < 20; i++) {
		assert_int_equal(stack_block_open(&b, blob, n), 0);
		while (stack_block_next(&b, &s) > 0) {
			got++;
			sum += s.rows[0].weight_ns;
		}
	}
	assert_int_equal(got, 1);
	assert_true(sum == 1ll << 60);
	stack_block_done(&b);
	buf_done(&payload);
	block_codec_done(&codec);
}

static void put_second(struct backlog *b, int64_t t_ns, size_t bytes)
{
	static char blob[1 << 20];
	struct series_block block = { .t0_ns = t_ns, .t1_ns = t_ns + NS_PER_S };

	block.blob = blob;
	block.n = bytes;
	assert_int_equal(backlog_stacks(b, PENDING_STACK_SECOND, &block, 1), 0);
}

/* What waits for the disk: slices go, oldest first and counted; places and nodes stay. */
static void test_backlog(void **state)
{
	struct place p = { .function = "fun", .file = "file.py", .source = "x = 1", .line = 3 };
	struct backlog b = { 0 };
	struct frame f = { 0 };
	const struct pending *last;

	(void)state;
	frame_begin(&f, 1, 1);
	frame_place(&f, 1, &p);
	frame_node(&f, 1, &(struct stack_node){ .place = 1 });
	for (int i = 0; i < 30; i++)
		put_second(&b, i * NS_PER_S, 1 << 20);
	assert_int_equal(backlog_place(&b, &f, &f.places.v[0]), 0);
	assert_int_equal(backlog_node(&b, &f.nodes.v[0]), 0);
	assert_int_equal(backlog_slices(&b), 30);
	assert_int_equal(backlog_trim(&b, 30 * NS_PER_S), 0); /* no ticks */
	assert_int_equal(b.lost_slices, 22);
	assert_int_equal(backlog_slices(&b), 8);
	assert_int_equal(b.rows.v[0].stacks.t0_ns, 22 * NS_PER_S);
	last = &b.rows.v[b.rows.n - 2];
	assert_int_equal(last->kind, PENDING_PLACE);
	assert_string_equal(b.bytes.data + last->at, "fun");
	assert_string_equal(b.bytes.data + last->at2, "file.py");
	assert_string_equal(b.bytes.data + last->at2 + 8, "x = 1");
	assert_int_equal(last[1].kind, PENDING_NODE);
	assert_int_equal(backlog_drop_stacks(&b, 25 * NS_PER_S), 5);
	assert_int_equal(backlog_slices(&b), 3);
	/* Two minutes later they are too old. */
	backlog_trim(&b, 200 * NS_PER_S);
	assert_int_equal(b.lost_slices, 25);
	assert_int_equal(b.rows.n, 2);
	assert_string_equal(b.bytes.data + b.rows.v[0].at2 + 8, "x = 1");
	backlog_done(&b);
	frame_done(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),    cmocka_unit_test(test_cut_short),
		cmocka_unit_test(test_wrong_numbers), cmocka_unit_test(test_weights_are_bounded),
		cmocka_unit_test(test_backlog),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
