/* SPDX-License-Identifier: MIT
 *
 * The first process of a job leads, and so does each that has children in it: the training among its workers. But one that
 * only waits for what it started (a shell, torchrun, multiprocessing.spawn) is no training: its children are, and they lead.
 */
#include "engine/stack_lead.h"

#include "base/clock.h"

enum {
	WATCH_S = 1,
	RESTS_FOR = 3,  /* times it was asked: a training may wait for its data for a while */
	HANDED_MAX = 8, /* more children than that take turns, whatever they are */
};

/* Of a core: what a launcher uses that looks after its children now and then; a training that waits for data uses more. Once
 * it has handed over it takes back only when it plainly works. */
static const double rest_most = 0.01, work_least = 0.03;

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

static bool rests(struct stack_proc *p, double elapsed)
{
	bool known = elapsed > 0 && p->cpu_then_ns > 0 && p->cpu_ns >= p->cpu_then_ns;
	double used = known ? (double)(p->cpu_ns - p->cpu_then_ns) / elapsed : 1;

	if (used >= (p->rests ? work_least : rest_most))
		p->rested = 0;
	else if (p->rested < RESTS_FOR)
		p->rested++;
	return p->rested >= RESTS_FOR;
}

void stack_lead_watch(struct stack_job *j, int64_t now_ns)
{
	double elapsed = j->lead_ns ? (double)(now_ns - j->lead_ns) : 0;
	bool changed = false;

	if (j->lead_ns && now_ns - j->lead_ns < WATCH_S * NS_PER_S)
		return;
	for (size_t i = 0; i < j->procs.n; i++) {
		struct stack_proc *p = j->procs.v[i];
		bool before = p->rests;

		p->rests = rests(p, elapsed);
		p->cpu_then_ns = p->cpu_ns;
		changed |= p->rests != before && p->children > 0;
	}
	j->lead_ns = now_ns;
	if (changed)
		stack_lead_find(j);
}
