/* SPDX-License-Identifier: MIT
 *
 * What is new in a record. Counters only grow: steps are added as they were written, and of a verdict over the last stretch of
 * the run the shares are taken, times the wall time since the verdict before it.
 */
#include "agent/records.h"

#include "base/clock.h"
#include "base/text.h"
#include "explain/verdict.h"
#include "record/follow.h"
#include "record/ours.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	STEPS_A_LOOK = 1 << 16,
	ROUNDS_MOST = 1000,   /* of as many steps, of a run that has ended: 65 million */
	JUDGE_LEAST_S = 5,    /* a shorter run is not judged */
	JUDGE_STRETCH_S = 60, /* a verdict is about this much at least, where there is as much */
};

struct look {
	struct record_news *news;
	const struct run_info *run;
};

static struct record_group *group_of(struct look *l, const struct window_step *s)
{
	struct record_news *n = l->news;
	struct record_group *g;

	for (size_t i = n->groups.n; i-- > 0;)
		if (n->groups.v[i].entity == s->entity && n->groups.v[i].rank == s->rank)
			return &n->groups.v[i];
	g = n->groups.n < RECORD_GROUPS_MAX ? vec_push(&n->groups) : NULL;
	if (!g)
		return NULL;
	*g = (struct record_group){ .entity = s->entity,
				    .rank = s->rank,
				    .steps = { .data_wait = NAN,
					       .loss = NAN,
					       .last_s = NAN,
					       .comm_wait = NAN,
					       .own_work = NAN } };
	return g;
}

static bool add_step(const struct window_step *s, void *arg)
{
	struct look *l = arg;
	struct record_group *g = group_of(l, s);
	int64_t wall = l->run->started_wall_ns + (s->end_ns - l->run->started_mono_ns);

	/* What was still to be read when somebody attached is an earlier record's, if anybody's. */
	if (!g || s->end_ns < l->run->started_mono_ns)
		return true; /* or more ranks than are shown */
	view_steps_add(&g->steps,
		       s->end_ns > s->begin_ns ? (double)(s->end_ns - s->begin_ns) / 1e9 : -1);
	if (isfinite(s->loss))
		g->steps.loss = s->loss;
	if (isfinite(s->data_wait))
		g->steps.data_wait =
		    s->data_wait + (isfinite(g->steps.data_wait) ? g->steps.data_wait : 0);
	if (!(g->steps.last_s > (double)wall / 1e9))
		g->steps.last_s = (double)wall / 1e9;
	return true;
}

static void add_line(struct record_news *n, const char *ledger, const char *state, int64_t pid,
		     double seconds)
{
	struct record_line *l = NULL;

	if (!(seconds >= 0) || !isfinite(seconds))
		return;
	for (size_t i = 0; i < n->n_ledger && !l; i++)
		if (strcmp(n->ledger[i].ledger, ledger) == 0 && n->ledger[i].pid == pid &&
		    strcmp(n->ledger[i].state, state) == 0)
			l = &n->ledger[i];
	if (!l && n->n_ledger < VIEW_LEDGER_MAX) {
		l = &n->ledger[n->n_ledger++];
		*l = (struct record_line){ .ledger = ledger, .pid = pid };
		text_copy(l->state, sizeof(l->state), state);
	}
	if (l)
		l->seconds += seconds;
}

static void take_ledgers(struct record_news *n, const struct verdict *v, double stretch_s)
{
	for (size_t i = 0; i < v->time.n; i++)
		add_line(n, "time", v->time.v[i].role, v->time_pid, v->time.v[i].share * stretch_s);
	for (size_t i = 0; i < v->cpu.n; i++)
		add_line(n, "cpu", v->cpu.v[i].role, 0, v->cpu.v[i].cores * stretch_s);
}

static void take_findings(struct record_news *n, const struct verdict *v)
{
	n->n_findings = 0;
	for (size_t i = 0; i < v->findings.n && n->n_findings < VIEW_FINDINGS_MAX; i++) {
		const struct finding *f = &v->findings.v[i];

		n->findings[n->n_findings++] = (struct view_finding){ .cause = f->cause,
								      .family = f->family,
								      .cost = f->cost,
								      .confidence = f->confidence };
	}
	if (!v->findings.n && v->healthy && v->limit)
		n->findings[n->n_findings++] = (struct view_finding){
			.cause = v->limit, .family = "", .cost = NAN, .confidence = NAN
		};
}

