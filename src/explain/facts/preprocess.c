/* SPDX-License-Identifier: MIT
 *
 * What the CPU time of loading and transforming data goes into: which function, and how much of it is
 * the program's own Python code that runs line by line.
 *
 * While a line of Python calls into C and keeps the GIL, its stack looks as if the line itself ran. A
 * native leaf (L3) tells them apart; only some samples have one, and these speak for the others of the same line. Without
 * any the text of the line must do: where it calls a library that works in C the time is doubtful, which the interval of
 * load.python has.
 */
#include "explain/does/does.h"
#include "explain/facts/stacked.h"
#include "explain/place.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Fewer workers at a time are none: those of a short evaluation. */
static const double workers_least = 0.5;

/* Of the time of a function: the Python of a loop; and of one whose text goes over single elements. */
static const double loop_least = 0.6, element_least = 0.12;
/* Of all loading: the text of smaller ones is not looked for. */
static const double function_least = 0.05;

/* Share of the critical thread's time. */
static const double waited_least = 0.02;
/* Those samples are of stacks that stood still for a moment, as long calls into C do: so much of what follows from them may be
 * Python all the same. */
static const double inferred_wrong = 0.33;
/* Samples with native code: so many of a line, or twice as many of its function, speak for the others. */
static const double leaves_least = 8;

/* Of one line, samples that show what its native code is: in all, and the interpreter itself. */
struct leaves {
	struct heat seen, interpreted;
};

enum { LOOPS_MAX = 64 };

/* Lines of loops over single elements, by their text. */
struct loop_lines {
	const char *file; /* texts of a book are kept once */
	int32_t from, to;
};

struct load {
	struct leaves leaves;
	struct loop_lines loops[LOOPS_MAX];
	size_t n_loops;
	double cpu;                        /* seconds */
	double sampled, native;            /* of what was sampled on a CPU */
	double python, doubtful, inferred; /* inferred: not Python, by other samples of the line */
	double samples;
	double loading, sure; /* seconds of samples, on a CPU or not; of these: only a training's */
	struct heat all, own, lines; /* lines: of the program's own, whatever they call in C */
};

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* "img = np.asarray(f.read())" */
static bool calls_into_c(const char *source)
{
	static const char *const signs[] = {
		"np.",     "numpy.",   "torch.",    "cv2.",      "tf.",    "jnp.",
		"Image.",  "zlib.",    "json.",     "pd.",       "gzip.",  "lzma.",
		"bz2.",    "pickle",   "re.",       "hashlib.",  "sum(",   "sorted(",
		"struct.", ".decode(", ".read(",    ".sort(",    ".join(", ".mean(",
		".std(",   ".astype(", ".reshape(", ".execute(", ".fetch",
	};

	for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++)
		for (const char *at = strstr(source, signs[i]); at; at = strstr(at + 1, signs[i]))
			if (signs[i][0] == '.' || at == source || !is_word(at[-1]))
				return true;
	return false;
}

/* Modules of Python itself that are written in Python and do a little for one element: who calls them in a loop has a loop
 * in Python. */
static bool is_small_module(const struct place *leaf)
{
	static const char *const modules[] = { "/random.py",  "/copy.py",   "/statistics.py",
					       "/heapq.py",   "/bisect.py", "/fractions.py",
					       "/colorsys.py" };
	size_t n = leaf->file ? strlen(leaf->file) : 0;

	if (!n || !strstr(leaf->file, "/python3.") || strstr(leaf->file, "-packages/"))
		return false;
	for (size_t i = 0; i < sizeof(modules) / sizeof(modules[0]); i++) {
		size_t m = strlen(modules[i]);

		if (n > m && strcmp(leaf->file + n - m, modules[i]) == 0)
			return true;
	}
	return false;
}

/* Are all frames below the program's line of such modules? A library between them does more than that. */
static bool only_small_below(const struct stack_book *b, const struct act_row *r)
{
	uint32_t places[STACK_DEPTH_MAX];
	size_t n = stack_book_walk(b, r->node, places, STACK_DEPTH_MAX);

	for (size_t i = 0; i < n && places[i] != r->place; i++) {
		const struct place *p = stack_book_find_place(b, places[i]);

		if (!p || (p->kind != PLACE_NATIVE && !is_small_module(p)))
			return false;
	}
	return true;
}

