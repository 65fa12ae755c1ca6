/* SPDX-License-Identifier: MIT */
#include "explain/does/watch.h"

#include "explain/keeps/words.h"

/* What is made of what only watches watches, too: so often it is looked for. */
enum { ROUNDS = 3, NAMES_MAX = 6 };

/* Shows a value, or keeps it where only what is shown is kept. */
static bool shows(struct span s)
{
	if (span_begins(s, "print(") ||
	    span_has_any(s, "print(|.log(|log_metric|log_scalar|logger.|logging.|.write(|.info(|"
			    ".debug(|set_postfix(|set_description(|add_scalar(|json.dump"))
		return true;
	return span_has(s, ".append(") &&
	       (span_begins(s, "hist") || span_begins(s, "log") || span_begins(s, "curve") ||
		span_begins(s, "metric") || span_begins(s, "losses") || span_begins(s, "accs") ||
		span_begins(s, "scores"));
}

/* The plain names it assigns; 0: none, or something that others may use by another name. */
static size_t targets_of(struct span s, struct span names[NAMES_MAX], struct span *ret_value)
{
	struct span targets, piece;
	size_t n = 0;

	if (!span_assignment(s, &targets, ret_value))
		return 0;
	while (span_next(&targets, &piece)) {
		piece = span_trim(piece);
		if (n == NAMES_MAX || !span_is_name(piece) || memchr(piece.p, '.', piece.n))
			return 0;
		names[n++] = piece;
	}
	return n;
}

/* Does it use the name, other than to give it a value? What f-strings have in braces is in the text as it was written only. */
static bool uses(struct span s, struct span raw, struct span name)
{
	struct span value;

	if (raw.n && memchr(raw.p, '{', raw.n) && span_find_name(raw, name) &&
	    !span_find_name(s, name))
		return true;
	if (span_assigns(s, name, &value))
		return span_find_name(value, name) != NULL;
	return span_find_name(s, name) != NULL;
}

/* Is it of no use to anybody who does not watch? */
static bool is_only_seen(const struct py_source *s, const char *raw, const bool *watch, size_t at,
			 struct span name)
{
	uint32_t def = py_def_of(s, s->statements.v[at].block);

	for (size_t i = 0; i < s->statements.n; i++) {
		const struct py_statement *u = &s->statements.v[i];

		if (!py_look(s, u->n))
			return false;
		/* functions inside of it see the name as well */
		if (i == at || watch[i] || (def && !py_within(s, u->block, def)))
			continue;
		if (uses(span_of(u), (struct span){ raw + (u->text - s->clean), u->n }, name) &&
		    !shows(span_of(u)))
			return false;
	}
	return true;
}

static bool watches(const struct py_source *s, const char *raw, const bool *learns,
		    const bool *watch, size_t at)
{
	const struct py_statement *t = &s->statements.v[at];
	uint32_t loop = py_loop_of(s, t->block);
	struct span names[NAMES_MAX], value;
	size_t n;

	if (!loop || !learns[loop])
		return false;
	n = targets_of(span_of(t), names, &value);
	if (n == 0 || !memchr(value.p, '(', value.n) ||
	    span_has_any(value, ".step(|next(|.get(|.recv(|time(|perf_counter(|monotonic("))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!is_only_seen(s, raw, watch, at, names[i]))
			return false;
	return true;
}

bool watch_find(const struct py_source *s, const char *raw, const bool *learns, bool *ret)
{
	bool more = true;

	for (size_t i = 0; i < s->statements.n; i++)
		ret[i] = false;
	for (int round = 0; more && round < ROUNDS; round++) {
		more = false;
		for (size_t i = s->statements.n; i-- > 0;) {
			if (ret[i] || !watches(s, raw, learns, ret, i))
				continue;
			ret[i] = true;
			more = true;
		}
	}
	return !s->left || *s->left > 0;
}
