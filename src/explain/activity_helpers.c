/* SPDX-License-Identifier: MIT
 *
 * Whom a training works with besides its loader: threads of a pool that are given parts of the training itself, and
 * libraries that speak to the device's driver in Python.
 */
#include "explain/activity_part.h"

#include <string.h>

/* A training that hands halves of its batch to a pool of threads waits for gradients there, and not for data. */
static bool only_computes(const struct activity *a, const struct act_thread *t)
{
	bool any = false;

	for (size_t i = 0; i < a->threads.n; i++) {
		if (a->threads.v[i].role == ROLE_LOADER_WORKER)
			return false;
		any |= a->threads.v[i].process == t->process && a->threads.v[i].computes;
	}
	return any;
}

void rows_of_pool(struct activity *a, const struct act_thread *t)
{
	bool computes = only_computes(a, t);

	for (size_t k = t->row; computes && k < t->row + t->n_rows; k++) {
		struct act_row *r = &a->rows.v[k];

		if (r->sure || r->state != TIME_DATA_WAIT)
			continue;
		r->state = r->on_cpu ? TIME_PYTHON : TIME_OTHER;
		r->phase = PHASE_NONE;
	}
}

static size_t ranks_of(const struct activity *a)
{
	size_t n = 0;

	for (size_t i = 0; i < a->threads.n; i++) {
		if (a->threads.v[i].role == ROLE_LOADER_WORKER)
			return 0;
		n += a->threads.v[i].role == ROLE_MAIN;
	}
	return n;
}

static bool is_between(const struct activity *a, const struct act_row *r)
{
	const struct place *p = stack_book_find_place(a->book, r->leaf);

	return p && p->kind == PLACE_PYTHON && p->file && strstr(p->file, "multiprocessing/");
}

/* Ranks that have nobody who loads for them, and wait for a pipe or a queue: for each other. */
void rows_of_ranks(struct activity *a, const struct act_thread *t)
{
	bool ranks = ranks_of(a) > 1;

	for (size_t k = t->row; ranks && k < t->row + t->n_rows; k++) {
		struct act_row *r = &a->rows.v[k];

		/* a queue of threads is filled by its own process */
		if (r->phase == PHASE_QUEUE_GET && r->state == TIME_DATA_WAIT && is_between(a, r))
			r->state = TIME_COMM_WAIT;
	}
}

/* The package a file was installed as: the name behind site-packages. 0: none. */
static uint64_t package_of(const struct place *p)
{
	static const char *const roots[] = { "/site-packages/", "/dist-packages/" };
	uint64_t h = 0;

	if (!p || p->kind != PLACE_PYTHON || !p->file)
		return 0;
	for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++) {
		const char *at = strstr(p->file, roots[i]);

		if (!at)
			continue;
		for (at += strlen(roots[i]); *at && *at != '/'; at++)
			h = map_mix(h ^ (unsigned char)*at);
		return h;
	}
	return 0;
}

static bool is_driver(const struct place *p)
{
	int row =
	    p && p->kind == PLACE_NATIVE && p->file && p->function ? phase_match(p, false) : -1;
	enum phase phase = row >= 0 ? phase_rules[row].phase : PHASE_NONE;

	return phase == PHASE_DRIVER || phase == PHASE_DEVICE_SYNC || phase == PHASE_TRANSFER;
}

/* Packages that were seen to call the driver. */
static bool note_packages(const struct activity *a, const struct act_thread *t, struct map *m)
{
	uint32_t places[STACK_DEPTH_MAX];

	for (size_t k = t->row; k < t->row + t->n_rows; k++) {
		size_t n = stack_book_walk(a->book, a->rows.v[k].node, places, STACK_DEPTH_MAX);
		bool driver = false;

		for (size_t i = 0; i < n; i++) {
			const struct place *p = stack_book_find_place(a->book, places[i]);
			uint64_t package = driver ? package_of(p) : 0;

			driver |= is_driver(p);
			if (package && !map_put(m, package, 1))
				return false;
			if (p && p->kind == PLACE_PYTHON)
				break; /* its innermost frame is what calls */
		}
	}
	return true;
}

void rows_of_driver(struct activity *a, const struct act_thread *t)
{
	struct map packages = { 0 };
	/* without memory they stay what they were */
	bool ok = note_packages(a, t, &packages);

	for (size_t k = t->row; ok && packages.n && k < t->row + t->n_rows; k++) {
		struct act_row *r = &a->rows.v[k];
		uint64_t package = package_of(stack_book_find_place(a->book, r->leaf));
		uint32_t one;

		if (r->unknown || r->state != TIME_PYTHON || r->phase != PHASE_NONE || !package ||
		    !map_get(&packages, package, &one))
			continue;
		r->state = TIME_DISPATCH;
		r->phase = PHASE_DRIVER;
		r->matched = true;
	}
	map_done(&packages);
}
