/* SPDX-License-Identifier: MIT
 *
 * spin_wait: the training thread burns a CPU only to wait for the device. Nothing becomes faster without: a
 * note, since the core could be somebody's, and since "100 % CPU" then means nothing.
 *
 * Not to be taken for it: Python or framework code that really runs.
 */
#include "explain/loading.h"

#include "base/num.h"

#include <stdio.h>

static const double spin_least = 0.2;

static enum answer check(const struct facts *f, struct opinion *o)
{
	struct finding *x = &o->finding;
	enum answer r = rule_at_least(f, FACT_DOING_SPIN, spin_least, o);
	char a[24];

	if (r != ANSWER_YES)
		return r;
	num_percent(f->v[FACT_DOING_SPIN].value, a, sizeof(a));
	rule_where(x, f, FACT_DOING_SPIN);
	snprintf(x->title, sizeof(x->title),
		 "%s of a core is burnt waiting for the GPU, not working", a);
	rule_because(x, f, FACT_DOING_SPIN,
		     "%s of its time %s is on a CPU only to wait for the device", a,
		     loading_thread(f));
	rule_because(x, f, FACT_CORES_FREE, "%s cores are free",
		     num_cores(fact_or(f, FACT_CORES_FREE, 0), a, sizeof(a)));
	snprintf(
	    x->fix, sizeof(x->fix),
	    "nothing, while cores are free; else let it sleep: cudaDeviceScheduleBlockingSync");
	x->note = true;
	x->confidence = 0.85;
	return ANSWER_YES;
}

const struct rule spin_wait_rule = {
	.cause = "spin_wait", .needs_s = 5, .check = check, .about_gpus = true
};
