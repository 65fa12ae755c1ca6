/* SPDX-License-Identifier: MIT
 *
 * Was a process of the job killed for want of memory? The kernel counts such kills per group
 * (memory.events or memory.oom_control, kernel 4.13) and for the machine (oom_kill in /proc/vmstat,
 * kernel 4.13), but does not say whom: a kill is the job's when a process of the job ended then.
 */
#include "explain/fact.h"
#include "explain/scene.h"

#include <math.h>
#include <signal.h>

enum { KILLS_MAX = 16, SHELL_KILLED = 128 + SIGKILL };

/* A counted kill lies between two readings; the end of a process is seen up to a tick later, or, when
 * it takes long to give its memory back, some ticks. */
static const int64_t before_ns = 1000000000, after_ns = 3000000000;

struct kills {
	struct {
		int64_t from_ns, to_ns;
	} v[KILLS_MAX];
	size_t n;
	bool any;
	double last;
	int64_t last_ns;
};

static bool note_kill(const struct point *p, void *arg)
{
	struct kills *k = arg;

	if (k->any && p->value > k->last && k->n < KILLS_MAX) {
		k->v[k->n].from_ns = k->last_ns - before_ns;
		k->v[k->n].to_ns = p->t_ns + after_ns;
		k->n++;
	}
	k->any = true;
	k->last = p->value;
	k->last_ns = p->t_ns;
	return true;
}

static void look_at(const struct scene *s, enum metric_id m, uint32_t entity, struct kills *ret)
{
	const struct window *w = s->whole;

	*ret = (struct kills){ 0 };
	w->ops->each(w->src, m, entity, w->from_ns, w->to_ns, 0, note_kill, ret);
}

static void count(const struct scene *s, struct facts *f, enum fact_id id, enum metric_id m,
		  uint32_t entity)
{
	double v;

	if (entity && scene_growth(s->whole, m, entity, &v))
		fact_set(f, id, v);
	else if (entity && window_last(s->whole, m, entity, &v))
		fact_absent(f, id, "%s: read only once", metrics[m].name);
	else
		fact_absent(f, id, "%s: %s", metrics[m].name,
			    window_why_absent(s->whole, m, entity));
}

/* Kills the recorder saw happen to a process of the job. */
static void seen(const struct scene *s, struct facts *f)
{
	size_t n;
	const struct window_event *e = s->whole->ops->events(s->whole->src, &n);
	const struct member *victim = NULL;
	double kills = 0;

	for (size_t i = 0; i < n; i++) {
		const struct member *m =
		    e[i].kind == EVENT_OOM_KILL ? scene_member(s, e[i].entity) : NULL;

		if (!m)
			continue;
		kills++;
		victim = m;
	}
	fact_set(f, FACT_OOM_SEEN, kills);
	if (victim)
		fact_set_subject(f, FACT_OOM_SEEN, victim->id, victim->name);
}

/* Small processes come and go all the time; the kernel takes the largest. */
static bool is_large(const struct facts *f, const struct member *m)
{
	double allowed;

	if (fact_value(f, FACT_MEMORY_ALLOWED, &allowed) && m->rss_max >= 0.1 * allowed)
		return true;
	return m->id == f->v[FACT_MEMORY_LARGEST].subject;
}

/* Its exit status as a shell would have it (137: SIGKILL), NAN when nobody saw it. */
static double status_of(const struct scene *s, const struct member *m)
{
	size_t n;
	const struct window_event *e = s->whole->ops->events(s->whole->src, &n);

	if (m->is_main && s->run->has_exit)
		return s->run->exit_signal ? 128 + s->run->exit_signal : s->run->exit_code;
	for (size_t i = n; i-- > 0;)
		if (e[i].kind == EVENT_EXIT && e[i].entity == m->id)
			return e[i].value;
	return NAN;
}

static bool ended_then(const struct member *m, const struct kills *k)
{
	if (!m->gone_ns)
		return false;
	for (size_t i = 0; i < k->n; i++)
		if (m->gone_ns >= k->v[i].from_ns && m->gone_ns <= k->v[i].to_ns)
			return true;
	return false;
}

static void vanished(const struct scene *s, struct facts *f, const struct kills *k)
{
	const struct member *largest = NULL;
	bool of_unknown_size = false;
	double n = 0;

	for (size_t i = 0; i < s->members.n; i++) {
		const struct member *m = &s->members.v[i];

		double status = ended_then(m, k) ? status_of(s, m) : 0;

		/* A status of its own clears it; SIGKILL is one sign more, and then size is none. */
		if (isfinite(status) && status != SHELL_KILLED)
			continue;
		if (!isfinite(status) && !isfinite(m->rss_max)) {
			of_unknown_size = true;
			continue;
		}
		if (!isfinite(status) && !is_large(f, m))
			continue;
		n++;
		if (!largest || !(m->rss_max <= largest->rss_max))
			largest = m;
	}
	if (of_unknown_size && !n) {
		fact_absent(f, FACT_OOM_VANISHED, "%s of a process that ended then: %s",
			    metrics[M_PROC_RSS].name,
			    window_why_absent(s->whole, M_PROC_RSS, ID_JOB));
		return;
	}
	fact_set(f, FACT_OOM_VANISHED, n);
	if (largest)
		fact_set_subject(f, FACT_OOM_VANISHED, largest->id, largest->name);
}

/* How long before the program's end were the counters last read? The group's is read at every tick
 * and told when it moves, so once the program was seen dead its silence holds. */
static double lateness(const struct scene *s, const struct kills *group,
		       const struct kills *machine)
{
	const struct member *m = scene_member(s, s->main_proc);
	int64_t end = m && m->gone_ns ? m->gone_ns : s->run->ended_mono_ns;
	int64_t read_ns = group->last_ns > machine->last_ns ? group->last_ns : machine->last_ns;

	if (!s->run->has_exit || read_ns >= end || (group->any && m && m->gone_ns))
		return 0;
	return (double)(end - read_ns) / 1e9;
}

static void compute(const struct scene *s, struct facts *f)
{
	const struct run_info *run = s->run;
	struct kills group, machine;

	seen(s, f);
	count(s, f, FACT_OOM_GROUP, M_CG_MEM_OOM_KILLS, s->cg_mem);
	count(s, f, FACT_OOM_MACHINE, M_VM_OOM_KILLS, ID_HOST);
	fact_set(f, FACT_OOM_DIED,
		 run->has_exit && (run->exit_signal == SIGKILL || run->exit_code == SHELL_KILLED));
	look_at(s, M_CG_MEM_OOM_KILLS, s->cg_mem, &group);
	look_at(s, M_VM_OOM_KILLS, ID_HOST, &machine);
	vanished(s, f, group.n ? &group : &machine);
	if (group.any || machine.any)
		fact_set(f, FACT_OOM_LATE, lateness(s, &group, &machine));
	else
		fact_absent_like(f, FACT_OOM_LATE, FACT_OOM_MACHINE);
}

const struct fact_source oom_facts = { "oom", compute };
