/* SPDX-License-Identifier: MIT
 *
 * How long it took until the training began: until the first step that was marked, or, where nobody marks
 * steps, until the imports were over.
 */
#include "explain/fact.h"
#include "explain/facts/stretch.h"
#include "explain/startup.h"

/* End of the first step: what came before it is not known apart from it. 0: none. */
static int64_t first_step(const struct scene *s)
{
	const struct window_step *v;
	size_t n = 0;

	v = s->whole->ops->steps ? s->whole->ops->steps(s->whole->src, &n) : NULL;
	for (size_t i = 0; i < n; i++)
		if (v[i].end_ns > s->whole->from_ns && v[i].end_ns <= s->whole->to_ns)
			return v[i].begin_ns > s->whole->from_ns && v[i].begin_ns < v[i].end_ns
				   ? v[i].begin_ns
				   : v[i].end_ns;
	return 0;
}

static void absent(struct facts *f, const char *why)
{
	for (int id = FACT_START_SECONDS; id <= FACT_START_IMPORTS; id++)
		fact_absent(f, (enum fact_id)id, "%s", why);
}

static void compute(const struct scene *s, struct facts *f)
{
	bool marked;
	int64_t step = first_step(s), imports, from = s->whole->from_ns;
	bool stacks = s->activity.any && s->activity.critical >= 0;

	if (s->run->attached || !s->covers_run) {
		absent(f, "its start was not recorded");
		return;
	}
	if (!step && !stacks) {
		absent(f, s->activity.why_not
			      ? s->activity.why_not
			      : "neither steps nor stacks of its start were recorded");
		return;
	}
	imports = stacks ? startup_end(s) : 0;
	if (stacks)
		fact_set(f, FACT_START_IMPORTS,
			 imports > from ? (double)(imports - from) / 1e9 : 0);
	else
		fact_absent(f, FACT_START_IMPORTS, "stacks of its start were not recorded");
	marked = step != 0;
	if (!marked)
		step = imports > from ? imports : from;
	fact_set(f, FACT_START_SECONDS, (double)(step - from) / 1e9);
	fact_set_subject(f, FACT_START_SECONDS, 0, marked ? "steps" : "imports");
	f->v[FACT_START_SECONDS].place =
	    stretch_place(s, from, step); /* its text says what it is */
	fact_set(f, FACT_START_SHARE,
		 s->whole_seconds > 0 ? (double)(step - from) / 1e9 / s->whole_seconds : 0);
}

const struct fact_source start_facts = { "start", compute };
