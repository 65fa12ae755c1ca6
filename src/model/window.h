/* SPDX-License-Identifier: MIT
 *
 * A stretch of a run, as all that rules and views may see. Two things implement it: the reader of a
 * run file (record/reader) and the live history in memory (model/history), so a rule says the same
 * live and later. It is lazy: nothing is loaded until asked for, and a day's record is never loaded
 * whole - long ranges are answered from the roll-ups.
 *
 * Times are nanoseconds of the run's monotonic clock.
 */
#ifndef SPOTTER_MODEL_WINDOW_H
#define SPOTTER_MODEL_WINDOW_H

#include "model/entity.h"
#include "model/run.h"

#include <errno.h>

/* What one series did in the window, in the metric's unit. A value holds from its sample to the
 * next one (or to the end of its entity).
 *   counter: delta = growth in the window, resets allowed for. A counter of a process, thread or
 *            job that was born in the window grows from 0.
 *   gauge:   mean weighted by time; min, max. */
struct series_stat {
	uint64_t n; /* samples in the window; 0 with a value held from before it */
	double first, last, min, max, mean, delta;
	int64_t from_ns, to_ns; /* the part of the window in which it had a value */
};

/* A sample, or a roll-up, which is a point at its last moment: the mean of a gauge since from_ns, a
 * counter's value at the end. */
struct point {
	int64_t t_ns;
	double value, min, max; /* min = max = value for raw samples */
	int64_t from_ns;        /* samples: t_ns */
	double last;            /* what holds from then on; samples: value */
};

struct series_key {
	enum metric_id metric;
	uint32_t entity;
};

struct window_event {
	int64_t t_ns;
	enum event_kind kind;
	uint32_t entity;
	double value;
	const char *text;
};

/* One step of one rank, with what was said during it. */
struct window_step {
	int32_t rank;    /* -1: not known */
	uint32_t entity; /* process */
	uint64_t number;
	int64_t begin_ns, end_ns; /* begin: end of the one before, or of what came between; begin =
				   * end: not known when it began */
	double loss;              /* NAN none */
	double data_wait;         /* seconds; NAN not known */
	uint32_t micro;           /* batches in it, 0 not known */
};

struct window_phase {
	const char *name; /* foreign text */
	uint32_t entity;
	int64_t begin_ns, end_ns; /* end 0: still going on */
};

struct window_scalar {
	const char *name; /* foreign text */
	uint32_t entity;
	int32_t rank;
	int64_t t_ns;
	uint64_t step; /* number of the last step before it, 0 before the first */
	double value;
};

struct window_gap {
	enum metric_id metric;
	uint32_t entity;
	enum gap_why why;
	int64_t from_ns, to_ns; /* to 0: still open */
};

/* False stops the walk. */
typedef bool (*window_point_fn)(const struct point *p, void *arg);
typedef bool (*window_points_fn)(size_t key, const struct point *p, void *arg);
typedef bool (*window_slice_fn)(const struct stack_slice *s, void *arg);

struct window_ops {
	/* 0, or -ENODATA when the series has no value in the window, or -errno (unreadable). */
	int (*stat)(void *src, enum metric_id m, uint32_t entity, int64_t from, int64_t to,
		    struct series_stat *ret);
	/* Points in order of time. With step_ns > 0 the source may answer from roll-ups of at most
	 * that step; with 0 raw samples where they are still kept. */
	int (*each)(void *src, enum metric_id m, uint32_t entity, int64_t from, int64_t to,
		    int64_t step_ns, window_point_fn fn, void *arg);
	/* The same for many series: what is packed together is unpacked once. The points of a key in
	 * order of time; keys in any order. NULL: window_each_of() asks for one after another. */
	int (*each_of)(void *src, const struct series_key *keys, size_t n, int64_t from, int64_t to,
		       int64_t step_ns, window_points_fn fn, void *arg);
	const struct entity_table *(*entities)(void *src);
	const struct run_info *(*run)(void *src);
	/* Borrowed arrays, in order of time. */
	const struct window_event *(*events)(void *src, size_t *ret_n);
	const struct window_gap *(*gaps)(void *src, size_t *ret_n);
	/* Slices of stacks that have a part in the range, in order of time; -ENODATA when there is
	 * none. Old ones may be a minute long. Both may be NULL: a source without stacks. */
	int (*stacks)(void *src, int64_t from, int64_t to, window_slice_fn fn, void *arg);
	const struct stack_book *(*book)(void *src);
	/* What the training said, in order of time; each may be NULL, or give none: borrowed arrays. */
	const struct window_step *(*steps)(void *src, size_t *ret_n);
	const struct window_phase *(*phases)(void *src, size_t *ret_n);
	const struct window_scalar *(*scalars)(void *src, size_t *ret_n);
	/* What the program set: "dataloader.num_workers" 4. */
	const struct window_scalar *(*settings)(void *src, size_t *ret_n);
	/* Who marked the steps: "torch", "api", "inferred"; NULL: nobody. */
	const char *(*step_source)(void *src);
};

