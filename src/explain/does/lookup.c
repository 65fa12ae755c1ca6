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
	static const char *const calls[] = { ".get(", ".setdefault(" };
	const char *at = NULL, *open, *colon;
	struct span inside, range;

	for (size_t i = 0; i < 2 && !at; i++) {
		at = s.n ? memmem(s.p, s.n, calls[i], strlen(calls[i])) : NULL;
		at = at ? at + strlen(calls[i]) - 1 : NULL;
	}
	if (!at)
		return false;
	inside = span_inside(s, at);
	open = inside.n ? memchr(inside.p, '[', inside.n) : NULL;
	if (!open || open == inside.p || !py_is_word(open[-1]))
		return false;
	range = span_inside(inside, open);
	colon = range.n ? memchr(range.p, ':', range.n) : NULL;
	return colon && names_something((struct span){ range.p, (size_t)(colon - range.p) }) &&
	       names_something((struct span){ colon + 1, range.n - (size_t)(colon + 1 - range.p) });
}
