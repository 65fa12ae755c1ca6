/* SPDX-License-Identifier: MIT */
#include "record/join_part.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/num.h"
#include "base/text.h"
#include "model/node.h"
#include "record/read.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* Nine years of uptime, and runs nobody made: all sums of times stay in range. */
#define LONGEST_NS (400ll * 86400 * NS_PER_S)
enum { RANKS_MOST = 1 << 16, LISTED_MOST = 8 };

void join_note(struct join *j, const char *fmt, ...)
{
	struct join_note *n = vec_push(&j->notes);
	va_list ap;

	if (!n)
		return;
	va_start(ap, fmt);
	vsnprintf(n->text, sizeof(n->text), fmt, ap);
	va_end(ap);
}

static int by_rank(const void *a, const void *b)
{
	int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

	return x < y ? -1 : x > y;
}

/* Which ranks made steps in it. */
static int find_ranks(struct join_part *p)
{
	struct window w = record_window(p->record, 0, 0);
	size_t n = 0;
	const struct window_step *s = w.ops->steps(w.src, &n);
	struct map seen = { 0 };
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++) {
		int32_t *slot;
		uint32_t at;

		if (s[i].rank < 0 || p->ranks.n >= RANKS_MOST ||
		    map_get(&seen, (uint64_t)s[i].rank, &at))
			continue;
		slot = vec_push(&p->ranks);
		if (!slot || !map_put(&seen, (uint64_t)s[i].rank, 1))
			r = -ENOMEM;
		else
			*slot = s[i].rank;
	}
	map_done(&seen);
	if (p->ranks.n)
		qsort(p->ranks.v, p->ranks.n, sizeof(*p->ranks.v), by_rank);
	return r;
}

/* As many ranks as the launcher of a process said; the first that said it. */
static int32_t find_world(const struct join_part *p)
{
	struct window w = record_window(p->record, 0, 0);
	size_t n = 0;
	const struct window_scalar *s = w.ops->settings(w.src, &n);

	for (size_t i = 0; i < n; i++)
		if (s[i].name && strcmp(s[i].name, "world_size") == 0 && s[i].value >= 1 &&
		    s[i].value < RANKS_MOST)
			return (int32_t)s[i].value;
	return 0;
}

static bool is_sane(const struct run_info *run)
{
	return run->started_wall_ns >= 0 && run->started_wall_ns < INT64_MAX / 2 &&
	       join_time_sane(run->started_mono_ns) && join_time_sane(run->ended_mono_ns) &&
	       run->ended_mono_ns >= run->started_mono_ns &&
	       run->ended_mono_ns - run->started_mono_ns < LONGEST_NS;
}

static int add_part(struct join *j, struct record *r, const char *label, struct err *e)
{
	struct join_part *p;

	if (!is_sane(record_run(r)))
		return err_set(e, -EBADMSG, "the times in '%s' make no sense", label);
	if (node_several(&r->entities)) {
		err_set(e, -EINVAL, "'%s' is a merged run itself", label);
		err_hint(e, "give the records that it was made of");
		return e->code;
	}
	for (size_t i = 0; i < j->parts.n; i++)
		if (strcmp(record_run(j->parts.v[i].record)->id, record_run(r)->id) == 0)
			return err_set(e, -EEXIST, "'%s' and '%s' are the same run",
				       j->parts.v[i].label, label);
	p = vec_push(&j->parts);
	if (!p)
		return err_set(e, -ENOMEM, "out of memory");
	p->record = r;
	p->label = label;
	p->values = calloc(METRICS, sizeof(*p->values));
	if (!p->values || find_ranks(p) < 0)
		return err_set(e, -ENOMEM, "out of memory");
	p->world = find_world(p);
	return 0;
}

static int32_t lowest(const struct join_part *p)
{
	return p->ranks.n ? p->ranks.v[0] : INT32_MAX;
}

/* The lowest rank first; its machine is the one the others are put beside. */
static int by_lowest(const void *a, const void *b)
{
	const struct join_part *x = a, *y = b;
	int64_t s, t;

	if (lowest(x) != lowest(y))
		return lowest(x) < lowest(y) ? -1 : 1;
	s = record_run(x->record)->started_wall_ns;
	t = record_run(y->record)->started_wall_ns;
	return s < t ? -1 : s > t;
}

