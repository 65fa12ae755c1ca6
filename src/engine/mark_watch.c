/* SPDX-License-Identifier: MIT */
#include "engine/mark_watch.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/map.h"
#include "collect/collector.h"
#include "engine/mark_folder.h"
#include "mark/ring.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum {
	LOOK_MS = 250,        /* for new rings at most this often */
	FRESH_S = 1,          /* a folder that changed so lately may change again unseen */
	STRANGER_S = 2,       /* how long a ring waits for its process to be of the job */
	GONE_S = 2,           /* and for a mark that was begun when its process ended */
	QUIET_S = 60,         /* nothing from one that nobody saw: it has ended */
	KEPT_S = 5,           /* how long a process that ended is remembered */
	TELL_S = 10,          /* what was lost is an event at most this often */
	RINGS_MAX = 256,      /* read at a time: 70 KB each */
	TICK_MARKS = 8 << 10, /* 48 bytes each, in a frame that keeps its memory */
	LAST_MARKS = 1 << 20,
};

struct member {
	uint32_t entity;
	int64_t pid, start_ns;
	int64_t gone_ns; /* 0: alive */
};

struct watched_ring {
	char file[48];
	int64_t pid, start_ns;
	struct ring_reader *reader; /* NULL: not to be read */
	uint32_t entity;            /* 0: not known yet */
	int64_t seen_ns, gone_ns;
	int64_t last_ns;  /* time of the last mark */
	int64_t heard_ns; /* when there last was one */
	uint64_t lost, told;
	int64_t told_ns;
	bool world_told;
	bool adopted; /* nobody saw its process */
};

struct moment {
	struct collect *collect;
	struct frame *frame;
	int64_t now;
	bool last;
};

struct mark_watch {
	char *folder;
	int fd;
	int64_t ns_per_tick;
	VEC(struct member) members;
	struct map by_entity;
	VEC(struct watched_ring) rings;
	size_t turn;
	int64_t looked_ns, forgot_ns;
	struct timespec changed; /* the folder, as of the last look */
	bool fresh;
};

int mark_watch_open(const char *folder, struct mark_watch **ret, struct err *e)
{
	struct mark_watch *w = calloc(1, sizeof(*w));
	long hz = sysconf(_SC_CLK_TCK);

	if (!w)
		return err_set(e, -ENOMEM, "out of memory");
	w->ns_per_tick = NS_PER_S / (hz > 0 ? hz : 100);
	w->fresh = true;
	w->fd = mark_folder_hold(folder);
	w->folder = strdup(folder);
	if (w->fd < 0 || !w->folder) {
		int error = w->fd < 0 ? w->fd : -ENOMEM;

		mark_watch_close(w);
		return err_set(e, error, "cannot read marks in '%s'", folder);
	}
	mark_folder_sweep();
	*ret = w;
	return 0;
}

void mark_watch_close(struct mark_watch *w)
{
	if (!w)
		return;
	for (size_t i = 0; i < w->rings.n; i++)
		ring_reader_close(w->rings.v[i].reader);
	vec_done(&w->rings);
	vec_done(&w->members);
	map_done(&w->by_entity);
	if (w->folder && w->fd >= 0)
		mark_folder_remove(w->folder);
	if (w->fd >= 0)
		close(w->fd);
	free(w->folder);
	free(w);
}

static void add_member(struct mark_watch *w, const struct life *l)
{
	struct member *m = vec_push(&w->members);

	if (!m)
		return;
	if (!map_put(&w->by_entity, l->id, (uint32_t)(w->members.n - 1))) {
		w->members.n--;
		return;
	}
	*m = (struct member){ .entity = l->id, .pid = l->key, .start_ns = l->start_ns };
}

static void follow(struct mark_watch *w, const struct frame *f)
{
	for (size_t i = 0; i < f->lives.n; i++) {
		const struct life *l = &f->lives.v[i];
		uint32_t at;
		bool known = l->kind == ENTITY_PROC && map_get(&w->by_entity, l->id, &at);

		if (l->kind != ENTITY_PROC)
			continue;
		if (l->change == LIFE_BORN && !known)
			add_member(w, l);
		else if (l->change == LIFE_GONE && known && !w->members.v[at].gone_ns)
			w->members.v[at].gone_ns = f->mono_ns;
	}
}

/* Those that ended are remembered for a while: their rings may be found after them. */
static void forget(struct mark_watch *w, int64_t now)
{
	size_t kept = 0;

	if (now - w->forgot_ns < NS_PER_S)
		return;
	w->forgot_ns = now;
	for (size_t i = 0; i < w->members.n; i++) {
		struct member m = w->members.v[i];

		if (m.gone_ns && now - m.gone_ns > KEPT_S * NS_PER_S) {
			map_del(&w->by_entity, m.entity);
			continue;
		}
		if (kept != i) /* the key is there: nothing is allocated */
			map_put(&w->by_entity, m.entity, (uint32_t)kept);
		w->members.v[kept++] = m;
	}
	w->members.n = kept;
}

