/* SPDX-License-Identifier: MIT
 *
 * Which lines of the program may keep what grows: a guess. The recorder has told lines that keep something of every
 * turn of a loop (keeps/keeps.h); here those are chosen that the process which grows can have run, by its stacks:
 *
 * - a local variable lives as long as its loop: that loop must be on the stack most of the time. A helper that gathers a
 *   list and returns it is not.
 * - what outlives its function: better when the function is seen, and of a loader worker only then.
 * - a line that is itself seen on a stack takes time, as what allocates much does, and is not in a branch that never runs.
 *
 * Where more than three look alike nothing is said.
 */
#include "explain/facts/kept.h"

#include "base/auto.h"
#include "explain/fact.h"

#include <stdio.h>
#include <string.h>

enum { FEW = 3, SCORE_LEAST = 4, CLOSE = 1, SAMPLES_LEAST = 10 };

/* Of the time of a thread. Workers do nothing else than their work, so a part of it may have most of their time. */
static const double loop_least = 0.7, loop_least_of_worker = 0.9;
static const double seen_least = 0.01;
static const double calls_least = 0.3;
static const double swing_least = 0.05; /* of the memory of a GPU */

static void collect(const struct stack_book *b, struct kept_lines *c)
{
	for (size_t i = 0; i < b->places.n && c->n < KEPT_LINES_MAX; i++) {
		struct kept_line *k = &c->v[c->n];
		const struct place *p = stack_book_find_place(b, (uint32_t)i + 1);

		*k = (struct kept_line){ .place = (uint32_t)i + 1, .file = p ? p->file : NULL };
		c->n += p && keep_read(p, &k->keep) ? 1 : 0;
	}
}

/* What share of a thread's time the lines were on its stack. */
static void look_at(const struct activity *a, const struct act_thread *t,
		    const struct kept_nodes *nodes, struct kept_lines *c)
{
	double all = 0;

	/* a run that died soon may have spent most of its time with its imports; and what has no Python says nothing */
	for (size_t r = t->row; r < t->row + t->n_rows; r++)
		all += a->rows.v[r].importing || !a->rows.v[r].leaf ? 0 : a->rows.v[r].seconds;
	for (size_t i = 0; i < c->n && t->samples >= SAMPLES_LEAST && all > 0; i++) {
		struct kept_line *k = &c->v[i];
		uint64_t bit = UINT64_C(1) << i;
		double in = 0, at = 0, calls = 0;

		for (size_t r = t->row; r < t->row + t->n_rows; r++) {
			const struct kept_node *n = kept_node_of(nodes, a->rows.v[r].node);
			double seconds = a->rows.v[r].seconds;

			in += n->in & bit ? seconds : 0;
			at += n->itself & bit ? seconds : 0;
			/* a line that calls itself may be both */
			calls += n->calls & ~n->itself & bit ? seconds : 0;
		}
		if (in / all > k->share)
			k->thread = t->id;
		k->share = in / all > k->share ? in / all : k->share;
		k->itself = at / all > k->itself ? at / all : k->itself;
		k->calls = calls / all > k->calls ? calls / all : k->calls;
	}
}

static bool may_be(const struct kept_line *k, enum kept_of of)
{
	if (k->keep.what == KEEP_OBJECTS)
		return of == KEPT_OF_WORKERS && k->share >= seen_least;
	if (k->keep.local)
		return k->share >= (of == KEPT_OF_WORKERS ? loop_least_of_worker : loop_least);
	return of != KEPT_OF_WORKERS || k->share >= seen_least;
}

static int score_of(const struct kept_line *k, enum kept_of of)
{
	bool device = strstr(k->keep.text, "gpu") || strstr(k->keep.text, "cuda") ||
		      strstr(k->keep.text, "device");
	int score = k->keep.score;

	score += k->itself >= seen_least ? 2 : 0;
	/* "self.curve.append(self.train_epoch())": what takes long comes by rarely */
	score -= k->calls >= calls_least ? 1 : 0;
	score += k->keep.local ? 0 : k->share >= seen_least ? 1 : -1;
	score += of == KEPT_OF_GPU && device ? 2 : 0;
	return score;
}

/* Before: the better guess, and of equal ones what runs more. */
static bool is_better(const struct kept_line *a, const struct kept_line *b)
{
	if (a->score != b->score)
		return a->score > b->score;
	return a->share > b->share + 0.01;
}

