/* SPDX-License-Identifier: MIT
 *
 * The state of the time ledger that a row of samples belongs to: by its phase and what the thread was
 * doing, or by the latter alone.
 */
#include "explain/activity_part.h"

#include "explain/ledger/topics.h"
#include "explain/scene.h"

#include <math.h>

/* Of one poll() the kind of what it polls, where that is one. */
static enum wait_kind kind_of(const struct act_row *row)
{
	if (row->kind == WAIT_POLL && row->on != WAIT_UNKNOWN && row->on != WAIT_OTHER &&
	    row->on != WAIT_RUNNING && row->on != WAIT_RUNNABLE)
		return row->on;
	return row->kind;
}

/* Who loads and waits for a page maps files: that is reading. */
static bool is_loading(enum phase p)
{
	return p == PHASE_LOAD || p == PHASE_LOAD_GUESS || p == PHASE_WORKER;
}

/* What is so whatever the frames say. */
static bool by_kind_first(enum wait_kind kind, enum phase p, enum time_state *ret)
{
	switch (kind) {
	case WAIT_PAGE_FAULT:
		*ret = is_loading(p) ? TIME_DATA_LOAD : TIME_MEMORY_STALL;
		return true;
	case WAIT_GIL:
		*ret = TIME_LOCK_WAIT;
		return true;
	default:
		return false;
	}
}

static bool peer_is_worker(const struct scene *s, uint32_t peer)
{
	const struct activity *a = &s->activity;
	uint32_t at;

	/* The first thread speaks for its process. */
	return peer && map_get(&a->first, peer, &at) && a->threads.v[at].role == ROLE_LOADER_WORKER;
}

/* A loop of events (asyncio) that waits for nothing but its own pool of threads or processes looks as one that
 * waits for the world: that the pool works meanwhile tells them apart. */
static const double pool_busy_least = 0.7;

static bool of_pool(const struct scene *s, const struct act_thread *x, const struct act_thread *t)
{
	const struct entity *e;

	if (!x->first)
		return x->process == t->process;
	e = entity_find(window_entities(s->whole), x->process);
	return e && e->parent == t->process;
}

static bool pool_works(const struct scene *s, const struct act_thread *t)
{
	const struct activity *a = &s->activity;

	for (size_t i = 0; i < a->threads.n; i++) {
		const struct act_thread *x = &a->threads.v[i];

		if (x->role == ROLE_LOADER_WORKER && of_pool(s, x, t) && isfinite(x->run) &&
		    x->run > pool_busy_least * x->alive)
			return true;
	}
	return false;
}

static bool in_event_loop(const struct scene *s, const struct act_row *row)
{
	const struct place *p = stack_book_find_place(s->activity.book, row->leaf);

	return p && p->kind == PLACE_PYTHON && phase_function("*.select", p->function, true) &&
	       phase_file("selectors.py", p->file);
}

/* Without a phase. */
static enum time_state by_kind(const struct scene *s, const struct act_thread *t,
			       const struct act_row *row, enum wait_kind kind, bool python)
{
	switch (kind) {
	case WAIT_RUNNING:
	case WAIT_RUNNABLE:
		return python ? TIME_PYTHON : TIME_OTHER;
	case WAIT_LOCK:
		return TIME_LOCK_WAIT;
	case WAIT_DISK:
	case WAIT_FILE:
		return TIME_IO;
	case WAIT_GPU_DRIVER:
		return TIME_GPU_WAIT;
	case WAIT_SLEEP:
	case WAIT_CHILD:
	case WAIT_TERMINAL:
	case WAIT_STOPPED:
		return TIME_IDLE;
	case WAIT_SOCKET:
	case WAIT_POLL:
		/* requests, a loop of events */
		return peer_is_worker(s, row->peer) ||
			       (t->role == ROLE_MAIN && in_event_loop(s, row) && pool_works(s, t))
			   ? TIME_DATA_WAIT
			   : TIME_IDLE;
	default:
		return peer_is_worker(s, row->peer) ? TIME_DATA_WAIT : TIME_OTHER;
	}
}