static int find_clock(struct join *j, const struct join_part *p, size_t *ret)
{
	const char *boot = p->record->recorder.boot_id;
	const struct run_info *run = record_run(p->record);
	struct join_clock *c;
	int64_t apart;

	for (size_t i = 0; i < j->clocks.n; i++)
		if (boot[0] && strcmp(j->clocks.v[i].boot_id, boot) == 0) {
			*ret = i;
			return 0;
		}
	c = vec_push(&j->clocks);
	if (!c)
		return -ENOMEM;
	text_copy(c->boot_id, sizeof(c->boot_id), boot);
	apart = run->started_wall_ns - j->run.started_wall_ns;
	/* A clock that was never set: as if both had begun together, until their steps say more. */
	c->rel_ns = (join_time_sane(apart) ? apart : 0) - run->started_mono_ns;
	*ret = j->clocks.n - 1;
	return 0;
}

/* Containers of one kernel are machines of their own: their processes have numbers of their own. */
static int find_machine(struct join *j, size_t part)
{
	struct join_part *p = &j->parts.v[part];
	const struct run_info *run = record_run(p->record);
	int64_t space = p->record->recorder.pid_space;
	struct join_machine *m;
	size_t clock;
	int r = find_clock(j, p, &clock);

	if (r < 0)
		return r;
	for (size_t i = 0; i < j->machines.n; i++) {
		m = &j->machines.v[i];
		if (m->clock == clock && m->pid_space == space &&
		    strcmp(m->name, run->machine.hostname) == 0) {
			p->machine = i;
			return 0;
		}
	}
	m = vec_push(&j->machines);
	if (!m)
		return -ENOMEM;
	text_copy(m->name, sizeof(m->name), run->machine.hostname);
	m->pid_space = space;
	m->clock = clock;
	m->part = part;
	m->cpus = run->machine.cpus;
	p->machine = j->machines.n - 1;
	m->same = join_same_host(j, p->machine);
	return 0;
}

/* Two machines without a name, or of the same, must be told apart. */
static void name_machines(struct join *j)
{
	for (size_t i = 0; i < j->machines.n; i++) {
		struct join_machine *m = &j->machines.v[i];
		bool taken = !m->name[0];
		char name[48];

		for (size_t k = 0; k < i && !taken; k++)
			taken = strcmp(j->machines.v[k].name, m->name) == 0;
		if (!taken)
			continue;
		text_safe_copy(name, sizeof(name), m->name[0] ? m->name : "machine");
		snprintf(m->name, sizeof(m->name), "%.40s#%u", name, (unsigned)i + 1);
	}
}

static int conflict(struct join *j, bool force, struct err *e, const char *what, const char *hint)
{
	if (force) {
		join_note(j, "%s", what);
		return 0;
	}
	err_set(e, -EINVAL, "%s", what);
	err_hint(e, "%s; --force merges them all the same", hint);
	return e->code;
}

static int check_ranks(struct join *j, bool force, struct err *e)
{
	struct map whose = { 0 };
	char what[400];
	int r = 0;

	for (size_t i = 0; i < j->parts.n && r == 0; i++) {
		const struct join_part *p = &j->parts.v[i];

		for (size_t k = 0; k < p->ranks.n && r == 0; k++) {
			uint32_t other;

			if (map_get(&whose, (uint64_t)p->ranks.v[k], &other)) {
				snprintf(what, sizeof(what),
					 "rank %d is in '%.150s' and in '%.150s'", p->ranks.v[k],
					 j->parts.v[other].label, p->label);
				r = conflict(j, force, e, what,
					     "records of one run have each rank once");
				break;
			}
			if (!map_put(&whose, (uint64_t)p->ranks.v[k], (uint32_t)i))
				r = err_set(e, -ENOMEM, "out of memory");
			j->ranks++;
		}
	}
	map_done(&whose);
	return r;
}

/* Ranks that no record has, up to the highest there is. */
static void note_missing(struct join *j)
{
	char list[120] = "";
	size_t at = 0, missing = 0;
	int32_t high = -1;

	for (size_t i = 0; i < j->parts.n; i++) {
		const struct join_part *p = &j->parts.v[i];

		if (!p->ranks.n)
			join_note(j, "nobody in '%.150s' made steps and said its rank", p->label);
		else if (p->ranks.v[p->ranks.n - 1] > high)
			high = p->ranks.v[p->ranks.n - 1];
		high = p->world - 1 > high ? p->world - 1 : high;
	}
	if (high >= RANKS_MOST || (size_t)high + 1 == j->ranks)
		return;
	for (int32_t rank = 0; rank <= high; rank++) {
		bool there = false;

		for (size_t i = 0; i < j->parts.n && !there; i++)
			there = j->parts.v[i].ranks.n &&
				bsearch(&rank, j->parts.v[i].ranks.v, j->parts.v[i].ranks.n,
					sizeof(rank), by_rank);
		if (there)
			continue;
		if (missing++ < LISTED_MOST && at < sizeof(list))
			at += (size_t)snprintf(list + at, sizeof(list) - at, "%s%d", at ? ", " : "",
					       rank);
	}
	if (missing)
		join_note(j, "of ranks 0 to %d these are in none of the records: %s%s", high, list,
			  missing > LISTED_MOST ? ", ..." : "");
}

