/* SPDX-License-Identifier: MIT */
#include "explain/does/lookup.h"

#include "explain/keeps/source.h"

#include <string.h>

static bool names_something(struct span s)
{
	s = span_trim(s);
	return s.n && py_is_word(s.p[0]) && !(s.p[0] >= '0' && s.p[0] <= '9');
}

bool lookup_of_stretch(struct span s)
{
	const char *at = s.n ? memmem(s.p, s.n, ".get(", 5) : NULL;
	struct span inside, range;
	const char *open, *colon;

	if (!at)
		return false;
	inside = span_inside(s, at + 4);
	open = inside.n ? memchr(inside.p, '[', inside.n) : NULL;
	if (!open || open == inside.p || !py_is_word(open[-1]))
		return false;
	range = span_inside(inside, open);
	colon = range.n ? memchr(range.p, ':', range.n) : NULL;
	return colon && names_something((struct span){ range.p, (size_t)(colon - range.p) }) &&
	       names_something((struct span){ colon + 1, range.n - (size_t)(colon + 1 - range.p) });
}
