/* SPDX-License-Identifier: MIT */
#include "explain/does/seldom.h"

#include <string.h>

enum { LINK_MAX = 64 };

/* `if step % 500 == 0:` */
static bool asks_for_turn(const struct py_source *s, uint32_t block)
{
	struct span head = span_of(&s->statements.v[s->blocks.v[block].head]);

	return s->blocks.v[block].kind == PY_OTHER && span_begins(head, "if ") &&
	       span_has(head, " % ");
}

/* Under a condition that holds in some turns only, or behind an inner loop that learns. */
static bool is_seldom(const struct py_source *s, const bool *learns, uint32_t loop, size_t at)
{
	uint32_t b = s->statements.v[at].block;

	for (int depth = 0; depth < LINK_MAX && b && b != loop; depth++) {
		if (asks_for_turn(s, b))
			return true;
		b = s->blocks.v[b].parent;
	}
	for (size_t k = loop + 1; k < s->blocks.n && s->blocks.v[k].head < at; k++)
		if (learns[k] && s->blocks.v[k].parent == loop)
			return true;
	return false;
}

/* What is handed to a metric and is no data: the model, settings, counts, losses. */
static bool is_other(struct span name)
{
	if (span_begins(name, "self.")) {
		name.p += 5;
		name.n -= 5;
	}
	return name.n == 1
		   ? !strchr("XxYy", name.p[0])
		   : isdigit((unsigned char)name.p[0]) ||
			 span_has_any(
			     name, "model|net|Net|optim|param|weight|policy|loss|grad|step|epoch|"
				   "log|arg|cfg|conf|opt|device|time|start|began|rank|world|hist|"
				   "curve|metric|score|seen|count|total|rate|size|mean") ||
			 span_is(name, "np") || span_is(name, "torch") || span_is(name, "math") ||
			 span_is(name, "self") || span_is(name, "None") || span_is(name, "True") ||
			 span_is(name, "False") || span_is(name, "for") || span_is(name, "in") ||
			 span_is(name, "if") || span_is(name, "else") || span_is(name, "and") ||
			 span_is(name, "or") || span_is(name, "not") || span_is(name, "lr");
}

/* Is it given a value inside of the loop, or by its head? */
static bool is_made_inside(const struct py_source *s, uint32_t loop, struct span name)
{
	struct span value, target;

	for (size_t i = s->blocks.v[loop].head; i < s->statements.n; i++) {
		const struct py_statement *t = &s->statements.v[i];
		struct span u = span_of(t);

		if (i != s->blocks.v[loop].head && !py_within(s, t->block, loop))
			continue;
		if (!py_look(s, 2 * t->n))
			return true;
		/* targets of loops and of `with ... as`, and whatever adds to it */
		if (span_begins(u, "for ") || span_begins(u, "with ") || span_begins(u, "while ")) {
			if (span_find_name(u, name))
				return true;
		} else if (span_assigns(u, name, &value) ||
			   (span_addition(u, &target, &value) && span_find_name(target, name))) {
			return true;
		}
	}
	return false;
}

/* The next plain name of a value that is handed to something: no function that is called, no keyword, no attribute. */
static bool next_name(struct span value, size_t *at, struct span *ret)
{
	while (*at < value.n) {
		size_t from = *at, to, behind;
		bool own;

		if (!py_is_word(value.p[from])) {
			++*at;
			continue;
		}
		for (to = from; to < value.n && py_is_word(value.p[to]);)
			to++;
		*at = to;
		for (behind = to; behind < value.n && value.p[behind] == ' ';)
			behind++;
		own = from >= 5 && memcmp(value.p + from - 5, "self.", 5) == 0;
		if ((from && value.p[from - 1] == '.' && !own) ||
		    (behind < value.n && value.p[behind] == '(') ||
		    (behind + 1 < value.n && value.p[behind] == '=' && value.p[behind + 1] != '='))
			continue;
		/* `network.score(`: asked, and not handed over */
		if (to < value.n && value.p[to] == '.') {
			size_t end = to + 1;

			while (end < value.n && (py_is_word(value.p[end]) || value.p[end] == '.'))
				end++;
			if (end < value.n && value.p[end] == '(')
				continue;
		}
		from -= own ? 5 : 0;
		*ret = (struct span){ value.p + from, to - from };
		return true;
	}
	return false;
}

bool seldom_evaluates(const struct py_source *s, const bool *learns, size_t at)
{
	const struct py_statement *t = &s->statements.v[at];
	uint32_t loop = py_loop_of(s, t->block);
	struct span targets, value, name;
	size_t from = 0;

	if (!loop || !is_seldom(s, learns, loop, at) ||
	    !span_assignment(span_of(t), &targets, &value))
		return false;
	while (next_name(value, &from, &name))
		if (!is_other(name) && !is_made_inside(s, loop, name))
			return true;
	return false;
}
