/* SPDX-License-Identifier: MIT
 *
 * Runs one collector over a fixture root (or the machine), tick by tick, and finds things in the
 * frame it filled.
 */
#ifndef SPOTTER_TESTS_RIG_H
#define SPOTTER_TESTS_RIG_H

#include "../unit.h"

#include "collect/collector.h"

#include <stdlib.h>

struct rig {
	struct host host;
	struct collect c;
	struct frame f;
	const struct collector *k;
	void *state;
	int opened, last; /* what open() and the last read() returned */
};

static inline void rig_begin(struct rig *r)
{
	int64_t mono, wall;

	host_clock(&r->host, &mono, &wall, &r->c.boot_ns);
	frame_begin(&r->f, mono, wall);
}

/* dir NULL: the machine. Opens and does the first tick into one frame, as the engine does. */
static inline void rig_open_at(struct rig *r, const struct collector *k, const char *dir, pid_t job)
{
	*r = (struct rig){ .k = k };
	assert_int_equal(host_open(&r->host, dir, NULL), 0);
	r->c = (struct collect){ .host = &r->host,
				 .job = { .root = job },
				 .next_id = ID_FIRST_FREE,
				 .slow = true,
				 .thrift = 1 };
	r->state = calloc(1, k->state_size);
	assert_non_null(r->state);
	rig_begin(r);
	r->opened = k->open(&r->c, r->state, &r->f);
	r->last = r->opened ? r->opened : k->read(&r->c, r->state, &r->f);
}

static inline void rig_open(struct rig *r, const struct collector *k, const char *root, pid_t job)
{
	char dir[512];

	snprintf(dir, sizeof(dir), ROOTS "/%s", root);
	rig_open_at(r, k, dir, job);
}

/* The next state of the root. */
static inline void rig_tick(struct rig *r)
{
	assert_true(host_advance(&r->host));
	rig_begin(r);
	r->last = r->k->read(&r->c, r->state, &r->f);
}

static inline void rig_close(struct rig *r)
{
	if (r->opened == 0)
		r->k->close(r->state);
	free(r->state);
	frame_done(&r->f);
	host_close(&r->host);
}

static inline int rig_has(const struct rig *r, enum metric_id metric, uint32_t entity)
{
	int n = 0;

	for (size_t i = 0; i < r->f.samples.n; i++)
		n += r->f.samples.v[i].metric == metric && r->f.samples.v[i].entity == entity;
	return n;
}

/* Fails the test unless there is exactly one. */
static inline int64_t rig_get(const struct rig *r, enum metric_id metric, uint32_t entity)
{
	if (rig_has(r, metric, entity) != 1)
		fail_msg("%d samples of %s of %u", rig_has(r, metric, entity), metrics[metric].name,
			 entity);
	for (size_t i = 0; i < r->f.samples.n; i++)
		if (r->f.samples.v[i].metric == metric && r->f.samples.v[i].entity == entity)
			return r->f.samples.v[i].raw;
	return -1;
}

/* The entity of this name with this change in this frame, 0 when there is none. */
static inline uint32_t rig_life(const struct rig *r, enum life_change change, const char *name)
{
	for (size_t i = 0; i < r->f.lives.n; i++) {
		const struct life *l = &r->f.lives.v[i];

		if (l->change == change && !strcmp(frame_text(&r->f, l->name), name))
			return l->id;
	}
	return 0;
}

/* Why the metric is absent, -1 without a gap. entity 0 is the gap's. */
static inline int rig_gap(const struct rig *r, enum metric_id metric, uint32_t entity)
{
	for (size_t i = 0; i < r->f.gaps.n; i++)
		if (r->f.gaps.v[i].metric == metric && r->f.gaps.v[i].entity == entity)
			return (int)r->f.gaps.v[i].why;
	return -1;
}

static inline const struct event *rig_event(const struct rig *r, enum event_kind kind)
{
	for (size_t i = 0; i < r->f.events.n; i++)
		if (r->f.events.v[i].kind == kind)
			return &r->f.events.v[i];
	return NULL;
}

/* Parsers of bad input: cut anywhere, and with every byte flipped, they must return and leave the
 * result alone or fill it; the sanitizers see the rest. The text sits in memory of its own size. */
static inline void rig_torment(const char *text, void (*parse)(const char *text, size_t n))
{
	size_t n = strlen(text);

	for (size_t i = 0; i <= n; i++) {
		char *cut = malloc(i ? i : 1);

		assert_non_null(cut);
		memcpy(cut, text, i);
		parse(cut, i);
		for (size_t k = 0; k < i; k += 1 + i / 16) {
			cut[k] ^= (char)0x91;
			parse(cut, i);
		}
		free(cut);
	}
}

#endif
