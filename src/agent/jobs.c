/* SPDX-License-Identifier: MIT */
#include "agent/jobs.h"

#include "base/clock.h"
#include "base/text.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LEFT_OUT_MOST = 4096 };

void jobs_done(struct jobs *j)
{
	vec_done(&j->links);
	told_done(j);
	vec_done(&j->procs);
	vec_done(&j->found.v);
	vec_done(&j->place);
	map_done(&j->left_out);
}

/* Counts a thing that has no place, once. */
static void leave_out(struct jobs *j, const char *run_id, uid_t uid, int32_t rank, double *count)
{
	uint64_t key = map_mix((uint64_t)uid << 32 | (uint32_t)(rank + 2));
	uint32_t known;

	for (const char *p = run_id; *p; p++)
		key = map_mix(key ^ (unsigned char)*p);
	if (map_get(&j->left_out, key, &known))
		return;
	if (j->left_out.n >= LEFT_OUT_MOST)
		map_clear(&j->left_out);
	if (map_put(&j->left_out, key, 1))
		++*count;
}

/* The run in which this very process was before, -1: one that begins as root and goes on as another user stays what it is, and
 * one whose user is not known any more has ended. */
static int run_before(const struct jobs *j, const struct disc_rank *r, uint32_t root)
{
	for (int i = 0; i < VIEW_RANKS_MAX; i++)
		if (j->ranks[i].used && j->ranks[i].root == root &&
		    strcmp(j->runs[j->ranks[i].v.run].said, r->run_id) == 0)
			return (int)j->ranks[i].v.run;
	return -1;
}

/* May the run become this user's, as one of its processes has? Not while another is the old one's: that would hand its run
 * over, and what it starts from then on would be another run. */
static bool may_become(const struct jobs *j, int run, uint32_t root, uid_t uid)
{
	for (int i = 0; i < VIEW_RANKS_MAX; i++) {
		const struct job_rank *r = &j->ranks[i];

		if (r->used && r->v.run == (size_t)run && r->root != root && r->uid != uid)
			return false;
	}
	return true;
}

/* A process whose user is not known joins nobody's run. */
static bool is_run(const struct job_run *x, const struct disc_rank *r, uid_t uid)
{
	return x->used && uid != NO_UID && x->uid == uid && strcmp(x->said, r->run_id) == 0;
}

static bool id_is_taken(const struct jobs *j, const char *id)
{
	for (int i = 0; i < VIEW_RUNS_MAX; i++)
		if (j->runs[i].used && strcmp(j->runs[i].v.id, id) == 0)
			return true;
	return false;
}

/* Of two users' runs with the same id the first keeps it, the other is "exp1~1001". */
static void make_id(const struct jobs *j, const char *said, uid_t uid, char ret[RUN_ID_SIZE])
{
	char tail[32];

	text_copy(ret, RUN_ID_SIZE, said);
	for (int n = 1; id_is_taken(j, ret); n++) {
		snprintf(tail, sizeof(tail), n == 1 ? "~%u" : "~%u~%d", (unsigned)uid, n);
		text_safe_copy(ret, RUN_ID_SIZE - strlen(tail), said);
		snprintf(ret + strlen(ret), RUN_ID_SIZE - strlen(ret), "%s", tail);
	}
}

