/* SPDX-License-Identifier: MIT
 *
 * median(x) and percentile(x, p), which Debian's SQLite does not have. Like its own percentile
 * extension: p from 0 to 100, between two values the result lies on the line that joins them, NULLs
 * do not count, and no values at all give NULL.
 */
#include "record/vtab.h"

#include "record/sqlite_api.h"

#include <stdlib.h>

/* 800 MB: more than that is a mistake in the query. */
enum { VALUES_MAX = 100000000 };

struct values {
	VEC(double) v;
	double p;
	bool has_p;
};

/* Freed here too when the query is broken off, as SQLite then calls the final function as well. */
static void values_done(struct values *a)
{
	vec_done(&a->v);
}

static void add_value(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
	struct values *a = sqlite3_aggregate_context(ctx, sizeof(*a));
	double p = argc > 1 ? sqlite3_value_double(argv[1]) : 50;
	double *slot;

	if (!a) {
		sqlite3_result_error_nomem(ctx);
		return;
	}
	if (!(p >= 0 && p <= 100) || (a->has_p && a->p != p)) {
		sqlite3_result_error(ctx, "percentile: p must be one number from 0 to 100", -1);
		return;
	}
	a->p = p;
	a->has_p = true;
	if (sqlite3_value_numeric_type(argv[0]) == SQLITE_NULL)
		return;
	slot = a->v.n < VALUES_MAX ? vec_push(&a->v) : NULL;
	if (!slot) {
		sqlite3_result_error_nomem(ctx);
		return;
	}
	*slot = sqlite3_value_double(argv[0]);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void give_result(sqlite3_context *ctx)
{
	struct values *a = sqlite3_aggregate_context(ctx, 0);
	double at;
	size_t i;

	if (!a || !a->v.n) {
		sqlite3_result_null(ctx);
		return;
	}
	qsort(a->v.v, a->v.n, sizeof(*a->v.v), by_value);
	at = a->p / 100 * (double)(a->v.n - 1);
	i = (size_t)at;
	if (i + 1 < a->v.n)
		sqlite3_result_double(ctx,
				      a->v.v[i] + (a->v.v[i + 1] - a->v.v[i]) * (at - (double)i));
	else
		sqlite3_result_double(ctx, a->v.v[a->v.n - 1]);
	values_done(a);
}

int aggregate_register(struct sqlite3 *db)
{
	int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS;
	int code = sqlite3_create_function_v2(db, "median", 1, flags, NULL, NULL, add_value,
					      give_result, NULL);

	if (code == SQLITE_OK)
		code = sqlite3_create_function_v2(db, "percentile", 2, flags, NULL, NULL, add_value,
						  give_result, NULL);
	return code;
}