static bool is_known(const struct mark_watch *w, const char *file)
{
	for (size_t i = 0; i < w->rings.n; i++)
		if (strcmp(w->rings.v[i].file, file) == 0)
			return true;
	return false;
}

static void add_ring(struct mark_watch *w, const char *file, int64_t now)
{
	struct watched_ring r = { .seen_ns = now };
	unsigned long long ticks;
	long pid;

	if (!mark_folder_parse(file, &pid, &ticks) || strlen(file) >= sizeof(r.file) ||
	    w->rings.n >= RINGS_MAX || is_known(w, file) || !vec_push(&w->rings))
		return;
	snprintf(r.file, sizeof(r.file), "%s", file);
	r.pid = pid;
	if (__builtin_mul_overflow(ticks, w->ns_per_tick, &r.start_ns))
		r.start_ns = -1;
	if (ring_open(&r.reader, w->fd, file) < 0)
		r.reader = NULL;
	w->rings.v[w->rings.n - 1] = r;
}

/* The folder's time tells of new files, but in steps of some milliseconds. */
static void find_rings(struct mark_watch *w, int64_t now, bool last)
{
	struct stat st;
	struct io_dir d;
	const char *name;
	int64_t wall = clock_wall_ns();

	if (!last && w->looked_ns && now - w->looked_ns < LOOK_MS * NS_PER_MS)
		return;
	w->looked_ns = now;
	if (fstat(w->fd, &st) < 0)
		return;
	if (!last && !w->fresh && st.st_mtim.tv_sec == w->changed.tv_sec &&
	    st.st_mtim.tv_nsec == w->changed.tv_nsec)
		return;
	w->changed = st.st_mtim;
	w->fresh = w->rings.n >= RINGS_MAX || wall / NS_PER_S - st.st_mtim.tv_sec <= FRESH_S;
	io_dir_begin(&d, w->fd);
	while ((name = io_dir_next(&d)))
		add_ring(w, name, now);
}

/* A number alone may have been another's before. */
static void find_owner(const struct mark_watch *w, struct watched_ring *r)
{
	for (size_t i = 0; i < w->members.n; i++) {
		const struct member *m = &w->members.v[i];

		if (m->pid != r->pid || m->start_ns != r->start_ns)
			continue;
		r->entity = m->entity;
		r->gone_ns = m->gone_ns;
	}
}

static bool has_ended(const struct watched_ring *r)
{
	return kill((pid_t)r->pid, 0) < 0 && errno == ESRCH;
}

/* The folder is this run's alone, so who wrote a ring there was of the job. One that lived between two looks at the
 * processes was never told of: what it marked is not lost for that. Nor is what one marks that numbers itself otherwise (in a
 * container of its own): it may well be alive, and has ended only when nothing more is heard of it. */
static void adopt(struct watched_ring *r, const struct moment *at)
{
	struct life life = { .change = LIFE_BORN,
			     .id = collect_id(at->collect),
			     .parent = ID_JOB,
			     .kind = ENTITY_PROC,
			     .key = r->pid,
			     .start_ns = r->start_ns > 0 ? r->start_ns : 0 };

	frame_life(at->frame, &life, "unseen", "was not among the processes that were seen");
	r->entity = life.id;
	r->adopted = true;
	r->heard_ns = at->now;
}

static void let_go(struct watched_ring *r, const struct moment *at)
{
	struct life life = {
		.change = LIFE_GONE, .id = r->entity, .kind = ENTITY_PROC, .key = r->pid
	};

	frame_life(at->frame, &life, "unseen", NULL);
	r->gone_ns = at->now;
}

static bool said_of(const struct mark *m, struct frame_mark *ret)
{
	static const enum mark_type types[MARK_KINDS] = {
		[MARK_STEP] = SAID_STEP,
		[MARK_SCALAR] = SAID_SCALAR,
		[MARK_PHASE_BEGIN] = SAID_PHASE_BEGIN,
		[MARK_PHASE_END] = SAID_PHASE_END,
		[MARK_DATA_WAIT] = SAID_DATA_WAIT,
		[MARK_MICRO_STEP] = SAID_MICRO_STEP,
		[MARK_EPOCH] = SAID_EPOCH,
		[MARK_SETTING] = SAID_SETTING,
		[MARK_SOURCE] = SAID_SOURCE,
	};

	if ((unsigned)m->kind >= MARK_KINDS || m->kind == MARK_NONE)
		return false;
	ret->type = types[m->kind];
	ret->number = m->number <= INT64_MAX ? m->number : INT64_MAX;
	ret->value = m->kind == MARK_DATA_WAIT ? (double)m->number / 1e9 : m->value;
	return true;
}

/* Threads of a process mark side by side: in the order of the ring, times never go back. Nor are they
 * later than now, whatever the program says. */
