/* SPDX-License-Identifier: MIT
 *
 * worker_memory_growth: the loader workers' memory grows with every batch. Mostly it is a forked copy of the
 * data set that is copied page by page: to look at a Python object writes its reference count.
 *
 * Not to be taken for it: growth of the training process itself (memory_leak), and workers that are started
 * anew for each epoch.
 *
 * Gain: none on speed, until the memory is full.
 *
 * Where proportional memory was rarely read, what grows is the memory of the group or the machine, beyond what the
 * processes of the job show: another program that grows at the same time looks the same, so it is a note.
 */
#include "explain/growing.h"

#include "base/text.h"

#include <math.h>
#include <stdio.h>

static enum answer check(const struct facts *f, struct opinion *o)
{
	struct growing g = {
		.rate = FACT_WORKERS_LEAK,
		.bytes = FACT_WORKERS_LEAK_BYTES,
		.of = FACT_WORKERS_LEAK_OF,
		.who = "the loader workers",
		.grow = "grow",
		.process = "",
		.fix = "hold the data set's index in arrays (NumPy, Arrow) instead of lists or "
		       "dicts of "
		       "Python objects, so that forked workers share it; fewer workers; no cache "
		       "without a bound inside of the data set",
		.edit = "self.files = np.array(files)",
		.kept = FACT_KEPT_WORKERS,
	};

	const char *whose = f->v[FACT_WORKERS_LEAK].text;
	char title[sizeof(o->finding.title)];
	enum answer a = growing_check(&g, f, o);

	if (a == ANSWER_YES && !whose[0])
		growing_title(&o->finding);
	if (a != ANSWER_YES || !whose[0])
		return a;
	rule_because(&o->finding, f, FACT_WORKERS_LEAK,
		     "by so much the memory of the %s grows beyond what the job's processes show, "
		     "and the workers copy enough pages for it",
		     whose);
	text_copy(title, sizeof(title), o->finding.title);
	snprintf(o->finding.title, sizeof(o->finding.title),
		 "%.100s, it seems (by the memory of the %.20s)", title, whose);
	growing_title(&o->finding);
	o->finding.note = true;
	o->finding.cost = NAN;
	o->finding.then[0] = '\0';
	o->finding.confidence = 0.5;
	return a;
}

const struct rule worker_memory_growth_rule = { .cause = "worker_memory_growth",
						.needs_s = 0,
						.check = check };
