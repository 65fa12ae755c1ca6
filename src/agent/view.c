/* SPDX-License-Identifier: MIT */
#include "agent/view.h"

#include <math.h>
#include <unistd.h>

/* From a millisecond to ten minutes: a step may be either. */
const double step_bounds[STEP_BOUNDS] = { 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
					  1,     2.5,    5,     10,   30,    60,   150, 600 };

size_t view_share(uid_t uid, size_t all)
{
	return uid == 0 || uid == geteuid() ? all : all / 2;
}

void agent_view_reset(struct agent_view *v)
{
	v->runs.n = v->ranks.n = v->holds.n = v->ledger.n = v->findings.n = 0;
	v->things.n = v->values.n = 0;
}

void agent_view_done(struct agent_view *v)
{
	vec_done(&v->runs);
	vec_done(&v->ranks);
	vec_done(&v->holds);
	vec_done(&v->ledger);
	vec_done(&v->findings);
	vec_done(&v->things);
	vec_done(&v->values);
}

const char *view_role_name(enum view_role r)
{
	static const char *const names[VIEW_ROLES] = { "trainer", "dataloader", "other" };

	return names[r];
}

const char *run_source_name(enum run_source s)
{
	static const char *const names[RUN_SOURCES] = {
		"", "given", "torchelastic", "slurm", "kubernetes", "mpi", "spotter", "process",
	};

	return names[s];
}

void view_steps_add(struct view_steps *s, double seconds)
{
	size_t at = 0;

	s->count++;
	if (!(seconds >= 0))
		return;
	while (at < STEP_BOUNDS && seconds > step_bounds[at])
		at++;
	s->bucket[at]++;
	s->timed++;
	s->seconds += seconds;
}

void view_add_known(double *sum, double v)
{
	if (isfinite(v))
		*sum = isfinite(*sum) ? *sum + v : v;
}

void view_rank_add_steps(struct view_rank *r, const struct view_steps *s)
{
	struct view_steps *t = &r->steps;
	bool newer = !(t->last_s >= s->last_s);

	if (!r->has_steps) {
		*t = *s;
		r->has_steps = true;
		return;
	}
	t->count += s->count;
	t->timed += s->timed;
	for (size_t i = 0; i <= STEP_BOUNDS; i++)
		t->bucket[i] += s->bucket[i];
	t->seconds += s->seconds;
	view_add_known(&t->data_wait, s->data_wait);
	view_add_known(&t->comm_wait, s->comm_wait);
	view_add_known(&t->own_work, s->own_work);
	if (newer && isfinite(s->last_s))
		t->last_s = s->last_s;
	/* Of the last step that had one: the newest may not have said any yet. */
	if (isfinite(s->loss) && (newer || !isfinite(t->loss)))
		t->loss = s->loss;
}

static double known_since(double now, double before)
{
	return isfinite(before) ? now - before : now;
}

struct view_steps view_steps_since(const struct view_steps *now, const struct view_steps *before)
{
	struct view_steps more = *now;

	more.count -= before->count;
	more.timed -= before->timed;
	for (size_t i = 0; i <= STEP_BOUNDS; i++)
		more.bucket[i] -= before->bucket[i];
	more.seconds -= before->seconds;
	more.data_wait = known_since(now->data_wait, before->data_wait);
	more.comm_wait = known_since(now->comm_wait, before->comm_wait);
	more.own_work = known_since(now->own_work, before->own_work);
	return more;
}
