/* SPDX-License-Identifier: MIT */
#include "explain/does/lookup.h"

#include "explain/keeps/source.h"

#include <string.h>

static bool names_something(struct span s)
{
	s = span_trim(s);
	return s.n && py_is_word(s.p[0]) && !(s.p[0] >= '0' && s.p[0] <= '9');
}

/* "body[k:k + 3]": a stretch from here to there, by names. */
static bool is_stretch(struct span s)
{
	const char *open = s.n ? memchr(s.p, '[', s.n) : NULL, *colon;
	struct span range;

	if (!open || open == s.p || !py_is_word(open[-1]))
		return false;
	range = span_inside(s, open);
	colon = range.n ? memchr(range.p, ':', range.n) : NULL;
	return colon && names_something((struct span){ range.p, (size_t)(colon - range.p) }) &&
	       names_something((struct span){ colon + 1, range.n - (size_t)(colon + 1 - range.p) });
}

/* Is a stretch the key of such a call? What is kept under a key may be anything, so with setdefault it must be a number: the next
 * one (`table.setdefault(body[k:k + 3], len(table))`). */
static bool is_key_of(struct span s, const char *call, bool numbers)
{
	size_t n = strlen(call);

	for (const char *at = s.p; (at = memmem(at, s.n - (size_t)(at - s.p), call, n)); at += n) {
		struct span inside = span_inside(s, at + n - 1), key;

		if (span_next(&inside, &key) && is_stretch(key) &&
		    (!numbers || span_has(inside, "len(")))
			return true;
	}
	return false;
}

bool lookup_of_stretch(struct span s)
{
	return s.n && (is_key_of(s, ".get(", false) || is_key_of(s, ".setdefault(", true));
}