/* Of the steps since the last verdict, the share that the first thread waited for other ranks. */
static void take_waits(struct record_news *n, const struct verdict *v)
{
	for (size_t i = 0; i < n->groups.n; i++) {
		struct record_group *g = &n->groups.v[i];
		const struct step_group *s = steps_group(&v->steps, g->entity);
		double fresh = g->steps.seconds - g->judged_s, share;

		if (!s || !isfinite(s->comm_wait_s) || !(s->rate_hz > 0))
			continue;
		share = fmin(1, fmax(0, s->comm_wait_s * s->rate_hz));
		if (!isfinite(g->steps.comm_wait))
			g->steps.comm_wait = g->steps.own_work = 0;
		g->steps.comm_wait += share * fresh;
		g->steps.own_work += (1 - share) * fresh;
		g->judged_s = g->steps.seconds;
	}
}

static int judge(struct record_news *n, struct record_cursor *c, struct record *record)
{
	struct window w = record_window(record, 0, 0);
	int64_t since = c->judged_to_ns > w.from_ns ? c->judged_to_ns : w.from_ns;
	double stretch = (double)(w.to_ns - since) / 1e9;
	int64_t from = w.to_ns - JUDGE_STRETCH_S * NS_PER_S;
	int64_t cpu = clock_thread_cpu_ns();
	struct verdict v;
	int r;

	if (stretch <= 0 || w.to_ns - w.from_ns < JUDGE_LEAST_S * NS_PER_S)
		return 0;
	if (since < from)
		from = since;
	if (from > w.from_ns)
		w.from_ns = from;
	r = explain(&w, &v);
	c->judge_cpu_ns = clock_thread_cpu_ns() - cpu + 1;
	if (r < 0)
		return r;
	take_findings(n, &v);
	take_ledgers(n, &v, stretch);
	take_waits(n, &v);
	c->judged_to_ns = w.to_ns;
	verdict_done(&v);
	return 0;
}

static void find_pids(struct record_news *n, struct record *record)
{
	struct window w = record_window(record, 0, 0);
	const struct entity_table *t = window_entities(&w);

	for (size_t i = 0; i < n->groups.n; i++) {
		const struct entity *e =
		    n->groups.v[i].pid ? NULL : entity_find(t, n->groups.v[i].entity);

		if (e)
			n->groups.v[i].pid = e->key;
	}
}

/* Opens a file that some process of that name has open. It must be its user's own: a link, or the file of somebody else, would
 * have us tell what that user may not read. Only where nobody can mean ill it is read with its log. */
static int open_offered(const struct record_news *n, struct record **ret)
{
	struct stat st;
	uid_t owner;
	int r;

	if (lstat(n->path, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_uid != n->uid)
		return -EPERM;
	if (n->uid == geteuid() && run_file_is_ours(n->path))
		return record_open(n->path, ret, NULL);
	r = record_open_others(n->path, ret, NULL);
	if (r < 0)
		return r;
	/* Its name may have come to mean another file since. And what is counted is never taken back: a file that is being
	 * written to is for the next look. */
	if (record_owner(*ret, &owner) < 0 || owner != n->uid)
		r = -EPERM;
	else if (record_is_mixed(*ret))
		r = -EAGAIN;
	if (r < 0)
		record_close(*ret);
	return r;
}

int record_look(struct record_news *n, struct record_cursor *c, bool judge_now, bool judge_end)
{
	struct look l = { .news = n };
	struct record *record;
	bool going;
	int rounds = 0;
	int r = n->offered ? open_offered(n, &record) : record_open_writing(n->path, &record, NULL);

	if (r < 0)
		return r;
	l.run = record_run(record);
	/* Before its steps are read: of one that has ended by now, all are there. */
	going = l.run->state == RUN_GOING;
	n->pid = l.run->pid;
	if (!n->since_ms)
		n->since_ms = l.run->started_wall_ns / NS_PER_MS;
	text_safe_copy(n->id, sizeof(n->id), l.run->id);
	text_safe_copy(n->name, sizeof(n->name), l.run->name);
	do {
		r = record_new_steps(record, &c->after, STEPS_A_LOOK, add_step, &l);
	} while (!going && r == STEPS_A_LOOK && ++rounds < ROUNDS_MOST);
	if (r == -EBADMSG || r == -EINTR || r == -ENOMEM) {
		record_close(record);
		return r;
	}
	find_pids(n, record);
	if (judge_now || (judge_end && !going))
		(void)judge(n, c, record);
	if (!going)
		n->ended = true;
	record_close(record);
	return 0;
}
