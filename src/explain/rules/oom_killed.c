/* SPDX-License-Identifier: MIT
 *
 * oom_killed: the kernel killed a process of the job for want of memory; the death certificate says
 * who was killed, who had grown and how fast, and which limit was full.
 *
 * Not to be taken for it: a SIGKILL somebody sent (a scheduler's time limit, kill -9), and a kill
 * elsewhere in the machine or the container while a process of the job ended of its own accord.
 */
#include "explain/growing.h"

#include "base/num.h"

#include <math.h>
#include <stdio.h>

/* The counters must have been read when the program was dead, or a moment before at most. */
static const double late_most = 0.05;

/* A kill was counted; is one of ours the dead? */
static enum answer one_of_ours(const struct facts *f, struct opinion *o)
{
	return answer_or(rule_at_least(f, FACT_OOM_DIED, 1, o),
			 rule_at_least(f, FACT_OOM_VANISHED, 1, o));
}

static enum answer was_killed(const struct facts *f, struct opinion *o, double *ret_confidence)
{
	enum answer machine = rule_at_least(f, FACT_OOM_MACHINE, 1, o);
	enum answer group = rule_at_least(f, FACT_OOM_GROUP, 1, o);

	*ret_confidence = 0.98;
	if (fact_or(f, FACT_OOM_SEEN, 0) >= 1)
		return ANSWER_YES;
	if (group == ANSWER_YES) {
		*ret_confidence = 0.95;
		return one_of_ours(f, o);
	}
	if (machine == ANSWER_YES) {
		*ret_confidence = fact_or(f, FACT_OOM_DIED, 0) >= 1 ? 0.85 : 0.7;
		return one_of_ours(f, o);
	}
	if (fact_or(f, FACT_OOM_DIED, 0) >= 1 && fact_or(f, FACT_OOM_LATE, INFINITY) > late_most)
		return rule_cannot_tell(
		    o, "killed by SIGKILL, and the kernel's count of kills for memory was %s",
		    f->v[FACT_OOM_LATE].known ? "last read before that" : "not recorded");
	/* The machine's counter has every kill in it, so its silence is enough. */
	return machine == ANSWER_CANNOT_TELL ? group : machine;
}

/* The dead one's name, and the limit that was full. */
static void say_title(struct finding *x, const struct facts *f)
{
	static const enum fact_id who[] = { FACT_OOM_SEEN, FACT_OOM_VANISHED, FACT_MEMORY_LARGEST };
	const char *name = "";
	char a[32];
	double allowed;

	for (size_t i = 0; i < sizeof(who) / sizeof(who[0]) && !*name; i++)
		name = f->v[who[i]].text;
	if (!fact_value(f, FACT_MEMORY_ALLOWED, &allowed))
		snprintf(x->title, sizeof(x->title), "the kernel killed %s for want of memory",
			 *name ? name : "a process of the job");
	else
		snprintf(x->title, sizeof(x->title), "the kernel killed %s: the %s of %s were full",
			 *name ? name : "a process of the job", num_bytes(allowed, a, sizeof(a)),
			 strcmp(f->v[FACT_MEMORY_ALLOWED].text, "cgroup") == 0 ? "its control group"
									       : "the machine");
}

static void say_why(struct finding *x, const struct facts *f)
{
	char a[32], b[32];
	double growth;

	if (fact_or(f, FACT_OOM_GROUP, 0) >= 1)
		rule_because(x, f, FACT_OOM_GROUP,
			     "kills for want of memory in its control group: %.0f",
			     f->v[FACT_OOM_GROUP].value);
	else if (fact_or(f, FACT_OOM_MACHINE, 0) >= 1)
		rule_because(x, f, FACT_OOM_MACHINE,
			     "kills for want of memory in the machine: %.0f",
			     f->v[FACT_OOM_MACHINE].value);
	if (fact_or(f, FACT_OOM_DIED, 0) >= 1)
		rule_because(x, f, FACT_OOM_DIED, "the program ended by SIGKILL");
	rule_because(x, f, FACT_MEMORY_LARGEST, "the largest process was %s: %s",
		     f->v[FACT_MEMORY_LARGEST].text,
		     num_bytes(f->v[FACT_MEMORY_LARGEST].value, a, sizeof(a)));
	if (fact_value(f, FACT_MEMORY_GROWTH, &growth) && growth > 0)
		rule_because(x, f, FACT_MEMORY_GROWTH, "it grew by %s a second at the end",
			     num_bytes(growth, a, sizeof(a)));
	if (f->v[FACT_MEMORY_ALLOWED].known)
		rule_because(x, f, FACT_MEMORY_PEAK, "the job's peak was %s of %s allowed (%s)",
			     num_bytes(f->v[FACT_MEMORY_PEAK].value, a, sizeof(a)),
			     num_bytes(f->v[FACT_MEMORY_ALLOWED].value, b, sizeof(b)),
			     f->v[FACT_MEMORY_ALLOWED].text);
}

static enum answer check(const struct facts *f, struct opinion *o)
{
	struct finding *x = &o->finding;
	double confidence;
	enum answer a = was_killed(f, o, &confidence);

	if (a != ANSWER_YES)
		return a;
	say_title(x, f);
	say_why(x, f);
	growing_where(x, f, FACT_KEPT_LARGEST);
	snprintf(x->fix, sizeof(x->fix),
		 "use less memory (fewer loader workers, smaller batch or cache, no list that "
		 "keeps every "
		 "loss tensor), or %s",
		 strcmp(f->v[FACT_MEMORY_ALLOWED].text, "cgroup") == 0
		     ? "raise the limit (docker run --memory, Kubernetes limits.memory, memory.max)"
		     : "run where there is more");
	x->cost = 1;
	x->confidence = confidence;
	snprintf(x->then, sizeof(x->then), "the run can finish");
	return ANSWER_YES;
}

const struct rule oom_killed_rule = { .cause = "oom_killed", .needs_s = 0, .check = check };
