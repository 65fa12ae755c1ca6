/* SPDX-License-Identifier: MIT */
#include "explain/does/trainers.h"

#include <string.h>

/* Names that dictionaries, sets, queues and files have as well, and what runs everything. */
static bool says_nothing(struct span name)
{
	static const char *const names[] = { "update", "add",      "append",  "get",   "put",
					     "pop",    "step",     "send",    "write", "read",
					     "run",    "main",     "next",    "call",  "forward",
					     "set",    "__call__", "__init__" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (span_is(name, names[i]))
			return true;
	return name.n < 3;
}

void trainers_add(struct trainers *t, const struct py_source *s, uint32_t def)
{
	const char *name = NULL;
	struct span found = { .n = py_name_of(s, def, &name) };

	found.p = name;
	if (found.n && t->n < TRAINERS_MAX && !says_nothing(found))
		t->names[t->n++] = found;
}

static bool calls(struct span s, struct span name)
{
	for (const char *p = s.p, *end = s.p + s.n;
	     (p = memmem(p, (size_t)(end - p), name.p, name.n)); p++)
		if ((p == s.p || !py_is_word(p[-1])) && p + name.n < end && p[name.n] == '(')
			return true;
	return false;
}

bool trainers_called(const struct trainers *t, struct span statement)
{
	if (!statement.n || span_begins(statement, "def ") ||
	    span_begins(statement, "async def ") || span_begins(statement, "class "))
		return false;
	for (size_t i = 0; i < t->n; i++)
		if (calls(statement, t->names[i]))
			return true;
	return false;
}
