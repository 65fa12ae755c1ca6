/* SPDX-License-Identifier: MIT
 *
 * memory_leak: the memory a process has for itself grows from the end of the start to the end of the run, and
 * no slower at the end.
 *
 * Not to be taken for it: file pages and mapped data (they are not its own), an allocator or a cache that
 * fills up (the growth ends), loader workers that copy pages they share (worker_memory_growth).
 *
 * Gain: none on speed, until the memory is full.
 */
#include "explain/growing.h"

static enum answer check(const struct facts *f, struct opinion *o)
{
	struct growing g = {
		.rate = FACT_LEAK,
		.bytes = FACT_LEAK_BYTES,
		.of = FACT_LEAK_OF,
		.who = "the program",
		.grow = "grows",
		.process = f->v[FACT_LEAK].text,
		.fix =
		    "keep numbers, not tensors (losses.append(loss) keeps the whole graph of each "
		    "step), bound caches and lists that get an entry each step; tracemalloc, or "
		    "gc.get_objects() now and later, names what grows",
		.edit = "losses.append(loss.item())",
		.kept = FACT_KEPT,
	};

	enum answer a = growing_check(&g, f, o);

	if (a == ANSWER_YES)
		growing_title(&o->finding);
	return a;
}

const struct rule memory_leak_rule = { .cause = "memory_leak", .needs_s = 0, .check = check };