static int64_t time_of(struct watched_ring *r, int64_t t_ns, int64_t now)
{
	if (t_ns > now)
		t_ns = now;
	if (t_ns < r->last_ns)
		t_ns = r->last_ns;
	r->last_ns = t_ns;
	return t_ns;
}

/* Once a process: how many ranks there are, as its launcher told it. Records of several machines are held
 * against each other by it. */
static void tell_world(struct watched_ring *r, struct frame *f, const struct frame_mark *like)
{
	struct frame_mark said = *like;

	r->world_told = true;
	if (ring_head(r->reader)->world <= 0)
		return;
	said.type = SAID_SETTING;
	said.value = ring_head(r->reader)->world;
	frame_mark(f, &said, "world_size");
}

/* The number of marks that were taken. */
static size_t drain(struct watched_ring *r, struct frame *f, size_t most, int64_t now)
{
	struct mark m;
	size_t n = 0;

	while (n < most) {
		uint64_t before = r->lost;
		int got = ring_next(r->reader, &m, &r->lost);
		struct frame_mark said = { .entity = r->entity,
					   .rank = ring_head(r->reader)->rank };

		if (got <= 0 && r->lost == before)
			break;
		said.t_ns = time_of(r, got > 0 ? m.t_ns : r->last_ns, now);
		if (r->lost != before) {
			said.type = SAID_LOST;
			said.number = r->lost - before;
			frame_mark(f, &said, NULL);
			n++;
		}
		if (got <= 0)
			break;
		if (!r->world_told)
			tell_world(r, f, &said);
		if (said_of(&m, &said))
			frame_mark(f, &said, *m.name ? m.name : NULL);
		n++;
	}
	return n;
}

static void tell_lost(struct watched_ring *r, struct frame *f, bool last)
{
	uint64_t lost = r->lost + ring_head(r->reader)->unnamed;

	if (lost == r->told || (!last && r->told_ns && f->mono_ns - r->told_ns < TELL_S * NS_PER_S))
		return;
	r->told = lost;
	r->told_ns = f->mono_ns;
	frame_event(f, EVENT_NOTE, r->entity, (double)lost,
		    "%llu marks of this process were lost so far: they came faster than they could "
		    "be read, or under too many names",
		    (unsigned long long)lost);
}

static void drop_file(const struct mark_watch *w, struct watched_ring *r)
{
	(void)unlinkat(w->fd, r->file, 0);
	r->file[0] = '\0';
}

/* Whether it is known whose ring it is. */
static bool has_owner(struct mark_watch *w, struct watched_ring *r, const struct moment *at)
{
	if (!r->adopted && (!r->entity || !r->gone_ns))
		find_owner(w, r);
	if (r->entity)
		return true;
	if (!at->last && at->now - r->seen_ns < STRANGER_S * NS_PER_S)
		return false;
	if (has_ended(r)) {
		adopt(r, at);
		return true;
	}
	ring_reader_close(r->reader);
	r->reader = NULL;
	return false;
}

/* The number of marks that were taken. */
static size_t serve(struct mark_watch *w, struct watched_ring *r, const struct moment *at,
		    size_t most)
{
	struct frame *f = at->frame;
	size_t n;

	if (!r->reader) {
		if (has_ended(r))
			drop_file(w, r);
		return 0;
	}
	if (!has_owner(w, r, at))
		return 0;
	n = drain(r, f, most, at->now);
	r->heard_ns = n ? at->now : r->heard_ns;
	if (r->adopted && !r->gone_ns && (at->last || at->now - r->heard_ns > QUIET_S * NS_PER_S))
		let_go(r, at);
	tell_lost(r, f, at->last || r->gone_ns);
	/* Nothing will come any more: its file goes, and with it its place. */
	if (!n && r->gone_ns && at->now - r->gone_ns > GONE_S * NS_PER_S) {
		ring_reader_close(r->reader);
		r->reader = NULL;
		drop_file(w, r);
	}
	return n;
}

static void drop_ended(struct mark_watch *w)
{
	size_t kept = 0;

	for (size_t i = 0; i < w->rings.n; i++)
		if (w->rings.v[i].file[0])
			w->rings.v[kept++] = w->rings.v[i];
	w->rings.n = kept;
}

void mark_watch_tick(struct mark_watch *w, struct collect *c, struct frame *f, bool last)
{
	size_t left = last ? LAST_MARKS : TICK_MARKS;
	int64_t now = clock_mono_ns();
	struct moment at = { c, f, now, last };

	follow(w, f);
	find_rings(w, now, last);
	/* Each time another is the first, should there be more than fits. */
	w->turn++;
	for (size_t i = 0; i < w->rings.n && left; i++) {
		struct watched_ring *r = &w->rings.v[(w->turn + i) % w->rings.n];
		size_t most = left < RING_SLOTS ? left : RING_SLOTS;
		size_t n = serve(w, r, &at, most);

		left -= n < left ? n : left;
	}
	drop_ended(w);
	forget(w, now);
}
