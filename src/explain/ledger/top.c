/* SPDX-License-Identifier: MIT */
#include "explain/ledger/top.h"

#include "base/text.h"
#include "explain/fact.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Below this share a function says nothing about its role. */
static const double least = 0.01;

int tops_add(struct tops *t, const struct activity *a, uint32_t place, uint32_t native,
	     bool sampled, double seconds)
{
	const struct place *at = stack_book_find_place(a->book, place);
	const struct place *inside = stack_book_find_place(a->book, native);
	uint64_t key = (uint64_t)place << 32 | native;
	double inner = !inside ? 0 : sampled ? 2 * seconds : seconds;
	struct top_entry *x;
	uint32_t row;

	t->total += seconds;
	if (!at && !inside)
		return 0;
	if (map_get(&t->by_key, key, &row)) {
		t->rows.v[row].seconds += seconds;
		t->rows.v[row].inner += inner;
		return 0;
	}
	x = vec_push(&t->rows);
	if (!x || !map_put(&t->by_key, key, (uint32_t)(t->rows.n - 1)))
		return -ENOMEM;
	*x = (struct top_entry){ place, native, seconds, inner, at, inside };
	return 0;
}

void tops_done(struct tops *t)
{
	vec_done(&t->rows);
	map_done(&t->by_key);
	*t = (struct tops){ 0 };
}

/* The place a row is charged to. */
static const struct place *of(const struct top_entry *x)
{
	return x->at ? x->at : x->inside;
}

/* Functions side by side. Texts that are equal may be two: compared by content, so that the order is the
 * same from a file as from memory. */
static int by_function(const void *x, const void *y)
{
	const struct place *a = of(x), *b = of(y);
	int c = strcmp(a->file, b->file);

	if (c == 0)
		c = strcmp(a->function, b->function);
	return c ? c : (int)a->kind - (int)b->kind;
}

static bool same_function(const struct top_entry *a, const struct top_entry *b)
{
	return by_function(a, b) == 0;
}

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* The interpreter itself is what runs a Python line: no news. */
static bool worth_naming(const struct place *p)
{
	const char *base = base_of(p->file);

	return strncmp(base, "libpython", 9) != 0 && strncmp(base, "python", 6) != 0 &&
	       (*p->function || *base);
}

/* Of rows of one function: the largest sum over those alike in line or in native place. */
static const struct top_entry *hottest(const struct top_entry *v, size_t n, bool native,
				       double *ret)
{
	const struct top_entry *best = NULL;

	*ret = 0;
	/* A function has few lines and calls few others: no table is needed, but a bound is. */
	n = n < 512 ? n : 512;
	for (size_t i = 0; i < n; i++) {
		double sum = 0;

		for (size_t k = 0; k < n; k++)
			if (native ? v[k].inside == v[i].inside
				   : of(&v[k])->line == of(&v[i])->line)
				sum += native ? v[k].inner : v[k].seconds;
		if (sum > *ret || (sum == *ret && best && of(&v[i])->line < of(best)->line)) {
			*ret = sum;
			best = &v[i];
		}
	}
	return best;
}

static void native_name(const struct place *p, char *buf, size_t size)
{
	if (*p->function)
		snprintf(buf, size, "%s", p->function);
	else
		snprintf(buf, size, "[%s]", base_of(p->file));
}

static void describe(const struct top_entry *v, size_t n, double seconds, struct ledger_top *ret)
{
	double most;
	const struct top_entry *line = hottest(v, n, false, &most);
	const struct top_entry *inner = v->at ? hottest(v, n, true, &most) : NULL;
	char name[256], inside[128];

	*ret = (struct ledger_top){ .line = of(line)->line };
	text_safe_copy(ret->file, sizeof(ret->file), of(v)->file);
	if (!v->at) {
		native_name(v->inside, name, sizeof(name));
	} else if (inner && inner->inside && most >= seconds / 2 && worth_naming(inner->inside)) {
		native_name(inner->inside, inside, sizeof(inside));
		snprintf(name, sizeof(name), "%.60s -> %s", v->at->function, inside);
	} else {
		snprintf(name, sizeof(name), "%s", v->at->function);
	}
	text_safe_copy(ret->function, sizeof(ret->function), name);
}

/* Keeps l->top sorted, the largest first. */
static void keep(struct ledger_line *l, const struct top_entry *v, size_t n, double seconds,
		 double total)
{
	double share = total > 0 ? fact_round(seconds / total) : 0;
	size_t at = l->n_top;

	while (at > 0 && l->top[at - 1].share < share)
		at--;
	if (at >= LEDGER_TOP || !(share >= least))
		return;
	if (l->n_top < LEDGER_TOP)
		l->n_top++;
	for (size_t i = l->n_top - 1; i > at; i--)
		l->top[i] = l->top[i - 1];
	describe(v, n, seconds, &l->top[at]);
	l->top[at].share = share;
}

void tops_put(struct tops *t, double total, struct ledger_line *l)
{
	if (!t->rows.n)
		return;
	total = fmax(total, t->total);
	qsort(t->rows.v, t->rows.n, sizeof(t->rows.v[0]), by_function);
	for (size_t i = 0, n; i < t->rows.n; i += n) {
		double seconds = 0;

		for (n = 0; i + n < t->rows.n && same_function(&t->rows.v[i], &t->rows.v[i + n]);
		     n++)
			seconds += t->rows.v[i + n].seconds;
		keep(l, &t->rows.v[i], n, seconds, total);
	}
}