static int run_place(struct jobs *j, const struct disc_rank *r, uid_t uid, uint32_t root)
{
	char id[RUN_ID_SIZE];
	size_t same = 0;
	int unused = -1, found = -1;

	for (int i = 0; i < VIEW_RUNS_MAX && found < 0; i++) {
		if (!j->runs[i].used && unused < 0)
			unused = i;
		if (is_run(&j->runs[i], r, uid))
			found = i;
		same += j->runs[i].used && j->runs[i].uid == uid;
	}
	if (found < 0) {
		found = run_before(j, r, root);
		if (found >= 0 && uid != NO_UID && may_become(j, found, root, uid))
			j->runs[found].uid = uid;
	}
	if (found >= 0 || uid == NO_UID)
		return found;
	if (unused < 0 || same >= view_share(uid, VIEW_RUNS_MAX)) {
		leave_out(j, r->run_id, uid, -2, &j->dropped_runs);
		return -1;
	}
	make_id(j, r->run_id, uid, id);
	j->runs[unused] = (struct job_run){
		.used = true,
		.uid = uid,
		.v = { .source = r->source, .framework = "", .world = -1, .start_s = NAN },
	};
	text_copy(j->runs[unused].said, sizeof(j->runs[unused].said), r->run_id);
	text_copy(j->runs[unused].v.id, sizeof(j->runs[unused].v.id), id);
	return unused;
}

static int rank_place(struct jobs *j, int run, int32_t rank, int32_t local)
{
	uid_t uid = j->runs[run].uid;
	size_t same = 0;
	int unused = -1;
	struct view_rank *v;

	for (int i = 0; i < VIEW_RANKS_MAX; i++) {
		v = &j->ranks[i].v;
		if (!j->ranks[i].used && unused < 0)
			unused = i;
		if (j->ranks[i].used && v->run == (size_t)run && v->rank == rank) {
			if (local >= 0)
				v->local_rank = local;
			return i;
		}
		same += j->ranks[i].used && j->runs[v->run].uid == uid;
	}
	if (unused < 0 || same >= view_share(uid, VIEW_RANKS_MAX)) {
		leave_out(j, j->runs[run].v.id, uid, rank, &j->dropped_ranks);
		return -1;
	}
	j->ranks[unused] = (struct job_rank){ .used = true };
	v = &j->ranks[unused].v;
	*v = (struct view_rank){
		.run = (size_t)run, .rank = rank, .local_rank = local, .start_ms = j->wall_ms
	};
	for (int i = 0; i < VIEW_ROLES; i++)
		v->use[i] = (struct view_role_use){
			.cpu_user = NAN, .cpu_system = NAN, .rss = NAN, .read = NAN, .written = NAN
		};
	return unused;
}

/* The last word of its command line that is a script, else its name: "train.py". */
static void name_of(const struct disc_proc *p, char *ret, size_t size)
{
	char word[256];

	for (const char *at = p->cmdline; *at;) {
		size_t n = strcspn(at, " ");
		const char *slash;

		if (n > 3 && n < sizeof(word) && strncmp(at + n - 3, ".py", 3) == 0) {
			memcpy(word, at, n);
			word[n] = '\0';
			slash = strrchr(word, '/');
			text_safe_copy(ret, size, slash && slash[1] ? slash + 1 : word);
			return;
		}
		at += n + (at[n] == ' ');
	}
	text_safe_copy(ret, size, p->name);
}

static void describe_run(struct jobs *j, int run, const struct disc_rank *r,
			 const struct entity *root)
{
	struct view_run *v = &j->runs[run].v;
	double start = j->boot_wall_s + (double)root->start_ns / 1e9;

	j->runs[run].seen = true;
	j->runs[run].gone_ns = j->runs[run].ended_ns = 0;
	v->up = true;
	v->source = r->source;
	if (r->framework[0])
		v->framework = r->framework;
	if (r->world > 0)
		v->world = r->world;
	if (!v->name[0])
		name_of(&j->procs.v[r->root], v->name, sizeof(v->name));
	if (!(v->start_s <= start))
		v->start_s = start;
}

static void grow(double *sum, int64_t raw, int64_t *counted, enum metric_id m)
{
	double more = raw > *counted ? metric_value(m, raw - *counted) : 0;

	/* In whole units of the kernel's, so that many small additions leave no trace behind the point. */
	more += isfinite(*sum) ? *sum : 0;
	*sum = nearbyint(more / metrics[m].scale) * metrics[m].scale;
	if (raw > *counted)
		*counted = raw;
}

