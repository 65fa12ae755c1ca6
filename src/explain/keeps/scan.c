/* SPDX-License-Identifier: MIT */
#include "explain/keeps/keeps.h"
#include "explain/keeps/value.h"

#include <stdio.h>

/* Uses of a file that are weighed: each goes over the file a few times, and once more for each function around it. So
 * there is a bound on all of that, too: a tenth of a second or two, for a file that was made to take long. */
enum { USES_MAX = 100, LOOKS_MAX = 20 * 1000 * 1000, BLOCK_BYTES = 8 };
enum { SCORE_START = 5, SCORE_LEAST = 2, SCORE_MOST = 9 };

static const int weight_score[] = {
	[WEIGHT_SMALL] = -4, [WEIGHT_TEXT] = -2, [WEIGHT_PLAIN] = 0,
	[WEIGHT_MADE] = 1,   [WEIGHT_ARRAY] = 2, [WEIGHT_GRAPH] = 3,
};

struct scanner {
	struct py_source s;
	const char *raw;
	size_t n;
	bool torch;
	int uses;
	size_t left; /* bytes that may still be looked at */
	struct keep *best;
	size_t found;
};

/* The line itself, as far as the statement goes on in it. */
static void copy_line(const struct scanner *x, const struct py_statement *t, struct keep *k)
{
	const char *from = x->raw + (t->text - x->s.clean);
	size_t left = x->n - (size_t)(from - x->raw), n = t->n < left ? t->n : left;
	const char *end = memchr(from, '\n', n);

	n = end ? (size_t)(end - from) : n;
	snprintf(k->text, sizeof(k->text), "%.*s", (int)n, from);
	for (char *c = k->text; *c; c++)
		if (*c == '\r' || *c == '\t')
			*c = ' ';
}

static void add(struct scanner *x, const struct py_statement *t, struct keep k, uint32_t span)
{
	/* a decorator is outside of the function it is about */
	uint32_t def = k.what == KEEP_CACHE ? span : py_def_of(&x->s, t->block);
	const char *name = "<module>";
	size_t n = py_name_of(&x->s, def, &name), at = x->found;

	/* nothing left: what speaks against it may not have been seen */
	if (k.score < SCORE_LEAST || !x->left)
		return;
	k.score = k.score > SCORE_MOST ? SCORE_MOST : k.score;
	k.line = t->line;
	k.from = x->s.blocks.v[span].from;
	k.to = x->s.blocks.v[span].to;
	snprintf(k.function, sizeof(k.function), "%.*s", def ? (int)n : 8, name);
	copy_line(x, t, &k);
	while (at && x->best[at - 1].score < k.score) {
		at--;
		if (at + 1 < KEEPS_OF_FILE)
			x->best[at + 1] = x->best[at];
	}
	if (at < KEEPS_OF_FILE)
		x->best[at] = k;
	x->found += x->found < KEEPS_OF_FILE;
}

static bool named(const struct scanner *x, uint32_t def, const char *name)
{
	const char *p = "";
	size_t n = py_name_of(&x->s, def, &p);

	return n && span_is((struct span){ p, n }, name);
}

/* Weighs one use: what gets something, and what it gets. */
static void consider(struct scanner *x, const struct py_statement *t, enum keep_what what,
		     struct span name, struct span value, int more)
{
	const struct py_source *s = &x->s;
	uint32_t def = py_def_of(s, t->block), loop = py_loop_of(s, t->block);
	struct birth b;
	struct keep k = { .what = what, .score = SCORE_START + more };

	/* sys.path, and what runs once: a constructor, a module outside of its loops */
	if (!name.n || x->uses++ >= USES_MAX || span_begins(name, "sys.") ||
	    (!span_has(span_of(t), "lambda ") && (named(x, def, "__init__") || (!def && !loop))))
		return;
	b = birth_of(s, t, name);
	if (b.life == LIFE_NONE || b.as == MADE_BOUNDED)
		return;
	k.local = b.loop != 0;
	k.score += what == KEEP_SUM ? 0 : weight_score[value_weight(s, t, value, x->torch)];
	k.score -= b.life == LIFE_TURN ? 3 : 0;
	k.score -= b.trimmed ? 5 : 0;
	k.score -= b.measured ? 3 : 0;
	k.score -= b.as == MADE_OTHER ? 2 : 0;
	k.score += b.loops > 1;
	/* once an epoch is rarely much */
	k.score -=
	    loop && span_has(span_of(&s->statements.v[s->blocks.v[loop].head]), "epoch") ? 2 : 0;
	add(x, t, k, b.loop ? b.loop : def ? def : loop);
}