struct window {
	const struct window_ops *ops;
	void *src;
	int64_t from_ns, to_ns;
};

static inline int window_stat(const struct window *w, enum metric_id m, uint32_t entity,
			      struct series_stat *ret)
{
	return w->ops->stat(w->src, m, entity, w->from_ns, w->to_ns, ret);
}

static inline const struct run_info *window_run(const struct window *w)
{
	return w->ops->run(w->src);
}

static inline const struct entity_table *window_entities(const struct window *w)
{
	return w->ops->entities(w->src);
}

static inline double window_seconds(const struct window *w)
{
	return (double)(w->to_ns - w->from_ns) / 1e9;
}

/* 0, or -ENODATA when no stacks were recorded in it, or -errno (unreadable). */
static inline int window_stacks(const struct window *w, window_slice_fn fn, void *arg)
{
	return w->ops->stacks ? w->ops->stacks(w->src, w->from_ns, w->to_ns, fn, arg) : -ENODATA;
}

/* NULL: the source has none. */
static inline const struct stack_book *window_book(const struct window *w)
{
	return w->ops->book ? w->ops->book(w->src) : NULL;
}

/* Points of many series in the window; 0, -ENODATA when none has one, or -errno (unreadable). */
int window_each_of(const struct window *w, const struct series_key *keys, size_t n, int64_t step_ns,
		   window_points_fn fn, void *arg);

/* Growth of a counter, mean or last value of a gauge; false when absent (and *ret untouched). */
bool window_delta(const struct window *w, enum metric_id m, uint32_t entity, double *ret);
bool window_mean(const struct window *w, enum metric_id m, uint32_t entity, double *ret);
bool window_max(const struct window *w, enum metric_id m, uint32_t entity, double *ret);
bool window_last(const struct window *w, enum metric_id m, uint32_t entity, double *ret);
/* Why a series is absent: the text of its gap, or "not recorded". */
const char *window_why_absent(const struct window *w, enum metric_id m, uint32_t entity);

/* Does a counter of this entity start at 0 in a window from from_ns? So for processes, threads and
 * the job when they were born after from_ns; at the run's first tick only if the run was started by
 * us (what was attached to had used CPU before). */
bool window_from_zero(const struct entity_table *t, const struct run_info *run, enum metric_id m,
		      uint32_t entity, int64_t from_ns);

/* What a counter grew by between two readings. One that is far below where it was has started again
 * at 0, and what it shows is its growth; one that slipped back a little (iowait does, scaled times
 * do) is taken at its word, so that it is right again when it has caught up. */
static inline bool counter_restarted(double before, double now)
{
	return now < before / 2;
}

static inline double counter_growth(double before, double now)
{
	return counter_restarted(before, now) ? now : now - before;
}

/* Accumulates series_stat from values in order of time; shared by both implementations so that
 * live and offline figures are computed by the same lines. */
struct stat_builder {
	struct series_stat stat;
	double sum;         /* integral of the value over time */
	int64_t covered_ns; /* time the integral spans */
	int64_t last_t;
	bool any;
	bool counter, from_zero;
};

/* from_zero: the entity was born in the window, so a counter started at 0 (window_from_zero). */
void stat_begin(struct stat_builder *b, enum metric_id m, bool from_zero);
/* The value that held at the window's start, if there was one: the last sample at or before `from`
 * (none with from_zero). Before any stat_add. Samples after `from` up to and with `to` follow, so
 * that windows which meet at a tick count it once and their deltas add up. */
void stat_before(struct stat_builder *b, int64_t from_ns, double value);
void stat_add(struct stat_builder *b, int64_t t_ns, double value);
/* A roll-up bucket [t0,t1): min, max, last value and integral over it. */
void stat_add_bucket(struct stat_builder *b, int64_t t0_ns, int64_t t1_ns, double min, double max,
		     double last, double growth, double integral);
/* end: the window's end, or the entity's end if earlier. -ENODATA when nothing was seen. */
int stat_finish(struct stat_builder *b, int64_t end_ns, struct series_stat *ret);

#endif