static void add_use(struct view_role_use *u, struct note *x, const struct world *w)
{
	const struct {
		enum metric_id metric;
		double *sum;
	} counters[NOTE_COUNTERS] = { [NOTE_USER] = { M_PROC_CPU_USER, &u->cpu_user },
				      [NOTE_SYSTEM] = { M_PROC_CPU_SYSTEM, &u->cpu_system },
				      [NOTE_READ] = { M_PROC_READ_BYTES, &u->read },
				      [NOTE_WRITTEN] = { M_PROC_WRITTEN_BYTES, &u->written } };
	double rss = world_value(w, M_PROC_RSS, x->id);
	int64_t raw;

	u->processes++;
	if (isfinite(rss))
		u->rss = isfinite(u->rss) ? u->rss + rss : rss;
	for (int i = 0; i < NOTE_COUNTERS; i++)
		if (world_raw(w, counters[i].metric, x->id, &raw))
			grow(counters[i].sum, raw, &x->counted[i], counters[i].metric);
}

/* The table of processes as discover() wants it: its places are those of the notes. */
static int take_procs(struct jobs *j, const struct notes *n, const struct world *w)
{
	j->procs.n = 0;
	if (!vec_reserve(&j->procs, n->v.n + 1))
		return -ENOMEM;
	for (size_t i = 0; i < n->v.n; i++) {
		const struct note *x = &n->v.v[i];
		const struct entity *e = entity_find(&w->entities, x->id);
		struct disc_proc *p = vec_push(&j->procs);
		uint32_t parent;

		*p = (struct disc_proc){ .parent = -1,
					 .name = e ? e->name : "",
					 .cmdline = e ? e->detail : "",
					 .env = &x->env,
					 .gpu = x->gpu,
					 .framework = x->framework,
					 .record = x->record ? x->record_id : NULL,
					 .rank_hint = x->rank_hint,
					 .identity = x->identity };
		if (e && map_get(&n->by_id, e->parent, &parent))
			p->parent = (int)parent;
	}
	return discover(j->procs.v, j->procs.n, &j->found);
}

static int take_ranks(struct jobs *j, const struct notes *n, const struct world *w)
{
	j->place.n = 0;
	if (!vec_reserve(&j->place, j->found.v.n + 1))
		return -ENOMEM;
	for (size_t i = 0; i < j->found.v.n; i++) {
		const struct disc_rank *r = &j->found.v.v[i];
		const struct note *x = &n->v.v[r->root];
		const struct entity *root = entity_find(&w->entities, x->id);
		int run = run_place(j, r, x->uid, x->id);
		int *place = vec_push(&j->place);

		*place = run < 0 ? -1 : rank_place(j, run, r->rank, r->local_rank);
		if (run >= 0 && root)
			describe_run(j, run, r, root);
		if (*place >= 0) {
			j->ranks[*place].seen = true;
			j->ranks[*place].root = x->id;
			if (x->uid != NO_UID)
				j->ranks[*place].uid = x->uid;
			j->ranks[*place].ended_ns = 0;
		}
	}
	return 0;
}

static void add_up(struct jobs *j, struct notes *n, const struct world *w)
{
	for (int i = 0; i < VIEW_RANKS_MAX; i++)
		for (int role = 0; role < VIEW_ROLES; role++) {
			j->ranks[i].v.use[role].processes = 0;
			j->ranks[i].v.use[role].rss = NAN;
		}
	for (size_t i = 0; i < j->procs.n; i++) {
		const struct disc_proc *p = &j->procs.v[i];
		int place = p->rank >= 0 ? j->place.v[p->rank] : -1;

		if (place >= 0)
			add_use(&j->ranks[place].v.use[p->role], &n->v.v[i], w);
	}
}

