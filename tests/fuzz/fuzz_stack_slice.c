/* SPDX-License-Identifier: MIT
 *
 * Slices of stacks from anywhere. With an odd first byte the rest is the blob as it is; with an even one
 * it is compressed first, as otherwise next to nothing would come past the decompressor. What can be
 * read must obey the rules (times rise, numbers are within bounds, sums do not overflow) and read back
 * the same when it is written again.
 */
#include "fuzz.h"
#include "record/stack_block.h"

#include <string.h>
#include <zstd.h>

static void check(const struct stack_slice *s, int64_t *last_ns, int64_t *weight_ns)
{
	must(s->to_ns > s->from_ns && s->from_ns >= *last_ns, "times rise");
	must(s->n <= STACK_SLICE_ROWS, "slices are bounded");
	*last_ns = s->from_ns;
	for (size_t i = 0; i < s->n; i++) {
		const struct stack_row *r = &s->rows[i];

		must(r->node <= STACK_NODES_MAX, "nodes are within bounds");
		must(!i || r->entity >= s->rows[i - 1].entity, "entities are in order");
		must(r->weight_ns >= 0, "time is not negative");
		*weight_ns += r->weight_ns;
		must(*weight_ns >= 0 && *weight_ns <= STACK_WEIGHT_MAX, "sums are bounded");
	}
}

static bool same(const struct stack_slice *a, const struct stack_slice *b)
{
	bool ok = a->from_ns == b->from_ns && a->to_ns == b->to_ns && a->n == b->n;

	for (size_t i = 0; ok && i < a->n; i++) {
		const struct stack_row *x = &a->rows[i], *y = &b->rows[i];

		ok = x->entity == y->entity && x->node == y->node && x->peer == y->peer &&
		     x->kind == y->kind && x->on == y->on && x->flags == y->flags &&
		     x->count == y->count && x->weight_ns == y->weight_ns;
	}
	return ok;
}

static void write_again(const struct stack_slice *s)
{
	struct block_codec codec = { 0 };
	struct stack_block b = { 0 };
	struct stack_slice again;
	struct buf payload = { 0 };
	const void *blob;
	size_t n;

	stack_block_put(&payload, s);
	must(buf_ok(&payload) && block_pack(&codec, payload.data, payload.len, &blob, &n) == 0,
	     "what was read can be written");
	must(stack_block_open(&b, blob, n) == 0 && stack_block_next(&b, &again) == 1,
	     "what was written can be read");
	must(same(s, &again), "it reads back the same");
	must(stack_block_next(&b, &again) == 0 && !b.damaged, "it ends there");
	stack_block_done(&b);
	buf_done(&payload);
	block_codec_done(&codec);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static uint8_t packed[ZSTD_COMPRESSBOUND(1 << 17)];
	int64_t last_ns = INT64_MIN, weight_ns = 0;
	struct stack_block b = { 0 };
	struct stack_slice s;
	const void *blob = data + 1;
	size_t size = n ? n - 1 : 0;

	if (n < 2 || n > 1 << 17)
		return 0;
	if (!(data[0] & 1)) {
		size = ZSTD_compress(packed, sizeof(packed), data + 1, n - 1, 1);
		must(!ZSTD_isError(size), "zstd packs");
		blob = packed;
	}
	if (stack_block_open(&b, blob, size) == 0) {
		while (stack_block_next(&b, &s) > 0) {
			check(&s, &last_ns, &weight_ns);
			write_again(&s);
		}
	}
	stack_block_done(&b);
	return 0;
}