/* Nothing, or not enough, was proven of its stack: does the kind of waiting tell by itself? */
static bool kind_tells(enum wait_kind kind)
{
	return kind == WAIT_GIL || kind == WAIT_PAGE_FAULT || kind == WAIT_GPU_DRIVER ||
	       kind == WAIT_CHILD || kind == WAIT_STOPPED;
}

/* Waits that a phase of the CPU side does not explain: the driver is the device's. */
static bool for_the_device(enum phase p, enum wait_kind kind)
{
	return kind == WAIT_GPU_DRIVER && p != PHASE_TRANSFER && p != PHASE_PIN &&
	       p != PHASE_COMM && p != PHASE_CHECKPOINT;
}

/* A lock, in native code of a pool: it waits for its own helpers, and these compute. */
static bool waits_for_pool(enum phase p, enum wait_kind kind)
{
	return p == PHASE_POOL && kind == WAIT_LOCK;
}

static bool is_theirs(const struct act_thread *t)
{
	return t->role != ROLE_MAIN && (!t->first || t->role == ROLE_LOADER_WORKER);
}

void row_classify(const struct scene *s, const struct node_reader *r, const struct act_thread *t,
		  struct act_row *row)
{
	const struct node_facts *f = node_of(r, row->node);
	bool partial = row->flags & STACK_PARTIAL, python = f->python || row->flags & STACK_PYTHON;
	enum phase p = partial ? f->phase : f->leaf_phase;
	enum wait_kind kind = kind_of(row);
	enum time_state state = TIME_OTHER;

	row->on_cpu = kind == WAIT_RUNNING || kind == WAIT_RUNNABLE;
	row->place = f->place;
	row->leaf = partial ? 0 : f->leaf;
	row->native = f->native;
	row->sure = f->sure;
	row->pooled = f->pooled;
	row->importing = f->importing;
	row->trains = f->trains;
	row->teaches = f->teaches;
	row->phase = (uint8_t)p;
	row->topics = partial ? f->topics : f->leaf_topics;
	row->text_topics = f->text_topics;
	/* A tensor of somebody's own kind waits in frames of its own below the line that asks. */
	row->topics |= f->own_topics & (TOPIC_BIT(TOPIC_READ_BACK) | TOPIC_BIT(TOPIC_COPY_IN));
	/* Writers have frames of their own below the line that writes: json.dump(history, file) */
	if (p == PHASE_LOG || p == PHASE_CHECKPOINT)
		row->topics |= f->own_topics & (TOPIC_BIT(TOPIC_LOG) | TOPIC_BIT(TOPIC_CHECKPOINT));
	row->topics |= row->flags & STACK_GC ? TOPIC_BIT(TOPIC_GC) : 0;
	row->unknown = kind == WAIT_UNKNOWN;
	row->state = TIME_OTHER;
	if (by_kind_first(kind, p, &state)) {
		row->matched = true;
	} else if (for_the_device(p, kind)) {
		state = TIME_GPU_WAIT;
		row->matched = p != PHASE_NONE;
	} else if (row->node && phase_state(p, kind, is_theirs(t), &state)) {
		row->matched = true;
		/* a stack that is known tells also when what it waits for is not */
		row->unknown = row->unknown && p != PHASE_LOADER_WAIT && p != PHASE_DEVICE_SYNC;
	} else if (waits_for_pool(p, kind)) {
		state = python ? TIME_PYTHON : TIME_IDLE;
	} else if ((partial || row->flags & STACK_UNPROVEN) && !kind_tells(kind)) {
		row->unknown = true;
	} else {
		state = by_kind(s, t, row, kind, python);
	}
	if (!row->unknown)
		row->state = state;
}

bool row_waits_for_child(const struct node_reader *r, const struct act_row *row)
{
	const struct node_facts *f = node_of(r, row->node);

	if (row->kind == WAIT_RUNNING || row->kind == WAIT_RUNNABLE)
		return false;
	return row->kind == WAIT_CHILD || f->phase == PHASE_LAUNCH;
}
