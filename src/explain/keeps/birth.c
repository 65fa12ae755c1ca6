/* SPDX-License-Identifier: MIT */
#include "explain/keeps/birth.h"

/* How often the bytes of a statement are looked at, about, if it has the name: it is taken apart then. And what a step
 * costs beside that, in bytes. */
enum { TIMES_WITH_NAME = 8, STEP_BYTES = 16 };

static enum made_as made_as(struct span v)
{
	if (!v.n)
		return MADE_UNKNOWN;
	/* deque(maxlen=size or None): None is no bound */
	if (span_has_any(v, "maxlen|maxsize|LRU") && !span_has_any(v, "or None|=None|= None"))
		return MADE_BOUNDED;
	if (*v.p == '[' || span_has_any(v, "list(|deque("))
		return MADE_LIST;
	if (span_has_any(v, "dict(|Dict(|Counter(|Dictionary("))
		return MADE_DICT;
	if (*v.p == '{')
		return v.n == 2 || span_has(v, ":") ? MADE_DICT : MADE_SET;
	if (span_has(v, "set("))
		return MADE_SET;
	return isdigit((unsigned char)*v.p) ? MADE_NUMBER : MADE_OTHER;
}

/* The next statement behind `from` that assigns to the name; the number of statements: none. */
static size_t next_assignment(const struct py_source *s, struct span name, size_t from,
			      struct span *ret_value)
{
	for (; from < s->statements.n; from++) {
		struct span all = span_of(&s->statements.v[from]);

		if (!py_look(s, all.n + STEP_BYTES))
			return s->statements.n;
		if (span_find_name(all, name) && py_look(s, TIMES_WITH_NAME * all.n) &&
		    span_assigns(all, name, ret_value))
			break;
	}
	return from;
}

/* "loss_history" of "self.loss_history". */
static struct span last_part(struct span name)
{
	const char *dot = memrchr(name.p, '.', name.n);

	return dot ? (struct span){ dot + 1, (size_t)(name.p + name.n - dot - 1) } : name;
}

/* Is something taken from it, or is it emptied? Only statements of this function count (0: any). */
static void find_trims(const struct py_source *s, struct span name, uint32_t def, struct birth *b)
{
	for (size_t i = 0; i < s->statements.n; i++) {
		const struct py_statement *t = &s->statements.v[i];
		struct span all = span_of(t), rest;
		const char *at = py_look(s, all.n + STEP_BYTES) ? span_find_name(all, name) : NULL;

		if (!at || !py_look(s, TIMES_WITH_NAME * all.n) ||
		    (def && py_def_of(s, t->block) != def))
			continue;
		rest = (struct span){ at + name.n, (size_t)(all.p + all.n - at) - name.n };
		b->trimmed |= rest.n > 4 &&
			      span_has_any((struct span){ rest.p, rest.n < 10 ? rest.n : 10 },
					   ".clear(|.pop(|.popleft(|.popitem(|.remove(|.discard(");
		b->trimmed |= span_begins(all, "del ");
		b->trimmed |= span_has_any(all, "heappop(|heappushpop(|heapreplace(");
		b->measured |= span_has(all, "len(") &&
			       (span_begins(all, "if ") || span_begins(all, "while "));
	}
}

static bool is_initial(const struct py_source *s, uint32_t def)
{
	const char *p;
	size_t n = py_name_of(s, def, &p);
	struct span name = { p, n };

	return !def || span_is(name, "__init__") || span_is(name, "__post_init__") ||
	       span_is(name, "setup") || span_is(name, "build");
}

/* An attribute: of any method of the class it is in, where it is one of self, or of anybody. */
static struct birth of_attribute(const struct py_source *s, const struct py_statement *use,
				 struct span name)
{
	struct birth b = { .life = LIFE_LONG };
	struct span value, last = last_part(name);
	uint32_t class = py_class_of(s, use->block), def = py_def_of(s, use->block);