/* Parts of one run are there at the same time. */
static int check_overlap(struct join *j, bool force, struct err *e)
{
	const struct join_part *p = &j->parts.v[0];
	int64_t begin = join_time(p, record_run(p->record)->started_mono_ns);
	int64_t end = join_time(p, record_run(p->record)->ended_mono_ns);
	char what[400], apart[32];
	int r = 0;

	if (j->run.ended_mono_ns - j->run.started_mono_ns > LONGEST_NS)
		return err_set(e, -EINVAL, "the records are more than a year apart");
	for (size_t i = 1; i < j->parts.n && r == 0; i++) {
		const struct join_part *q = &j->parts.v[i];
		int64_t b = join_time(q, record_run(q->record)->started_mono_ns);
		int64_t d = join_time(q, record_run(q->record)->ended_mono_ns);
		int64_t gap = b > end ? b - end : begin > d ? begin - d : 0;

		if (!gap)
			continue;
		snprintf(what, sizeof(what),
			 "'%.150s' and '%.150s' are not of the same time: %s apart", p->label,
			 q->label, num_seconds((double)gap / 1e9, apart, sizeof(apart)));
		r = conflict(j, force, e, what, "merge records of one run");
	}
	return r;
}

/* Words behind the program's name may say which rank it is. */
static bool is_same_program(const struct run_info *a, const struct run_info *b)
{
	for (size_t i = 0; i < 2; i++) {
		const char *x = a->argv ? a->argv[i] : NULL, *y = b->argv ? b->argv[i] : NULL;

		if (!x || !y)
			return x == y;
		if (strcmp(x, y) != 0)
			return false;
	}
	return true;
}

static void note_programs(struct join *j)
{
	const struct run_info *first = record_run(j->parts.v[0].record);

	for (size_t i = 0; i < j->parts.n; i++) {
		const struct run_info *run = record_run(j->parts.v[i].record);

		if (run->state == RUN_GOING)
			join_note(j, "'%.150s' is still going: what it did so far is merged",
				  j->parts.v[i].label);
		if (j->parts.v[i].world && j->parts.v[0].world &&
		    j->parts.v[i].world != j->parts.v[0].world)
			join_note(j,
				  "'%.100s' is of %d ranks, '%.100s' of %d: these may be two runs",
				  j->parts.v[0].label, j->parts.v[0].world, j->parts.v[i].label,
				  j->parts.v[i].world);
		if (!is_same_program(run, first))
			join_note(j, "'%.100s' and '%.100s' are of different programs",
				  j->parts.v[0].label, j->parts.v[i].label);
	}
}

static void say_clocks(struct join *j)
{
	char text[JOIN_NOTE_BYTES];

	for (size_t i = 1; i < j->machines.n; i++)
		join_note(j, "%s", join_clock_text(j, i, text, sizeof(text)));
	for (size_t i = 1; i < j->machines.n; i++)
		if (j->machines.v[i].same != i)
			join_note(j, "%.65s is on the host of %.65s: in sums it is counted once",
				  j->machines.v[i].name, j->machines.v[j->machines.v[i].same].name);
}

/* How it ended: badly, if any part did. */
static void take_end(struct run_info *all, const struct run_info *run, bool first)
{
	bool worse = run->has_exit && (run->exit_code != 0 || run->exit_signal != 0) &&
		     all->has_exit && all->exit_code == 0 && all->exit_signal == 0;

	if (first || worse) {
		all->has_exit = run->has_exit;
		all->exit_code = run->exit_code;
		all->exit_signal = run->exit_signal;
	}
	if (run->state == RUN_INTERRUPTED || all->state == RUN_INTERRUPTED)
		all->state = RUN_INTERRUPTED;
	else if (run->state != RUN_ENDED)
		all->state = RUN_DETACHED;
	if (run->rusage_cpu_ns < 0 || all->rusage_cpu_ns < 0 ||
	    run->rusage_cpu_ns > JOIN_TIME_MOST - all->rusage_cpu_ns)
		all->rusage_cpu_ns = -1;
	else
		all->rusage_cpu_ns += run->rusage_cpu_ns;
	if (run->rusage_maxrss_bytes > all->rusage_maxrss_bytes)
		all->rusage_maxrss_bytes = run->rusage_maxrss_bytes;
	all->level = run->level < all->level ? run->level : all->level;
	all->attached |= run->attached;
}