/* Is it a line of the program's own that runs, as far as Python knows, or of what it calls for an element? */
static bool runs_own_line(const struct stack_book *b, const struct act_row *r)
{
	const struct place *leaf = stack_book_find_place(b, r->leaf);

	return leaf && r->place && r->flags & STACK_GIL &&
	       (r->leaf == r->place || (is_small_module(leaf) && only_small_below(b, r)));
}

/* "row.extend(a * x for x in part)": room for elements is found in the C library, and that is no long call. */
static bool tells_nothing(const struct stack_book *b, const struct act_row *r,
			  const struct place *native)
{
	static const char *const room[] = { "malloc", "calloc",  "realloc", "free",
					    "cfree",  "__libc_", "_int_" };
	const struct place *line = stack_book_find_place(b, r->place);

	if (!native->file || !native->function ||
	    !(strstr(native->file, "/libc.so") || strstr(native->file, "/libc-2.")) || !line ||
	    !line->source || !strstr(line->source, " for ") || !strstr(line->source, " in "))
		return false;
	for (size_t i = 0; i < sizeof(room) / sizeof(room[0]); i++)
		if (strncmp(native->function, room[i], strlen(room[i])) == 0)
			return true;
	return false;
}

static void add_leaf(struct leaves *l, const struct stack_book *b, const struct act_row *r)
{
	const struct place *native = stack_book_find_place(b, r->native);

	if (!native || !runs_own_line(b, r) || r->flags & STACK_PARTIAL ||
	    tells_nothing(b, r, native))
		return;
	heat_add(&l->seen, b, r->place, r->count);
	if (place_is_interpreter(native))
		heat_add(&l->interpreted, b, r->place, r->count);
}

/* Of the time of a line, or of its function, the interpreter's part by those samples that tell; NAN: too few of them do. */
static double interpreted(double part, double seen, double least)
{
	return seen >= least ? part / seen : (double)NAN;
}

static void find_loops(struct load *l, const struct stack_book *b)
{
	for (size_t i = 1; i <= b->places.n && l->n_loops < LOOPS_MAX; i++) {
		const struct place *p = stack_book_find_place(b, (uint32_t)i);
		struct does d;

		if (p && does_read(p, &d) && d.what == DOES_ELEMENTS)
			l->loops[l->n_loops++] = (struct loop_lines){ p->file, d.from, d.to };
	}
}

static bool over_elements(const struct load *l, const struct place *line)
{
	for (size_t i = 0; line && i < l->n_loops; i++)
		if (l->loops[i].file == line->file && line->line >= l->loops[i].from &&
		    line->line <= l->loops[i].to)
			return true;
	return false;
}

/* Of a line whose only comprehension runs, all that does for each element: not what is done with the whole, and not what is gone
 * through first. "np.array([f(x) for x in np.sort(row) if ok(x)])" calls f and ok then. */
static bool may_call_into_c(const struct place *line)
{
	const char *text = line->source, *at = text ? strstr(text, " for ") : NULL, *p = at;
	const char *in, *next;
	char each[256];
	int depth = 1;

	if (!at || !line->function || !strstr(line->function, "comp>"))
		return text && calls_into_c(text);
	while (p > text && depth > 0) {
		p--;
		depth += *p == ')' || *p == ']' || *p == '}';
		depth -= *p == '(' || *p == '[' || *p == '{';
	}
	/* further loops and conditions: rarely there, and then all of the line counts */
	in = strstr(at, " in ");
	next = in ? strpbrk(in + 4, "])}") : NULL;
	if (!next || strstr(in, " for ") || strstr(in, " if ") || (size_t)(at - p) >= sizeof(each))
		return calls_into_c(text);
	snprintf(each, sizeof(each), "%.*s", (int)(at - p), p);
	/* "sum(b"".join([row[k:k + 8] for k in starts]))": stretches are copied, and no elements gone over */
	return calls_into_c(strchr(each, ':') ? text : each);
}

