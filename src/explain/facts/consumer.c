/* SPDX-License-Identifier: MIT
 *
 * Is there somebody who uses the data? A program that only reads, parses or crunches is no training: a
 * loader is slow only for somebody who waits for it. What the critical thread does besides getting data
 * says so, and whether it is what only trainings do.
 */
#include "explain/facts/stacked.h"

/* A framework's frames are no accident: one sample in two hundred will do. */
static const double framework_least = 0.005;
/* Nor is a gradient in the text, of more than a few samples. */
static const double taught_least = 0.005;
static const uint32_t lessons_least = 5;
/* Names are: of the program's functions that are called as trainings are. */
static const double names_least = 0.05;

static bool is_framework(const struct act_row *r)
{
	return r->state == TIME_DISPATCH ||
	       (r->matched && (r->state == TIME_TRANSFER || r->state == TIME_GPU_WAIT ||
			       r->state == TIME_COMM_WAIT));
}

static bool uses(const struct act_row *r)
{
	return !r->importing &&
	       (r->state == TIME_PYTHON || r->state == TIME_GPU_WAIT || is_framework(r));
}

/* Threads of its own that it gives parts of the training to. */
static bool has_helpers(const struct activity *a, const struct act_thread *t)
{
	for (size_t i = 0; i < a->threads.n; i++)
		if (a->threads.v[i].process == t->process && a->threads.v[i].computes)
			return true;
	return false;
}

static void compute(const struct scene *s, struct facts *f)
{
	const struct activity *a = &s->activity;
	const char *why;
	const struct act_thread *t = stacked_critical(a, &why);
	double all = 0, used = 0, framework = 0, names = 0, taught = 0;
	uint32_t lessons = 0;
	bool by_name;

	if (!t) {
		fact_absent(f, FACT_CONSUMER, "%s", why);
		fact_absent(f, FACT_TRAINING, "%s", why);
		return;
	}
	for (size_t k = t->row; k < t->row + t->n_rows; k++) {
		const struct act_row *r = &a->rows.v[k];

		/* on a full machine it is queued for most of its time, whatever for */
		if (r->unknown || r->state == TIME_CPU_QUEUE)
			continue;
		all += r->seconds;
		if (!uses(r))
			continue;
		used += r->seconds;
		framework += is_framework(r) ? r->seconds : 0;
		names += r->trains ? r->seconds : 0;
		taught += r->teaches ? r->seconds : 0;
		lessons += r->teaches ? r->count : 0;
	}
	fact_set(f, FACT_CONSUMER, all > 0 ? used / all : 0);
	by_name =
	    names > names_least * all || (taught > taught_least * all && lessons >= lessons_least);
	fact_set(f, FACT_TRAINING,
		 framework > framework_least * all || by_name || t->by_hand || has_helpers(a, t));
	if (f->v[FACT_TRAINING].value > 0)
		fact_set_subject(f, FACT_TRAINING, 0,
				 framework > framework_least * all ? "framework"
				 : by_name                         ? "names"
								   : "arrays");
}

const struct fact_source consumer_facts = { "consumer", compute };