static void take_machines(struct join *j)
{
	struct machine *all = &j->run.machine;
	char name[sizeof(all->hostname)];

	*all = record_run(j->parts.v[0].record)->machine;
	all->cpus = 0;
	all->memory_bytes = 0;
	for (size_t i = 0; i < j->machines.n; i++) {
		const struct machine *m =
		    &record_run(j->parts.v[j->machines.v[i].part].record)->machine;

		if (j->machines.v[i].same != i)
			continue;
		if (m->cpus > 0 && m->cpus < 1 << 20)
			all->cpus += m->cpus;
		if (m->memory_bytes > 0 && m->memory_bytes < INT64_MAX / 8 / JOIN_RECORDS_MOST)
			all->memory_bytes += m->memory_bytes;
		if (strcmp(m->kernel, all->kernel) != 0)
			all->kernel[0] = '\0';
		if (strcmp(m->cpu_model, all->cpu_model) != 0)
			all->cpu_model[0] = '\0';
	}
	if (j->machines.n > 1) {
		text_copy(name, sizeof(name) - 16, j->machines.v[0].name);
		snprintf(all->hostname, sizeof(all->hostname), "%.48s and %zu more", name,
			 j->machines.n - 1);
	}
}

static int describe(struct join *j)
{
	const struct run_info *first = record_run(j->parts.v[0].record);
	struct run_info run;
	int r = run_info_copy(&run, first);

	if (r < 0)
		return r;
	run.started_wall_ns = j->run.started_wall_ns;
	run.started_mono_ns = j->run.started_mono_ns;
	run.ended_mono_ns = j->run.ended_mono_ns;
	run.state = RUN_ENDED;
	run.rusage_cpu_ns = 0;
	j->run = run;
	for (size_t i = 0; i < j->parts.n; i++)
		take_end(&j->run, record_run(j->parts.v[i].record), i == 0);
	take_machines(j);
	return 0;
}

int join_open(struct join *j, struct record *const *records, const char *const *labels, size_t n,
	      bool force, struct err *e)
{
	int r = 0;

	*j = (struct join){ 0 };
	if (n < 2 || n > JOIN_RECORDS_MOST)
		return err_set(e, -EINVAL, "from 2 to %d records can be merged", JOIN_RECORDS_MOST);
	for (size_t i = 0; i < n && r == 0; i++)
		r = add_part(j, records[i], labels[i], e);
	if (r < 0)
		return r;
	qsort(j->parts.v, j->parts.n, sizeof(*j->parts.v), by_lowest);
	j->run.started_wall_ns = record_run(j->parts.v[0].record)->started_wall_ns;
	r = check_ranks(j, force, e);
	for (size_t i = 0; i < n && r == 0; i++)
		r = find_machine(j, i);
	if (r == 0)
		r = join_clocks(j);
	if (r < 0)
		return err_set(e, r, "out of memory");
	name_machines(j);
	join_shifts(j);
	r = check_overlap(j, force, e);
	if (r == 0 && describe(j) < 0)
		r = err_set(e, -ENOMEM, "out of memory");
	note_missing(j);
	note_programs(j);
	say_clocks(j);
	return r;
}

void join_done(struct join *j)
{
	for (size_t i = 0; i < j->parts.n; i++) {
		vec_done(&j->parts.v[i].ranks);
		map_done(&j->parts.v[i].ids);
		free(j->parts.v[i].values);
	}
	vec_done(&j->parts);
	vec_done(&j->machines);
	vec_done(&j->clocks);
	vec_done(&j->notes);
	run_info_done(&j->run);
}

const char *join_ranks_text(const struct join_part *p, char *buf, size_t size)
{
	size_t at = 0;

	buf[0] = '\0';
	for (size_t i = 0, k; i < p->ranks.n && at + 32 < size; i = k + 1) {
		for (k = i; k + 1 < p->ranks.n && p->ranks.v[k + 1] == p->ranks.v[k] + 1; k++)
			;
		at += (size_t)snprintf(buf + at, size - at, "%s%d", at ? ", " : "", p->ranks.v[i]);
		if (k > i)
			at += (size_t)snprintf(buf + at, size - at, "%s%d", k > i + 1 ? "-" : ", ",
					       p->ranks.v[k]);
	}
	return buf;
}
