/* SPDX-License-Identifier: MIT
 *
 * A run on one axis of time: what GPUs, CPU, memory, storage, steps and loss did, phases as bands and
 * events as marks. Whatever the length of the record it is a few hundred points: read from roll-ups,
 * many series in one pass.
 */
#ifndef SPOTTER_WEB_TIMELINE_H
#define SPOTTER_WEB_TIMELINE_H

#include "base/vec.h"
#include "model/window.h"

struct verdict;

enum { TIMELINE_POINTS = 600, TIMELINE_PHASES = 300, TIMELINE_EVENTS = 100 };

/* Arrays have as many numbers as the timeline has points; NAN: not known. */
struct track_series {
	char name[64];           /* safe to show */
	double *mean;            /* owned, with min and max behind it */
	const double *min, *max; /* NULL: no stretch holds several values */
};

struct track {
	char id[40];
	const char *group; /* "gpu", "cpu", "memory", "io", "steps", "loss" */
	char title[96];    /* safe to show */
	const char *unit;  /* "%", "cores", "bytes", "bytes/s", "W", "s", "" */
	double limit;      /* NAN: none */
	const char *limit_name;
	VEC(struct track_series) series;
};

struct timeline_phase {
	char name[64]; /* safe to show */
	double from, to;
};

struct timeline_event {
	double t;
	const char *kind;
	char text[200]; /* safe to show */
};

/* Times in seconds since the run began. {0} is empty. */
struct timeline {
	int64_t start_ns;       /* when the run began */
	int64_t from_ns, to_ns; /* of the axis */
	size_t points;
	VEC(struct track) tracks;
	VEC(struct timeline_phase) phases;
	VEC(struct timeline_event) events;
	size_t events_left; /* more that are not in it */
};

/* At most `points` points (0: TIMELINE_POINTS), fewer where there are many tracks. 0 or -errno. */
int timeline_take(const struct window *w, const struct verdict *v, size_t points,
		  struct timeline *ret);
void timeline_done(struct timeline *t);
/* The middle of a stretch; the beginning of the run as all views of a verdict have it. */
double timeline_at(const struct timeline *t, size_t point);
int64_t timeline_start(const struct window *w, const struct verdict *v);

/* The parts. timeline_tracks.c, which sets t->points; timeline_steps.c */
int timeline_tracks(const struct window *w, const struct verdict *v, size_t points,
		    struct timeline *t);
int timeline_steps(const struct window *w, const struct verdict *v, struct timeline *t);
int timeline_phases(const struct window *w, const struct verdict *v, struct timeline *t);
int timeline_events(const struct window *w, struct timeline *t);

/* For the parts. A new track, or NULL without memory; a series of it with room for its numbers, and
 * what the stretches hold put into them. */
struct stretches;
struct track *timeline_track(struct timeline *t, const char *group, const char *unit,
			     const char *title, const char *id_format, ...)
    __attribute__((format(printf, 5, 6)));
struct track_series *track_add(struct track *track, const char *name);
int track_series_fill(struct track_series *s, const struct stretches *from);

#endif
