/* SPDX-License-Identifier: MIT
 *
 * The first process of a job leads, and so does each that has children in it: the training among its workers. But one that
 * only waits for what it started (a shell, torchrun, multiprocessing.spawn) is no training: its children are, and they lead.
 */
#include "engine/stack_lead.h"

#include "base/clock.h"

enum {
	WATCH_S = 1,
	HANDED_MAX = 8, /* more children than that take turns, whatever they are */
};

static const double rest_most = 0.02; /* of a core */

static struct stack_proc *parent_of(const struct stack_job *j, const struct stack_proc *p)
{
	uint32_t at;

	return map_get(&j->by_entity, p->parent, &at) ? j->procs.v[at] : NULL;
}

void stack_lead_find(struct stack_job *j)
{
	for (size_t i = 0; i < j->procs.n; i++)
		j->procs.v[i]->children = 0;
	for (size_t i = 0; i < j->procs.n; i++) {
		struct stack_proc *parent = parent_of(j, j->procs.v[i]);

		if (parent)
			parent->children++;
	}
	j->followers = 0;
	for (size_t i = 0; i < j->procs.n; i++) {
		struct stack_proc *p = j->procs.v[i];
		const struct stack_proc *parent = parent_of(j, p);

		p->leads =
		    p->children > 0 || !parent || (parent->rests && parent->children <= HANDED_MAX);
		j->followers += !p->leads;
	}
}

void stack_lead_watch(struct stack_job *j, int64_t now_ns)
{
	double elapsed = (double)(now_ns - j->lead_ns);
	bool changed = false;

	if (j->lead_ns && now_ns - j->lead_ns < WATCH_S * NS_PER_S)
		return;
	for (size_t i = 0; i < j->procs.n; i++) {
		struct stack_proc *p = j->procs.v[i];
		bool known = j->lead_ns && p->cpu_then_ns > 0 && p->cpu_ns >= p->cpu_then_ns;
		bool rests = known && (double)(p->cpu_ns - p->cpu_then_ns) < rest_most * elapsed;

		changed |= rests != p->rests && p->children > 0;
		p->rests = rests;
		p->cpu_then_ns = p->cpu_ns;
	}
	j->lead_ns = now_ns;
	if (changed)
		stack_lead_find(j);
}
