/* SPDX-License-Identifier: MIT
 *
 * The first byte says how many bytes of program follow, the rest is the text they run over. Each
 * step must succeed and stay inside the text, or fail and leave the cursor where it was.
 */
#include "base/scan.h"
#include "fuzz.h"

#include <string.h>

static bool inside(const struct scan *part, const struct scan *whole)
{
	return part->p >= whole->p && part->p <= part->end && part->end <= whole->end;
}

static bool word(struct scan *s)
{
	const char *p;
	size_t n;
	const struct scan before = *s;

	if (!scan_word(s, &p, &n))
		return false;
	must(n > 0 && p >= before.p && p + n == s->p, "a word is not empty and ends at the cursor");
	return true;
}

static bool line(struct scan *s)
{
	const struct scan before = *s;
	struct scan rest;

	if (!scan_line(s, &rest))
		return false;
	must(inside(&rest, &before), "a line is part of its text");
	must(!memchr(rest.p, '\n', (size_t)(rest.end - rest.p)), "a line has no newline in it");
	return true;
}

static bool step(struct scan *s, uint8_t op)
{
	uint64_t u;
	int64_t i;

	switch (op & 15) {
	case 0:
		return scan_u64(s, &u);
	case 1:
		return scan_i64(s, &i);
	case 2:
		return scan_hex(s, &u);
	case 3:
		return scan_fixed(s, op >> 4, &i);
	case 4:
		return word(s);
	case 5:
		return scan_skip(s, op >> 4);
	case 6:
		return scan_after(s, "):= \t(/-,.0aA@x\0"[op >> 4]);
	case 7:
		return line(s);
	case 8:
		return scan_next_line(s);
	case 9:
		return scan_lit(s, "max");
	default:
		scan_blank(s);
		return true;
	}
}

static void keys(struct scan text)
{
	struct scan rest;
	uint64_t v = 42;

	if (scan_key(text, "MemFree", &rest))
		must(inside(&rest, &text), "what follows a key is part of the text");
	if (!scan_key_u64(text, "some", &v))
		must(v == 42, "a result is written only on success");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	size_t ops = n ? data[0] : 0;
	struct scan s, whole;

	if (n < 1 + ops)
		return 0;
	whole = s = scan_of((const char *)data + 1 + ops, n - 1 - ops);
	for (size_t k = 0; k < ops; k++) {
		const struct scan before = s;
		bool done = step(&s, data[1 + k]);

		must(s.end == whole.end && s.p >= before.p && s.p <= s.end,
		     "the cursor moves forward and stays inside");
		must(done || s.p == before.p, "a failed step does not move the cursor");
	}
	keys(whole);
	return 0;
}
