/* SPDX-License-Identifier: MIT
 *
 * Lines that are to be changed, which no stack shows: where the loader or the workers are made, where threads are
 * counted, where a device is chosen. By what was read in the program's own files (explain/does/does.h).
 */
#include "explain/does/does.h"
#include "explain/facts/stacked.h"

#include <string.h>

/* Fewer workers at a time are none: those of a short evaluation. */
static const double workers_least = 0.5;

/* How many lines do that; the first of them. */
static double lines_of(const struct stack_book *book, enum does_what what, uint32_t *ret)
{
	double n = 0;

	for (size_t i = 1; i <= book->places.n; i++) {
		const struct place *p = stack_book_find_place(book, (uint32_t)i);
		struct does d;

		if (!p || !does_read(p, &d) || d.what != what)
			continue;
		*ret = n++ > 0 ? *ret : (uint32_t)i;
	}
	return n;
}

/* What makes the workers of such a loader. */
static double makers_of(const struct stack_book *book, const char *framework, bool workers,
			uint32_t *ret)
{
	double n = 0;

	if (strcmp(framework, "torch") == 0 || strcmp(framework, "gluon") == 0 ||
	    strcmp(framework, "paddle") == 0)
		return lines_of(book, DOES_LOADER, ret);
	if (workers)
		n = lines_of(book, strcmp(framework, "pool") == 0 ? DOES_POOL : DOES_STARTS, ret);
	return n;
}

static void set(struct facts *f, enum fact_id id, double n, uint32_t place, const char *what)
{
	if (n > 0) {
		fact_set(f, id, n);
		fact_set_place(f, id, place);
	} else {
		fact_absent(f, id, "no line that %s was read", what);
	}
}

static void compute(const struct scene *s, struct facts *f)
{
	const struct stack_book *book = s->activity.book;
	bool workers = fact_or(f, FACT_LOADER_WORKERS, 0) >= workers_least;
	uint32_t made = 0, counted = 0, chosen = 0;
	double makers = 0, threads = 0, devices = 0;

	if (book) {
		makers = makers_of(book, f->v[FACT_LOADER_FRAMEWORK].text, workers, &made);
		threads = lines_of(book, DOES_THREADS, &counted);
		devices = lines_of(book, DOES_DEVICE, &chosen);
	}
	set(f, FACT_LOADER_MADE, makers, made, "makes the loader");
	set(f, FACT_POOL_SET, threads, counted, "counts threads");
	set(f, FACT_GPU_CHOSEN, devices, chosen, "chooses a device");
}

const struct fact_source written_facts = { "written", compute };
