/* SPDX-License-Identifier: MIT
 *
 * Of the native code a framework runs for the critical thread: what is arithmetic, and what only calls it. A step of large
 * tensors is in its kernels; one of tiny tensors is in the frames around them: dispatch, reference counts, look-ups
 * of thread-local state, conversions from and to Python.
 *
 * Memory is allocated and copied by both, and the C library does not say which by its own names: it counts for neither.
 */
#include "explain/facts/stacked.h"
#include "explain/place.h"

#include <math.h>
#include <string.h>

/* Fewer say nothing about a share: half its 95 % interval is 18 points then, and its lower end is what counts. */
enum { SAMPLES_LEAST = 30 };

static bool begins_with_any(const char *name, const char *const *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strncmp(name, v[i], strlen(v[i])) == 0)
			return true;
	return false;
}

/* "libc10.so.1.13.0", "ld-linux-x86-64.so.2" (where __tls_get_addr is) */
static bool is_glue(const char *library)
{
	static const char *const glue[] = { "libc10.so",  "libtorch_python", "ld-linux",  "ld-musl",
					    "libpython",  "python3",         "libstdc++", "libffi",
					    "_pywrap_tf", "libpybind" };

	return begins_with_any(library, glue, sizeof(glue) / sizeof(glue[0]));
}

static bool is_either(const char *library)
{
	static const char *const either[] = { "libc.so",     "libc-",       "libpthread",
					      "libjemalloc", "libtcmalloc", "libmimalloc",
					      "[vdso]",      "linux-vdso" };

	return begins_with_any(library, either, sizeof(either) / sizeof(either[0]));
}

static void compute(const struct scene *s, struct facts *f)
{
	const struct activity *a = &s->activity;
	const char *why;
	const struct act_thread *t = stacked_critical(a, &why);
	double glue = 0, all = 0, share, error;
	uint32_t samples = 0;

	for (size_t k = t ? t->row : 0; t && k < t->row + t->n_rows; k++) {
		const struct act_row *r = &a->rows.v[k];
		const struct place *p = stack_book_find_place(a->book, r->native);

		if (r->unknown || !r->on_cpu || r->state != TIME_DISPATCH || !p ||
		    is_either(place_file_name(p)))
			continue;
		samples += r->count;
		all += r->seconds;
		glue += is_glue(place_file_name(p)) ? r->seconds : 0;
	}
	if (samples < SAMPLES_LEAST) {
		fact_absent(f, FACT_DISPATCH_GLUE, "%s",
			    t ? "too little of the framework's native code was seen (level L3)"
			      : why);
		return;
	}
	share = glue / all;
	error = activity_error(share, samples);
	fact_set_range(f, FACT_DISPATCH_GLUE, share, fmax(0, share - error),
		       fmin(1, share + error));
}

const struct fact_source glue_facts = { "glue", compute };