	for (size_t i = 0; (i = next_assignment(s, name, i, &value)) < s->statements.n; i++) {
		const struct py_statement *t = &s->statements.v[i];
		uint32_t by = py_def_of(s, t->block);

		/* "self.x" of another class is another one */
		if (class && py_class_of(s, t->block) != class && span_begins(name, "self."))
			continue;
		b.trimmed |= span_find_name(value, name) && span_has(value, "[");
		b.as = b.as && b.as != MADE_OTHER ? b.as : made_as(value);
		if (by == def && !is_initial(s, def) && t < use)
			b.life = LIFE_NONE;
		else if (!is_initial(s, by) && b.life != LIFE_NONE)
			b.life = LIFE_TURN;
	}
	/* "seen = {}" in the body of the class */
	for (size_t i = 0; !b.as && (i = next_assignment(s, last, i, &value)) < s->statements.n;
	     i++)
		if (s->blocks.v[s->statements.v[i].block].kind == PY_CLASS)
			b.as = made_as(value);
	find_trims(s, name, 0, &b);
	return b;
}

/* Is it among what the head of a function takes? */
static bool is_parameter(const struct py_source *s, uint32_t def, struct span name)
{
	return def && span_find_name(span_of(&s->statements.v[s->blocks.v[def].head]), name);
}

/* How many loops are around the block, up to where `made` is inside of, too; the outermost of them. */
static int loops_between(const struct py_source *s, uint32_t block, uint32_t made,
			 uint32_t *ret_outer)
{
	uint32_t loop = py_loop_of(s, block);
	int n = 0;

	*ret_outer = 0;
	for (; loop && py_look(s, SOURCE_DEPTH_MAX) && !py_within(s, made, loop);
	     loop = py_loop_of(s, s->blocks.v[loop].parent)) {
		*ret_outer = loop;
		n++;
	}
	return n;
}

/* A variable of this function (or of the module): by the assignment that is nearest to its use. */
static bool of_variable(const struct py_source *s, const struct py_statement *use, struct span name,
			uint32_t def, struct birth *b)
{
	bool found = false;
	struct span value;

	for (size_t i = 0; (i = next_assignment(s, name, i, &value)) < s->statements.n; i++) {
		const struct py_statement *t = &s->statements.v[i];
		uint32_t outer;
		int loops;

		if (py_def_of(s, t->block) != def || t == use)
			continue;
		loops = loops_between(s, use->block, t->block, &outer);
		if (span_find_name(value, name) && !span_has(value, "cat")) {
			b->trimmed |= span_has(value, "[");
			continue;
		}
		if (found && loops >= b->loops)
			continue;
		found = true;
		b->as = made_as(value);
		b->loops = loops;
		b->loop = outer;
		b->life =
		    !loops ? LIFE_NONE
		    : py_loop_of(s, t->block) && py_within(s, use->block, py_loop_of(s, t->block))
			? LIFE_TURN
			: LIFE_LOOP;
	}
	return found;
}

struct birth birth_of(const struct py_source *s, const struct py_statement *use, struct span name)
{
	uint32_t def = py_def_of(s, use->block), at = def;
	/* what a lambda does is done when it is called: it may outlive the function */
	bool later = span_has(span_of(use), "lambda ");
	struct birth b = { 0 };

	if (memchr(name.p, '.', name.n))
		return of_attribute(s, use, name);
	if (of_variable(s, use, name, def, &b) && !later) {
		find_trims(s, name, def, &b);
		return b;
	}
	/* a parameter, a variable of a function around it or of the module; or nobody knows */
	b = (struct birth){ .life = LIFE_LONG, .as = b.as };
	find_trims(s, name, 0, &b);
	while (at && !is_parameter(s, at, name)) {
		struct birth outer = { 0 };

		at = py_def_of(s, s->blocks.v[at].parent);
		if (of_variable(s, use, name, at, &outer)) {
			b.as = outer.as;
			break;
		}
	}
	return b;
}

bool birth_in_turn(const struct py_source *s, const struct py_statement *use, struct span name,
		   struct span *ret_value)
{
	uint32_t loop = py_loop_of(s, use->block), def = py_def_of(s, use->block);
	uint32_t inside = loop ? loop : def;
	bool found = false;
	struct span value;

	for (size_t i = 0; (i = next_assignment(s, name, i, &value)) < s->statements.n; i++) {
		const struct py_statement *t = &s->statements.v[i];

		/* the last one before its use */
		if (t >= use)
			break;
		if (!inside || !py_within(s, t->block, inside))
			continue;
		*ret_value = value;
		found = true;
	}
	if (found || !loop)
		return found;
	*ret_value = (struct span){ 0 };
	return span_find_name(span_of(&s->statements.v[s->blocks.v[loop].head]), name) &&
	       s->statements.v[s->blocks.v[loop].head].text[0] != 'w';
}
