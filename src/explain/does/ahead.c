/* SPDX-License-Identifier: MIT */
#include "explain/does/ahead.h"

#include "explain/keeps/words.h"

enum { NAMES_MAX = 6 };

struct made {
	struct span names[NAMES_MAX], value;
	size_t n;
};

/* `x, y = value`; 0: it assigns nothing, or more than plain names. */
static size_t read_made(struct span s, struct made *ret)
{
	struct span targets, piece;

	ret->n = 0;
	if (!span_assignment(s, &targets, &ret->value))
		return 0;
	while (span_next(&targets, &piece)) {
		piece = span_trim(piece);
		if (ret->n == NAMES_MAX || !span_is_name(piece))
			return 0;
		ret->names[ret->n++] = piece;
	}
	return ret->n;
}

/* Calls something, and is not told what the model said: that is what states, moves and rates are made of. */
static bool may_load(const struct made *m)
{
	return m->value.n && memchr(m->value.p, '(', m->value.n) &&
	       !span_has_any(
		   m->value,
		   ".step(|.reset(|.act(|loss|grad|state|model|net(|sched|time(|perf_counter(");
}

static bool mentions_any(struct span s, const struct made *m)
{
	for (size_t i = 0; i < m->n; i++)
		if (span_find_name(s, m->names[i]))
			return true;
	return false;
}

/* `x, y = upcoming`, `loss = fit(x)`; not `if x is None:` */
static bool hands_on(struct span s)
{
	struct made m;

	if (span_begins(s, "if ") || span_begins(s, "while ") || span_begins(s, "del "))
		return false;
	return memchr(s.p, '(', s.n) || (read_made(s, &m) && span_is_name(span_trim(m.value)));
}

bool ahead_made(const struct py_source *s, const bool *learns, size_t at)
{
	const struct py_statement *t = &s->statements.v[at];
	uint32_t loop = py_loop_of(s, t->block);
	struct made own, other;
	bool used = false;

	if (!loop || !learns[loop] || !read_made(span_of(t), &own) || !may_load(&own) ||
	    mentions_any(own.value, &own))
		return false;
	for (size_t i = s->blocks.v[loop].head + 1; i < at; i++) {
		struct span u = span_of(&s->statements.v[i]);

		if (!py_look(s, 4 * u.n))
			return false;
		if (py_loop_of(s, s->statements.v[i].block) != loop || !u.n)
			continue;
		/* made before in the same turn: then that is what was used; or it is made of this turn's */
		if (read_made(u, &other)) {
			for (size_t k = 0; k < own.n && !used; k++)
				if (mentions_any(own.names[k], &other))
					return false;
			if (mentions_any(own.value, &other))
				return false;
		}
		used |= mentions_any(u, &own) && hands_on(u);
	}
	return used;
}
