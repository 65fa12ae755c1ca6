/* SPDX-License-Identifier: MIT */
#include "tui/tasks.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Deeper than this nothing is indented any more; a chain of parents is at most this long. */
enum { DEPTH_MAX = 64 };

static double known(double v)
{
	return isnan(v) ? -1 : v;
}

static double figure(const struct snap_task *t, enum task_sort sort)
{
	double io = known(t->read) < 0 ? known(t->written) : t->read + fmax(0, known(t->written));

	switch (sort) {
	case SORT_CPU:
		return known(t->cores);
	case SORT_MEMORY:
		return known(t->rss);
	case SORT_IO:
		return io;
	default:
		return 0;
	}
}

static const char *command_of(const struct snap_task *t)
{
	const struct entity *e = t->entity;

	return e->detail && e->detail[0] ? e->detail : e->name;
}

static int compare(const struct snap_task *x, const struct snap_task *y, enum task_sort sort)
{
	double a = figure(x, sort), b = figure(y, sort);
	int by_name = sort == SORT_NAME ? strcasecmp(command_of(x), command_of(y)) : 0;

	if (a != b)
		return a < b ? 1 : -1;
	if (by_name)
		return by_name;
	return x->entity->key < y->entity->key ? -1 : x->entity->key > y->entity->key;
}

static int by_sort(const void *a, const void *b, void *arg)
{
	return compare(((const struct task_row *)a)->task, ((const struct task_row *)b)->task,
		       *(const enum task_sort *)arg);
}

static bool matches(const struct snap_task *t, const char *filter)
{
	char number[24];

	if (!filter[0] || strcasestr(t->entity->name, filter) || strcasestr(command_of(t), filter))
		return true;
	snprintf(number, sizeof(number), "%lld", (long long)t->entity->key);
	return strstr(number, filter) != NULL;
}

static bool push(struct task_rows *rows, const struct snap_task *t, int depth, bool thread)
{
	struct task_row *row = vec_push(&rows->v);

	if (row)
		*row = (struct task_row){ t, depth < DEPTH_MAX ? depth : DEPTH_MAX, thread };
	return row != NULL;
}

/* A process with one thread is that thread. */
static bool push_with_threads(const struct board *b, const struct ui *u, struct task_rows *rows,
			      const struct snap_task *t, int depth)
{
	bool ok = push(rows, t, depth, false);

	for (size_t i = 0; u->threads && ok && t->n_threads > 1 && i < t->n_threads; i++)
		ok = push(rows, &b->snap.threads.v[t->first_thread + i], depth + 1, true);
	return ok;
}

/* Places of rows by the entity of their process. */
struct family {
	struct map at; /* entity -> place in flat */
	const struct task_row *flat;
	VEC(uint32_t) first, next; /* children of each, in the order of flat; place + 1 */
	uint32_t roots;            /* first of those without a parent here; place + 1 */
};

static bool family_make(struct family *f, const struct task_rows *flat)
{
	size_t n = flat->v.n;

	f->flat = flat->v.v;
	if (!vec_reserve(&f->first, n + 1) || !vec_reserve(&f->next, n + 1))
		return false;
	memset(f->first.v, 0, (n + 1) * sizeof(*f->first.v));
	memset(f->next.v, 0, (n + 1) * sizeof(*f->next.v));
	for (size_t i = 0; i < n; i++)
		if (!map_put(&f->at, f->flat[i].task->entity->id, (uint32_t)i))
			return false;
	/* From the last to the first, each put in front: so children stand in the order of flat. */
	for (size_t i = n; i-- > 0;) {
		const struct entity *e = f->flat[i].task->entity;
		uint32_t up, *head = &f->roots;

		if (e->parent != e->id && map_get(&f->at, e->parent, &up))
			head = &f->first.v[up];
		f->next.v[i] = *head;
		*head = (uint32_t)i + 1;
	}
	return true;
}

/* Depth first with a stack of its own: what a record says may be a chain of any length, or a ring (whose
 * members nobody leads to, and which is left out). */
static bool family_walk(const struct board *b, const struct ui *u, const struct family *f, size_t n,
			struct task_rows *rows)
{
	VEC(struct {
		uint32_t at;
		int depth;
	})
	stack = { 0 };
	bool ok = vec_push(&stack) != NULL;
	size_t left = n;

	if (ok)
		stack.v[0].at = f->roots;
	while (ok && stack.n && left) {
		uint32_t at = stack.v[stack.n - 1].at;
		int depth = stack.v[stack.n - 1].depth;

		if (!at) {
			stack.n--;
			continue;
		}
		stack.v[stack.n - 1].at = f->next.v[at - 1];
		ok = push_with_threads(b, u, rows, f->flat[at - 1].task, depth);
		left--;
		ok = ok && vec_push(&stack);
		if (ok) {
			stack.v[stack.n - 1].at = f->first.v[at - 1];
			stack.v[stack.n - 1].depth = depth + 1;
		}
	}
	vec_done(&stack);
	return ok;
}

static bool as_tree(const struct board *b, const struct ui *u, const struct task_rows *flat,
		    struct task_rows *rows)
{
	struct family f = { 0 };
	bool ok = family_make(&f, flat) && family_walk(b, u, &f, flat->v.n, rows);

	map_done(&f.at);
	vec_done(&f.first);
	vec_done(&f.next);
	return ok;
}

int tasks_order(const struct board *b, const struct ui *u, struct task_rows *ret)
{
	struct task_rows flat = { 0 }, rows = { 0 };
	enum task_sort sort = u->sort;
	bool ok = true;

	for (size_t i = 0; ok && i < b->snap.processes.n; i++)
		if (matches(&b->snap.processes.v[i], u->filter))
			ok = push(&flat, &b->snap.processes.v[i], 0, false);
	if (flat.v.n)
		qsort_r(flat.v.v, flat.v.n, sizeof(*flat.v.v), by_sort, &sort);
	if (ok && u->tree && !u->filter[0])
		ok = as_tree(b, u, &flat, &rows);
	else
		for (size_t i = 0; ok && i < flat.v.n; i++)
			ok = push_with_threads(b, u, &rows, flat.v.v[i].task, 0);
	vec_done(&flat.v);
	if (!ok) {
		vec_done(&rows.v);
		return -ENOMEM;
	}
	*ret = rows;
	return 0;
}