/* How much of a sample of this line without native code is the interpreter's. NAN: its text calls into C, or may do so. */
static double own_part(const struct load *load, const struct place *line, uint32_t place)
{
	const struct leaves *l = &load->leaves;
	uint64_t function = place_function(line);
	double part = interpreted(heat_of_place(&l->interpreted, place),
				  heat_of_place(&l->seen, place), leaves_least);

	/* nothing long is called for single elements: what was seen of it is what stood still by chance */
	if (over_elements(load, line))
		return 1;
	if (l->seen.failed || l->interpreted.failed)
		return (double)NAN;
	if (isfinite(part))
		return part;
	if (may_call_into_c(line))
		return (double)NAN;
	part = interpreted(heat_of_function(&l->interpreted, function),
			   heat_of_function(&l->seen, function), 2 * leaves_least);
	return isfinite(part) ? part : 1;
}

static void add_row(struct load *l, const struct stack_book *b, const struct act_row *r, double cpu)
{
	const struct place *native = stack_book_find_place(b, r->native);
	const struct place *line = stack_book_find_place(b, r->place);
	uint32_t place = r->place ? r->place : r->leaf;
	double own;

	l->cpu += cpu;
	heat_add(&l->all, b, place, r->seconds);
	/* whose innermost frames are not known: they may be as all the others are */
	if (r->flags & STACK_PARTIAL)
		return;
	l->sampled += r->seconds;
	l->samples += r->count;
	l->native += native ? r->seconds : 0;
	if (!line || !runs_own_line(b, r))
		return;
	heat_add(&l->lines, b, place, r->seconds);
	own = native ? place_is_interpreter(native) : own_part(l, line, r->place);
	if (!isfinite(own)) {
		l->doubtful += r->seconds;
		return;
	}
	l->inferred += native ? 0 : (1 - own) * r->seconds;
	l->python += own * r->seconds;
	if (own > 0)
		heat_add(&l->own, b, place, own * r->seconds);
}

static void add_leaves(struct load *l, const struct activity *a, const struct act_thread *t,
		       bool worker)
{
	for (size_t k = t->row; k < t->row + t->n_rows; k++)
		if (a->rows.v[k].on_cpu && stacked_loads(&a->rows.v[k], worker))
			add_leaf(&l->leaves, a->book, &a->rows.v[k]);
}

/* A thread's samples on a CPU stand for the CPU time the kernel charged it. */
static void add_thread(struct load *l, const struct activity *a, const struct act_thread *t,
		       bool worker, bool waited)
{
	double on = 0, scale;

	for (size_t k = t->row; k < t->row + t->n_rows; k++)
		on += a->rows.v[k].on_cpu ? a->rows.v[k].seconds : 0;
	scale = isfinite(t->run) && on > 0 ? t->run / on : 1;
	for (size_t k = t->row; k < t->row + t->n_rows; k++) {
		const struct act_row *r = &a->rows.v[k];

		if (!stacked_loads(r, worker))
			continue;
		l->loading += r->seconds;
		if (r->sure || (waited && !r->pooled))
			l->sure += r->seconds;
		if (r->on_cpu)
			add_row(l, a->book, r, r->seconds * scale);
	}
}

/* A loop that is written line by line calls small functions in C for each element, too: what does it for whole arrays
 * spares those as well. So a function counts as a whole where most of it is Python itself; or a palpable part, where
 * it goes over single elements: then what its lines call in C for each is small as well, such as `matrix[r, c] = x` of a
 * tensor. */
static double loops(const struct load *l, const struct stack_book *b)
{
	/* stacks that are known in part are in no function's own time */
	double seconds = 0, known = l->sampled / l->all.seconds;

	for (size_t i = 0; i < l->own.functions.n; i++) {
		const struct heat_row *own = &l->own.functions.v[i];
		double all = own->seconds, lines;
		uint32_t at;

		if (map_get(&l->all.by_function, own->key, &at))
			all = fmax(all, l->all.functions.v[at].seconds);
		lines = fmin(all, heat_of_function(&l->lines, own->key) / known);
		if (own->seconds >= loop_least * known * all)
			seconds += all;
		else if (own->seconds >= element_least * known * lines &&
			 lines >= function_least * l->all.seconds &&
			 over_elements(l, stack_book_find_place(b, heat_line(&l->all, own->key))))
			seconds += lines;
		else
			seconds += own->seconds;
	}
	return seconds;
}

