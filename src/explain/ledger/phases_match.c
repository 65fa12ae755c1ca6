/* SPDX-License-Identifier: MIT
 *
 * Holding places against the texts of tables (phases.c, roles.c).
 */
#include "explain/ledger/phases.h"

#include <ctype.h>
#include <string.h>

bool phase_glob(const char *pattern, size_t n, const char *text, size_t len)
{
	size_t p = 0, t = 0, star = n, back = 0;

	/* The last '*' is the only one that ever has to be tried again: no recursion. */
	while (t < len) {
		if (p < n && pattern[p] == '*') {
			star = p++;
			back = t;
		} else if (p < n && pattern[p] == text[t]) {
			p++;
			t++;
		} else if (star < n) {
			p = star + 1;
			t = ++back;
		} else {
			return false;
		}
	}
	while (p < n && pattern[p] == '*')
		p++;
	return p == n;
}

/* The next alternative: its length, 0 at the end; *p moves behind it. */
static size_t alternative(const char **p, const char **ret)
{
	size_t n = strcspn(*p, "|");

	*ret = *p;
	*p += n + ((*p)[n] == '|');
	return n;
}

/* Does the folder that ends at `end` hold installed modules: ".../site-packages", ".../lib/python3.11"? */
static bool is_root(const char *path, const char *end)
{
	static const char *const roots[] = { "site-packages", "dist-packages" };
	const char *start;
	size_t n;

	if (end > path && end[-1] == '/')
		end--;
	for (start = end; start > path && start[-1] != '/'; start--)
		;
	n = (size_t)(end - start);
	for (size_t i = 0; i < 2; i++)
		if (n == strlen(roots[i]) && memcmp(start, roots[i], n) == 0)
			return true;
	/* lib/python3.11, python311.zip */
	return n > 7 && memcmp(start, "python3", 7) == 0;
}

/* A name of one part may be anybody's ("queue.py", "datasets/"): it counts where modules are
 * installed. One of several parts counts anywhere: also in a source tree. */
static bool one_file(const char *file, size_t n, const char *path)
{
	size_t len = strlen(path);
	bool folder = file[n - 1] == '/', lone = !memchr(file, '/', n - folder);
	const char *at;

	if (!folder) {
		if (len < n || memcmp(path + len - n, file, n) != 0)
			return false;
		at = path + len - n;
		return (at == path || at[-1] == '/') && (!lone || is_root(path, at));
	}
	for (at = path; (at = memmem(at, len - (size_t)(at - path), file, n)); at++)
		if ((at == path || at[-1] == '/') && (!lone || is_root(path, at)))
			return true;
	return false;
}

bool phase_file(const char *file, const char *path)
{
	const char *a;
	size_t n;

	if (!*file)
		return true;
	while ((n = alternative(&file, &a)))
		if (one_file(a, n, path))
			return true;
	return false;
}

/* The last parts of a qualified name, as many as the pattern has: "f.<locals>.C.m" and "C.m". NULL:
 * it has fewer. */
static const char *tail_like(const char *pattern, size_t n, const char *function)
{
	const char *p = function + strlen(function);
	size_t dots = 0;

	for (size_t i = 0; i < n; i++)
		dots += pattern[i] == '.';
	for (;; p--) {
		if (p == function)
			return dots == 0 ? p : NULL;
		if (p[-1] == '.' && dots-- == 0)
			return p;
	}
}

bool phase_function(const char *names, const char *function, bool bare_too)
{
	const char *a, *tail;
	size_t n;

	if (!*names)
		return true;
	while ((n = alternative(&names, &a))) {
		tail = tail_like(a, n, function);
		if (!tail && bare_too && !strchr(function, '.')) {
			const char *dot = memrchr(a, '.', n);

			n -= (size_t)(dot + 1 - a);
			a = dot + 1;
			tail = function;
		}
		if (tail && phase_glob(a, n, tail, strlen(tail)))
			return true;
	}
	return false;
}

/* A piece of a line that is not the end of a longer word: "print(" is not in "fingerprint(x)". */
static bool in_line(const char *pieces, const char *line)
{
	size_t len = strlen(line), n;
	const char *a, *at;

	while ((n = alternative(&pieces, &a)))
		for (at = line; (at = memmem(at, len - (size_t)(at - line), a, n)); at++) {
			bool word = isalnum((unsigned char)a[0]) || a[0] == '_';

			/* "if loss > x:", not "a if b else c" */
			if (a[n - 1] == ' ' && at != line)
				continue;
			if (!word || at == line ||
			    !(isalnum((unsigned char)at[-1]) || at[-1] == '_'))
				return true;
		}
	return false;
}

static bool library(const char *names, const char *path)
{
	const char *base = strrchr(path, '/'), *a;
	size_t n;

	if (!*names)
		return true;
	base = base ? base + 1 : path;
	while ((n = alternative(&names, &a)))
		if (strncmp(a, base, n) == 0)
			return true;
	return false;
}

static bool holds(enum phase_by by, const char *file, const char *name, const struct place *p)
{
	switch (by) {
	case PHASE_BY_FRAME:
		/* a module that is being imported does not do what it is for */
		if (!*name && strcmp(p->function, "<module>") == 0)
			return false;
		return phase_function(name, p->function, *file) && phase_file(file, p->file);
	case PHASE_BY_LINE:
		return in_line(name, p->source);
	case PHASE_BY_NATIVE:
		return library(file, p->file) && phase_function(name, p->function, false);
	}
	return false;
}

bool phase_holds(enum phase_by by, const char *file, const char *name, const struct place *p,
		 bool by_line)
{
	enum phase_by wanted = p->kind == PLACE_NATIVE ? PHASE_BY_NATIVE
			       : by_line               ? PHASE_BY_LINE
						       : PHASE_BY_FRAME;

	if (by != wanted || (by == PHASE_BY_LINE && (!*p->source || *p->source == '#')))
		return false;
	return holds(by, file, name, p);
}

int phase_match(const struct place *p, bool by_line)
{
	for (size_t i = 0; i < n_phase_rules; i++) {
		const struct phase_rule *r = &phase_rules[i];

		if (phase_holds(r->by, r->file, r->name, p, by_line))
			return (int)i;
	}
	return -1;
}
