/* SPDX-License-Identifier: MIT
 *
 * Records come and go while a run goes on: one is attached for an hour beside the one that `run` writes, a training is started
 * again with a new one. What a record told is added to the sums of its rank and run as it comes, so that nothing counts
 * backwards when the record is over and forgotten; and of a process that two recorders watch, one record tells, as
 * each has all of its steps.
 */
#include "agent/jobs.h"

#include "base/text.h"

#include <errno.h>
#include <math.h>
#include <string.h>

enum {
	LEDGER_MOST = 4096, /* lines of all runs */
	DEPTH_MOST = 64,
};

void told_done(struct jobs *j)
{
	vec_done(&j->told);
	vec_done(&j->ledger);
	map_done(&j->teller);
	map_done(&j->program);
}

struct claims {
	struct jobs *jobs;
	const struct notes *notes;
};

/* Serials of records begin with 1 and are given in turn: the lower is the older. */
static void claim(struct claims *c, struct map *who, const struct record_news *n, int64_t pid)
{
	const struct note *x = note_of_pid(c->notes, pid);
	uint32_t had;

	if (!x || !record_may_tell(n, x))
		return;
	if (!map_get(who, (uint64_t)pid, &had) || n->serial < had)
		(void)map_put(who, (uint64_t)pid, (uint32_t)n->serial);
}

static void take_claims(const struct record_news *n, void *arg)
{
	struct claims *c = arg;

	if (!n->here || n->ended)
		return;
	claim(c, &c->jobs->program, n, n->pid);
	for (size_t i = 0; i < n->groups.n; i++)
		claim(c, &c->jobs->teller, n, n->groups.v[i].pid);
}

void told_begin(struct jobs *j, const struct notes *n, struct records *records)
{
	map_clear(&j->teller);
	map_clear(&j->program);
	for (size_t i = 0; i < j->told.n; i++)
		j->told.v[i].seen = false;
	records_each(records, take_claims, &(struct claims){ j, n });
}

struct job_told *told_of(struct jobs *j, uint64_t serial)
{
	struct job_told *t = NULL;

	for (size_t i = 0; i < j->told.n && !t; i++)
		if (j->told.v[i].serial == serial)
			t = &j->told.v[i];
	if (!t) {
		t = vec_push(&j->told);
		if (t)
			*t = (struct job_told){ .serial = serial };
	}
	if (t)
		t->seen = true;
	return t;
}

void told_end(struct jobs *j)
{
	size_t kept = 0;

	for (size_t i = 0; i < j->told.n; i++) {
		uint64_t serial = j->told.v[i].serial;

		if (j->told.v[i].seen) {
			j->told.v[kept++] = j->told.v[i];
			continue;
		}
		for (size_t k = 0; k < j->links.n; k++)
			if (j->links.v[k].serial == serial)
				j->links.v[k--] = j->links.v[--j->links.n];
	}
	j->told.n = kept;
}

void told_forget_run(struct jobs *j, int run)
{
	for (size_t i = 0; i < j->ledger.n; i++)
		if (j->ledger.v[i].run == (size_t)run)
			j->ledger.v[i--] = j->ledger.v[--j->ledger.n];
}

/* Does an older record that goes on have it, too? In a container pids are others. */
static bool is_told(const struct map *who, const struct record_news *n, int64_t pid)
{
	uint32_t serial;

	return n->here && pid > 0 && map_get(who, (uint64_t)pid, &serial) && serial < n->serial;
}

/* Is its program that of an older record, or below it? */
static bool is_within(const struct jobs *j, const struct notes *n, const struct record_news *news)
{
	const struct note *x = news->here ? note_of_pid(n, news->pid) : NULL;
	int at = x ? (int)(x - n->v.v) : -1;

	for (int depth = 0; at >= 0 && (size_t)at < j->procs.n && depth < DEPTH_MOST; depth++) {
		if (is_told(&j->program, news, n->v.v[at].pid))
			return true;
		at = j->procs.v[at].parent;
	}
	return false;
}

void told_steps(struct jobs *j, const struct record_news *n, const struct record_group *g,
		struct job_link *l)
{
	struct view_steps more = view_steps_since(&g->steps, &l->taken);
	struct view_rank *r = &j->ranks[l->rank].v;

	l->taken = g->steps;
	if (is_told(&j->teller, n, g->pid))
		return;
	view_rank_add_steps(r, &more);
	if (n->since_ms && n->since_ms < r->start_ms)
		r->start_ms = n->since_ms;
}

static bool is_line(const struct view_ledger *v, size_t run, int32_t rank,
		    const struct record_line *l)
{
	return v->run == run && v->rank == rank && strcmp(v->ledger, l->ledger) == 0 &&
	       strcmp(v->state, l->state) == 0;
}

/* Where each rank has a record of its own, several tell of one run: their times add up. NULL: there are too many. */
static struct view_ledger *ledger_row(struct jobs *j, size_t run, int32_t rank,
				      const struct record_line *l, size_t *at)
{
	struct view_ledger *v;

	if (*at < j->ledger.n && is_line(&j->ledger.v[*at], run, rank, l))
		return &j->ledger.v[*at];
	for (*at = 0; *at < j->ledger.n; ++*at)
		if (is_line(&j->ledger.v[*at], run, rank, l))
			return &j->ledger.v[*at];
	v = j->ledger.n < LEDGER_MOST ? vec_push(&j->ledger) : NULL;
	if (!v)
		return NULL;
	*v = (struct view_ledger){
		.run = run, .rank = rank, .ledger = l->ledger, .start_ms = INT64_MAX
	};
	text_copy(v->state, sizeof(v->state), l->state);
	return v;
}

int told_line(struct jobs *j, const struct notes *n, const struct record_news *news, size_t line,
	      int run, int32_t rank)
{
	const struct record_line *l = &news->ledger[line];
	struct job_told *t = told_of(j, news->serial);
	struct view_ledger *v;
	double more;

	if (!t)
		return -ENOMEM;
	more = l->seconds - t->taken[line];
	t->taken[line] = l->seconds;
	/* That of a thread is its process's; that of the CPU all of its program's. */
	if (l->pid ? is_told(&j->teller, news, l->pid) || is_told(&j->program, news, l->pid)
		   : is_within(j, n, news))
		return 0;
	v = ledger_row(j, (size_t)run, rank, l, &t->row[line]);
	if (!v)
		return j->ledger.n < LEDGER_MOST ? -ENOMEM : 0;
	v->seconds += more > 0 ? more : 0;
	if (news->since_ms < v->start_ms)
		v->start_ms = news->since_ms;
	return 0;
}