static void forget_run(struct jobs *j, int run, struct records *records)
{
	for (int i = 0; i < VIEW_RANKS_MAX; i++)
		if (j->ranks[i].used && j->ranks[i].v.run == (size_t)run)
			j->ranks[i].used = false;
	for (size_t i = 0; i < j->links.n; i++) {
		if (j->links.v[i].run != run)
			continue;
		if (records)
			records_forget(records, j->links.v[i].serial);
		j->links.v[i--] = j->links.v[--j->links.n];
	}
	told_forget_run(j, run);
	j->runs[run].used = false;
}

/* Of a rank that left a run which goes on, and of processes whose rank became known later. */
static void end_ranks(struct jobs *j)
{
	for (int i = 0; i < VIEW_RANKS_MAX; i++) {
		struct job_rank *r = &j->ranks[i];

		if (!r->used || r->seen)
			continue;
		if (!r->ended_ns)
			r->ended_ns = j->now_ns;
		if (j->now_ns - r->ended_ns < RUN_LINGER_S * NS_PER_S || !j->runs[r->v.run].seen)
			continue;
		r->used = false;
		for (size_t k = 0; k < j->links.n; k++)
			if (j->links.v[k].rank == i)
				j->links.v[k].rank = -1;
	}
}

static void end_runs(struct jobs *j, struct records *records)
{
	for (int i = 0; i < VIEW_RUNS_MAX; i++) {
		struct job_run *r = &j->runs[i];

		if (!r->used || r->seen)
			continue;
		r->v.up = false;
		/* The minute begins when its last steps are known. A recorder may take its time, but not any. */
		if (!r->gone_ns)
			r->gone_ns = j->now_ns;
		if (!r->ended_ns ||
		    (r->recorded && j->now_ns - r->gone_ns < RECORD_WAIT_S * NS_PER_S))
			r->ended_ns = j->now_ns;
		if (j->now_ns - r->ended_ns >= RUN_LINGER_S * NS_PER_S)
			forget_run(j, i, records);
	}
}

struct hints {
	struct notes *notes;
};

bool record_may_tell(const struct record_news *n, const struct note *x)
{
	return n->uid == 0 || (n->uid != NO_UID && n->uid == x->uid);
}

/* What a record says of processes: one is its program, others mark steps with a rank. */
static void take_hints(const struct record_news *news, void *arg)
{
	struct hints *h = arg;
	struct note *x;

	/* In another container pids are others; and of a run that ended they may be somebody else's by now. */
	if (!news->here || news->ended)
		return;
	x = note_of_pid(h->notes, news->pid);
	/* The first stays: a run whose id changes when somebody attaches to it would be another run. */
	if (x && !x->record && news->id[0] && record_may_tell(news, x)) {
		x->record = news->serial;
		text_copy(x->record_id, sizeof(x->record_id), news->id);
	}
	for (size_t i = 0; i < news->groups.n; i++) {
		x = note_of_pid(h->notes, news->groups.v[i].pid);
		if (x && news->groups.v[i].rank >= 0 && x->env.rank < 0 && record_may_tell(news, x))
			x->rank_hint = news->groups.v[i].rank;
	}
}

int jobs_tick(struct jobs *j, struct notes *n, const struct world *w, const struct frame *f,
	      int64_t boot_ns, struct records *records)
{
	int r;

	j->now_ns = f->mono_ns;
	j->wall_ms = f->wall_ns / NS_PER_MS;
	if (!j->since_ms)
		j->since_ms = j->wall_ms;
	j->boot_wall_s = (double)(f->wall_ns - boot_ns) / 1e9;
	for (int i = 0; i < VIEW_RUNS_MAX; i++)
		j->runs[i].seen = false;
	for (int i = 0; i < VIEW_RANKS_MAX; i++)
		j->ranks[i].seen = false;
	if (records)
		records_each(records, take_hints, &(struct hints){ n });
	r = take_procs(j, n, w);
	if (r == 0)
		r = take_ranks(j, n, w);
	if (r < 0)
		return r;
	add_up(j, n, w);
	end_ranks(j);
	end_runs(j, records);
	return 0;
}