static void set_place(struct facts *f, const struct load *l)
{
	double top;
	uint32_t place = heat_top(&l->all, &top);

	if (!place) {
		fact_absent(f, FACT_LOAD_PLACE, "no line of the program loads the data");
		return;
	}
	fact_set(f, FACT_LOAD_PLACE, top / l->all.seconds);
	fact_set_place(f, FACT_LOAD_PLACE, place);
}

static void set_load(struct facts *f, const struct load *l, const struct stack_book *b,
		     double seconds)
{
	double share, error, top;
	uint32_t place;

	fact_set(f, FACT_LOAD_CPU, l->cpu / seconds);
	fact_set(f, FACT_LOAD_SURE, l->loading > 0 ? l->sure / l->loading : 0);
	if (l->sampled <= 0 && l->all.seconds > 0) {
		fact_absent(f, FACT_LOAD_PYTHON, "no stack of loading is known to its end");
		fact_absent_like(f, FACT_LOAD_NATIVE, FACT_LOAD_PYTHON);
		set_place(f, l);
		return;
	}
	if (l->sampled <= 0) {
		fact_set(f, FACT_LOAD_PYTHON, 0);
		fact_absent(f, FACT_LOAD_PLACE, "no data is loaded");
		fact_absent_like(f, FACT_LOAD_NATIVE, FACT_LOAD_PLACE);
		return;
	}
	share =
	    l->all.failed || l->own.failed ? l->python / l->sampled : loops(l, b) / l->all.seconds;
	error = activity_error(share, l->samples);
	fact_set_range(
	    f, FACT_LOAD_PYTHON, share, fmax(0, share - error),
	    fmin(1, share + (l->doubtful + inferred_wrong * l->inferred) / l->sampled + error));
	fact_set(f, FACT_LOAD_NATIVE, l->native / l->sampled);
	place = heat_top(&l->own, &top);
	if (place)
		fact_set_place(f, FACT_LOAD_PYTHON, place);
	set_place(f, l);
}

static void compute(const struct scene *s, struct facts *f)
{
	static const enum fact_id ids[] = { FACT_LOAD_CPU, FACT_LOAD_PYTHON, FACT_LOAD_PLACE,
					    FACT_LOAD_NATIVE, FACT_LOAD_SURE };
	const struct activity *a = &s->activity;
	const char *why;
	const struct act_thread *critical = stacked_critical(a, &why);
	bool workers = fact_or(f, FACT_LOADER_WORKERS, 0) >= workers_least;
	struct load l = { 0 };
	bool waited;

	for (size_t i = 0; !critical && i < sizeof(ids) / sizeof(ids[0]); i++)
		fact_absent(f, ids[i], "%s", why);
	if (!critical)
		return;
	find_loops(&l, a->book);
	/* A process of its own that is waited for is a worker whatever its functions are called. */
	waited = critical->state[TIME_DATA_WAIT] >= waited_least * critical->alive;
	if (!workers) {
		add_leaves(&l, a, critical, false);
		add_thread(&l, a, critical, false, false);
	}
	for (size_t i = 0; workers && i < a->threads.n; i++)
		if (stacked_is_worker(s, &a->threads.v[i]))
			add_leaves(&l, a, &a->threads.v[i], true);
	for (size_t i = 0; workers && i < a->threads.n; i++)
		if (stacked_is_worker(s, &a->threads.v[i]))
			add_thread(&l, a, &a->threads.v[i], true, waited);
	set_load(f, &l, a->book, critical->alive);
	heat_done(&l.all);
	heat_done(&l.own);
	heat_done(&l.lines);
	heat_done(&l.leaves.seen);
	heat_done(&l.leaves.interpreted);
}

const struct fact_source preprocess_facts = { "preprocess", compute };