static enum made_as kind_of(struct scanner *x, const struct py_statement *t, struct span name)
{
	return name.n && x->uses++ < USES_MAX ? birth_of(&x->s, t, name).as : MADE_OTHER;
}

/* "history.append(out)", anywhere in the statement: a lambda has them, too. */
static void by_method(struct scanner *x, const struct py_statement *t)
{
	static const struct {
		const char *call;
		enum made_as as,
		    or_as; /* it must be known for one of these; MADE_UNKNOWN: anything */
	} methods[] = {
		{ ".append(", MADE_UNKNOWN, MADE_UNKNOWN },
		{ ".extend(", MADE_UNKNOWN, MADE_UNKNOWN },
		{ ".appendleft(", MADE_UNKNOWN, MADE_UNKNOWN },
		{ ".setdefault(", MADE_UNKNOWN, MADE_UNKNOWN },
		{ ".add(", MADE_SET, MADE_SET },
		{ ".update(", MADE_DICT, MADE_SET },
	};
	struct span all = span_of(t);

	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		const char *at = memmem(all.p, all.n, methods[i].call, strlen(methods[i].call));
		struct span name, value;
		enum made_as as;

		if (!at)
			continue;
		name = span_name_before(all, at);
		value = span_inside(all, at + strlen(methods[i].call) - 1);
		if (methods[i].as) {
			as = kind_of(x, t, name);
			if (as != methods[i].as && as != methods[i].or_as)
				continue;
		}
		consider(x, t,
			 methods[i].call[1] == 's' || methods[i].call[1] == 'u' ? KEEP_DICT
										: KEEP_LIST,
			 name, value, 0);
		return;
	}
}

/* "self.cache[index] = image". A key that is written there is always the same one. */
static void by_key(struct scanner *x, const struct py_statement *t, struct span target,
		   struct span value)
{
	struct span name = span_name_before(target, target.p + target.n), key;
	enum made_as as;
	int more = 0;

	if (!name.n || name.p != target.p || name.n == target.n)
		return;
	key = span_inside(target, target.p + name.n);
	if (!key.n || strchr("\"'-0123456789", *key.p) || memchr(key.p, ':', key.n))
		return;
	as = kind_of(x, t, name);
	if (as != MADE_DICT &&
	    !(as == MADE_UNKNOWN && span_has_any(name, "cache|memo|store|bank|seen|kept")))
		return;
	more -= span_find_name(value, name) ? 3 : 0;
	more += span_has_any(name, "cache|memo") ? 1 : 0;
	consider(x, t, KEEP_DICT, name, value, more);
}

/* "total += loss", where total was a number and loss has a graph; "rows += [x]". */
static void by_addition(struct scanner *x, const struct py_statement *t)
{
	struct span name, value, word, made;
	enum made_as as;

	if (!span_addition(span_of(t), &name, &value) || !span_is_name(name))
		return;
	as = kind_of(x, t, name);
	if (as == MADE_LIST) {
		consider(x, t, KEEP_LIST, name, value, 0);
		return;
	}
	word = value;
	for (word.n = 0;
	     word.n < value.n && (py_is_word(value.p[word.n]) || value.p[word.n] == '.'); word.n++)
		;
	if (as != MADE_NUMBER || !x->torch || !span_has(word, "loss") ||
	    span_has_any(value, ".item(|float(|.detach(|.data|.numpy(") ||
	    !birth_in_turn(&x->s, t, word, &made) || span_has_any(made, ".item(|float(|.detach("))
		return;
	consider(x, t, KEEP_SUM, name, value, 1);
}

