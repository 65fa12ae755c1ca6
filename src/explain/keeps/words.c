/* SPDX-License-Identifier: MIT */
#include "explain/keeps/words.h"

enum { CHAIN_MAX = 4 }; /* of "a = b = []": a line may be anything */

struct span span_trim(struct span s)
{
	for (; s.n && py_is_blank(*s.p); s.n--)
		s.p++;
	while (s.n && py_is_blank(s.p[s.n - 1]))
		s.n--;
	return s;
}

bool span_is(struct span s, const char *text)
{
	return s.n == strlen(text) && memcmp(s.p, text, s.n) == 0;
}

bool span_begins(struct span s, const char *text)
{
	size_t n = strlen(text);

	return s.n >= n && memcmp(s.p, text, n) == 0;
}

bool span_has(struct span s, const char *text)
{
	return s.n && memmem(s.p, s.n, text, strlen(text));
}

bool span_has_any(struct span s, const char *list)
{
	while (*list) {
		size_t n = strcspn(list, "|");

		if (s.n && memmem(s.p, s.n, list, n))
			return true;
		list += n + (list[n] == '|');
	}
	return false;
}

const char *span_find_name(struct span s, struct span name)
{
	const char *at = s.p, *end = s.p + s.n;

	if (!name.n)
		return NULL;
	while (at < end && (at = memmem(at, (size_t)(end - at), name.p, name.n))) {
		const char *behind = at + name.n;
		bool whole = (at == s.p || (!py_is_word(at[-1]) && at[-1] != '.')) &&
			     (behind == end || !py_is_word(*behind));

		if (whole)
			return at;
		at = behind;
	}
	return NULL;
}

bool span_is_name(struct span s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!py_is_word(s.p[i]) && s.p[i] != '.')
			return false;
	return s.n && !isdigit((unsigned char)*s.p) && *s.p != '.';
}

static char opening(char c)
{
	return c == ')' ? '(' : c == ']' ? '[' : c == '}' ? '{' : 0;
}

struct span span_name_before(struct span s, const char *end)
{
	const char *from = end;

	while (from > s.p && from[-1] == ']') {
		int open = 0;

		do {
			from--;
			open += opening(*from) ? 1 : 0;
			open -= *from == '(' || *from == '[' || *from == '{';
		} while (from > s.p && open > 0);
		end = from;
	}
	while (from > s.p && (py_is_word(from[-1]) || from[-1] == '.'))
		from--;
	return span_is_name((struct span){ from, (size_t)(end - from) })
		   ? (struct span){ from, (size_t)(end - from) }
		   : (struct span){ 0 };
}

struct span span_inside(struct span s, const char *open)
{
	const char *end = s.p + s.n, *at = open;
	int depth = 0;

	for (; at < end; at++) {
		depth += *at == '(' || *at == '[' || *at == '{';
		depth -= opening(*at) ? 1 : 0;
		if (depth <= 0)
			break;
	}
	return span_trim((struct span){ open + 1, at > open ? (size_t)(at - open - 1) : 0 });
}

bool span_next(struct span *rest, struct span *ret)
{
	size_t i = 0;
	int depth = 0;

	if (!rest->n)
		return false;
	for (; i < rest->n; i++) {
		char c = rest->p[i];

		depth += c == '(' || c == '[' || c == '{';
		depth -= opening(c) ? 1 : 0;
		if (c == ',' && depth <= 0)
			break;
	}
	*ret = span_trim((struct span){ rest->p, i });
	i += i < rest->n;
	*rest = (struct span){ rest->p + i, rest->n - i };
	return true;
}

/* The last = outside of brackets that assigns. -1: none. */
static ssize_t last_assign(struct span s)
{
	ssize_t found = -1;
	int depth = 0;

	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i], before = i ? s.p[i - 1] : ' ';

		depth += c == '(' || c == '[' || c == '{';
		depth -= opening(c) ? 1 : 0;
		if (c != '=' || depth > 0)
			continue;
		if (i + 1 < s.n && s.p[i + 1] == '=')
			i++;
		else if (!strchr("=!<>+-*/%&|^@:", before))
			found = (ssize_t)i;
	}
	return found;
}

bool span_assignment(struct span s, struct span *ret_targets, struct span *ret_value)
{
	ssize_t at = last_assign(s);

	if (at <= 0)
		return false;
	*ret_targets = span_trim((struct span){ s.p, (size_t)at });
	*ret_value = span_trim((struct span){ s.p + at + 1, s.n - (size_t)at - 1 });
	return true;
}

bool span_addition(struct span s, struct span *ret_target, struct span *ret_value)
{
	const char *at = s.n ? memmem(s.p, s.n, "+=", 2) : NULL;

	if (!at)
		return false;
	*ret_target = span_trim((struct span){ s.p, (size_t)(at - s.p) });
	*ret_value = span_trim((struct span){ at + 2, (size_t)(s.p + s.n - at - 2) });
	return true;
}

static size_t count_parts(struct span s)
{
	struct span part;
	size_t n = 0;

	while (span_next(&s, &part))
		n++;
	return n;
}

/* "history: list" is history. */
static struct span without_type(struct span s)
{
	const char *colon = s.n ? memchr(s.p, ':', s.n) : NULL;

	return colon ? span_trim((struct span){ s.p, (size_t)(colon - s.p) }) : s;
}

static bool same(struct span a, struct span b)
{
	return a.n == b.n && memcmp(a.p, b.p, a.n) == 0;
}

bool span_assigns(struct span s, struct span name, struct span *ret_value)
{
	struct span targets, value, target, part = { 0 };
	int links = CHAIN_MAX;
	bool parts;

	if (!span_find_name(s, name) || !span_assignment(s, &targets, &value))
		return false;
	targets = without_type(targets);
	*ret_value = value;
	if (same(targets, name))
		return true;
	/* a chain: "a = b = []" */
	while (links-- && span_assignment(targets, &target, &part)) {
		if (same(part, name) || same(target, name))
			return true;
		targets = target;
	}
	parts = count_parts(targets) == count_parts(value);
	while (span_next(&targets, &target)) {
		if (parts)
			span_next(&value, &part);
		if (same(target, name)) {
			*ret_value = parts ? part : value;
			return true;
		}
	}
	return false;
}