/* Puts those that may be it in order; how many. */
static size_t rank(struct kept_lines *c, enum kept_of of)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n; i++) {
		struct kept_line k = c->v[i];
		size_t at = n;

		k.score = score_of(&k, of) + k.bonus;
		if (!may_be(&k, of) || k.score < SCORE_LEAST)
			continue;
		for (; at && is_better(&k, &c->v[at - 1]); at--)
			c->v[at] = c->v[at - 1];
		c->v[at] = k;
		n++;
	}
	return n;
}

/* "train.py:60, train.py:71": the others that are as likely. */
static void name_others(struct facts *f, enum fact_id id, const struct kept_line *v, size_t n)
{
	char text[sizeof(f->v[id].text)] = "";
	size_t at = 0;

	for (size_t i = 1; i < n && at < sizeof(text); i++) {
		const char *name = strrchr(v[i].file, '/');
		int got = snprintf(text + at, sizeof(text) - at, "%s%.20s:%d", at ? ", " : "",
				   name ? name + 1 : v[i].file, (int)v[i].keep.line);

		at += got > 0 ? (size_t)got : 0;
	}
	fact_set_subject(f, id, f->v[id].subject, text);
}

static bool is_asked(const struct scene *s, const struct act_thread *t, uint32_t process,
		     enum kept_of of)
{
	return of == KEPT_OF_WORKERS && !process ? growth_is_worker(s, t->process)
						 : t->process == process;
}

static void choose(const struct scene *s, struct facts *f, enum fact_id id, uint32_t process,
		   enum kept_of of)
{
	const struct activity *a = &s->activity;
	auto_free struct kept_lines *c = a->any && a->book ? calloc(1, sizeof(*c)) : NULL;
	auto_done(kept_nodes) struct kept_nodes nodes = { 0 };
	size_t n, close = 0;

	if (!c) {
		fact_absent(f, id, "no stacks were recorded");
		return;
	}
	collect(a->book, c);
	if (kept_nodes_open(&nodes, a->book, c) < 0)
		c->n = 0;
	for (size_t i = 0; i < a->threads.n && c->n; i++)
		if (is_asked(s, &a->threads.v[i], process, of))
			look_at(a, &a->threads.v[i], &nodes, c);
	if (of == KEPT_OF_PROCESS)
		kept_when(s, process, &nodes, c);
	n = rank(c, of);
	while (close < n && c->v[close].score >= c->v[0].score - CLOSE)
		close++;
	if (!close || close > FEW) {
		fact_absent(f, id,
			    close ? "too many lines of the program look as if they kept it"
				  : "no line of the program that was read keeps anything");
		return;
	}
	fact_set(f, id, (double)close);
	fact_set_place(f, id, c->v[0].place);
	name_others(f, id, c->v, close);
}

static void compute(const struct scene *s, struct facts *f)
{
	const struct activity *a = &s->activity;
	uint32_t largest = f->v[FACT_MEMORY_LARGEST].subject;
	/* all programs grow at their start, and stacks are dear to go through: only where somebody will ask */
	bool killed = fact_or(f, FACT_OOM_SEEN, 0) >= 1 || fact_or(f, FACT_OOM_GROUP, 0) >= 1 ||
		      fact_or(f, FACT_OOM_MACHINE, 0) >= 1;

	for (int id = FACT_KEPT; id <= FACT_KEPT_GPU; id++)
		fact_absent(f, (enum fact_id)id, "nothing is known to grow");
	if (fact_or(f, FACT_LEAK, 0) > 0)
		choose(s, f, FACT_KEPT, f->v[FACT_LEAK].subject, KEPT_OF_PROCESS);
	if (fact_or(f, FACT_WORKERS_LEAK, 0) > 0)
		choose(s, f, FACT_KEPT_WORKERS, 0, KEPT_OF_WORKERS);
	if (killed && largest && fact_or(f, FACT_MEMORY_GROWTH, 0) > 0)
		choose(s, f, FACT_KEPT_LARGEST, largest,
		       growth_is_worker(s, largest) ? KEPT_OF_WORKERS : KEPT_OF_PROCESS);
	/* one allocation that is too large is nothing that was kept */
	if (fact_or(f, FACT_RUN_FAILED, 0) >= 1 && a->critical >= 0 &&
	    fact_or(f, FACT_GPU_FILL_SWING, 0) >= swing_least)
		choose(s, f, FACT_KEPT_GPU, a->threads.v[a->critical].process, KEPT_OF_GPU);
}

const struct fact_source kept_facts = { "kept", compute };