/* "buffer = torch.cat([buffer, out])" */
static bool lengthens(struct span target, struct span value)
{
	return span_is_name(target) && span_find_name(value, target) &&
	       span_has_any(value, "cat(|concatenate(|append(|vstack(|hstack(");
}

/* "@lru_cache(maxsize=None)" and "@cache"; the first of the two without an argument has a bound. */
static void by_decorator(struct scanner *x, const struct py_statement *t)
{
	struct span all = span_of(t);
	uint32_t head = (uint32_t)(t - x->s.statements.v) + 1;
	bool keeps = span_is(all, "@cache") || span_is(all, "@functools.cache") ||
		     (span_has(all, "lru_cache(") && span_has(all, "None"));

	for (uint32_t b = 1; keeps && b < x->s.blocks.n && py_look(&x->s, BLOCK_BYTES); b++)
		if (x->s.blocks.v[b].head == head && x->s.blocks.v[b].kind == PY_DEF)
			add(x, t, (struct keep){ .what = KEEP_CACHE, .score = 6 }, b);
}

/* The method of a data set that loader workers call; 0: it is none. */
static uint32_t getter_of(const struct scanner *x, uint32_t class)
{
	for (uint32_t b = class + 1; class && b < x->s.blocks.n && py_look(&x->s, BLOCK_BYTES); b++)
		if (x->s.blocks.v[b].parent == class && x->s.blocks.v[b].kind == PY_DEF &&
		    (named(x, b, "__getitem__") || named(x, b, "__iter__") ||
		     named(x, b, "__getitems__")))
			return b;
	return 0;
}

/* "self.notes = [{...} for i in many]" in the constructor of a data set. */
static void by_objects(struct scanner *x, const struct py_statement *t, struct span target,
		       struct span value)
{
	uint32_t def = py_def_of(&x->s, t->block), getter = 0;
	struct keep k = { .what = KEEP_OBJECTS, .score = 4 };
	bool used = false;

	/* what is dear comes last: a class may have thousands of methods, and of these lines */
	if (!span_begins(target, "self.") || !named(x, def, "__init__") ||
	    !span_has_any(
		value,
		" for "
		"|list(|sorted(|.tolist(|.split(|.readlines(|json.load|pickle.load|.to_dict(") ||
	    span_has_any(value, "array(|tensor(|from_numpy(") || x->uses++ >= USES_MAX ||
	    !(getter = getter_of(x, py_class_of(&x->s, t->block))))
		return;
	for (size_t i = 0; i < x->s.statements.n && !used && x->left; i++)
		used = py_look(&x->s, x->s.statements.v[i].n + BLOCK_BYTES) &&
		       py_within(&x->s, x->s.statements.v[i].block, getter) &&
		       span_find_name(span_of(&x->s.statements.v[i]), target);
	k.score += used ? 1 : -2;
	k.score += span_has_any(value, "{|dict(|json.load|pickle.load|.to_dict(") ? 2 : 0;
	add(x, t, k, getter);
}

static void look_at(struct scanner *x, const struct py_statement *t)
{
	struct span all = span_of(t), target, value;

	if (*all.p == '@') {
		by_decorator(x, t);
		return;
	}
	if (span_has(all, "retain_graph=True"))
		add(x, t, (struct keep){ .what = KEEP_GRAPH, .score = 3 },
		    py_def_of(&x->s, t->block));
	by_method(x, t);
	by_addition(x, t);
	if (!span_assignment(all, &target, &value))
		return;
	by_objects(x, t, target, value);
	if (target.n && target.p[target.n - 1] == ']')
		by_key(x, t, target, value);
	else if (lengthens(target, value))
		consider(x, t, KEEP_LIST, target, value, 0);
}

size_t keeps_scan(const char *text, size_t n, struct keep ret[KEEPS_OF_FILE])
{
	struct scanner x = { .raw = text, .n = n, .best = ret, .left = LOOKS_MAX };

	if (py_source_read(&x.s, text, n) == 0) {
		x.torch = memmem(x.s.clean, n, "torch", 5) != NULL;
		x.s.left = &x.left;
		for (size_t i = 0; i < x.s.statements.n && x.left; i++)
			look_at(&x, &x.s.statements.v[i]);
	}
	py_source_done(&x.s);
	return x.found;
}
