/* SPDX-License-Identifier: MIT
 *
 * A trace for ui.perfetto.dev: steps and phases as slices under their process, loss and other scalars
 * as counters beside them, what threads did as a slice a second, the job and the GPUs as counters.
 *
 *	message Trace           { repeated TracePacket packet = 1; }
 *	message TracePacket     { uint64 timestamp = 8; uint32 trusted_packet_sequence_id = 10;
 *	                          TrackEvent track_event = 11; uint32 sequence_flags = 13;
 *	                          TrackDescriptor track_descriptor = 60; }
 *	message TrackDescriptor { uint64 uuid = 1; string name = 2; ProcessDescriptor process = 3;
 *	                          ThreadDescriptor thread = 4; uint64 parent_uuid = 5;
 *	                          CounterDescriptor counter = 8; }
 *	message TrackEvent      { repeated DebugAnnotation debug_annotations = 4; Type type = 9;
 *	                          uint64 track_uuid = 11; repeated string categories = 22;
 *	                          string name = 23; double double_counter_value = 44; }
 *
 * Times are the run's, in nanoseconds of CLOCK_MONOTONIC. Packets need not be in order of time.
 */
#include "sink/sink.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/proto.h"
#include "base/vec.h"
#include "model/gpu_tag.h"
#include "model/stack_text.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { TRACE_PACKET = 1 };
enum {
	PACKET_TIME = 8,
	PACKET_SEQUENCE = 10,
	PACKET_EVENT = 11,
	PACKET_FLAGS = 13,
	PACKET_TRACK = 60
};
enum {
	TRACK_UUID = 1,
	TRACK_NAME = 2,
	TRACK_PROCESS = 3,
	TRACK_THREAD = 4,
	TRACK_PARENT = 5,
	TRACK_COUNTER = 8
};
enum {
	PROCESS_PID = 1,
	PROCESS_NAME = 6,
	THREAD_PID = 1,
	THREAD_TID = 2,
	THREAD_NAME = 5,
	COUNTER_UNIT_NAME = 6
};
enum {
	EVENT_NOTES = 4,
	EVENT_TYPE = 9,
	EVENT_TRACK = 11,
	EVENT_CATEGORY = 22,
	EVENT_NAME = 23,
	EVENT_DOUBLE = 44
};
enum { NOTE_INT = 4, NOTE_DOUBLE = 5, NOTE_TEXT = 6, NOTE_NAME = 10 };
enum { SLICE_BEGIN = 1, SLICE_END = 2, INSTANT = 3, COUNTER = 4 };
enum { SEQUENCE = 1, STATE_CLEARED = 1 };

/* Kinds of tracks: the upper byte of a uuid. Below it the entity, below that a number. */
enum track { TRACK_OF_ENTITY = 1, TRACK_OF_STEPS, TRACK_OF_NAME, TRACK_OF_METRIC, TRACK_OF_EVENTS };

enum { NAMES_MAX = 1000 };

struct perfetto {
	struct map told;   /* hash of uuid -> 1 */
	struct map before; /* of a counter: place in last */
	VEC(struct last {
		int64_t t_ns;
		double value;
	})
	last;
	VEC(const char *) names; /* borrowed from the window: of scalars and phases */
	bool begun;
};

static uint64_t uuid_of(enum track kind, uint32_t entity, uint32_t number)
{
	return (uint64_t)kind << 56 | (uint64_t)(entity & 0xffffffu) << 32 | number;
}

static void put_packet(struct perfetto *p, const int64_t *t_ns, unsigned field,
		       const struct buf *body, struct buf *out)
{
	auto_done(buf) struct buf packet = { 0 };

	if (t_ns)
		proto_int(&packet, PACKET_TIME, (uint64_t)(*t_ns > 0 ? *t_ns : 0));
	proto_int(&packet, PACKET_SEQUENCE, SEQUENCE);
	if (!p->begun)
		proto_int(&packet, PACKET_FLAGS, STATE_CLEARED);
	p->begun = true;
	proto_message(&packet, field, body);
	proto_message(out, TRACE_PACKET, &packet);
}

/* True once for each track. */
static bool is_new(struct perfetto *p, uint64_t uuid)
{
	uint32_t seen;

	return !map_get(&p->told, uuid, &seen) && map_put(&p->told, uuid, 1);
}

static void put_track(struct perfetto *p, uint64_t uuid, uint64_t parent, const char *name,
		      const char *unit, struct buf *out)
{
	auto_done(buf) struct buf track = { 0 }, counter = { 0 };

	proto_int(&track, TRACK_UUID, uuid);
	proto_text(&track, TRACK_NAME, name);
	if (parent)
		proto_int(&track, TRACK_PARENT, parent);
	if (unit) {
		proto_text(&counter, COUNTER_UNIT_NAME, unit);
		proto_message(&track, TRACK_COUNTER, &counter);
	}
	put_packet(p, NULL, PACKET_TRACK, &track, out);
}

/* Of a process or a thread; 0: of none. */
static uint64_t entity_track(struct perfetto *p, const struct sink_source *src, uint32_t id,
			     struct buf *out)
{
	const struct entity *e = entity_find(src->entities, id), *process = e;
	auto_done(buf) struct buf track = { 0 }, inner = { 0 };
	uint64_t uuid = uuid_of(TRACK_OF_ENTITY, id, 0);

	if (!e || (e->kind != ENTITY_PROC && e->kind != ENTITY_THREAD))
		return 0;
	if (!is_new(p, uuid))
		return uuid;
	proto_int(&track, TRACK_UUID, uuid);
	if (e->kind == ENTITY_PROC) {
		proto_int(&inner, PROCESS_PID, (uint64_t)e->key);
		proto_text(&inner, PROCESS_NAME, e->name);
		proto_message(&track, TRACK_PROCESS, &inner);
	} else {
		entity_track(p, src, e->parent, out);
		process = entity_find(src->entities, e->parent);
		proto_int(&inner, THREAD_PID, (uint64_t)(process ? process->key : e->key));
		proto_int(&inner, THREAD_TID, (uint64_t)e->key);
		proto_text(&inner, THREAD_NAME, e->name);
		proto_message(&track, TRACK_THREAD, &inner);
	}
	put_packet(p, NULL, PACKET_TRACK, &track, out);
	return uuid;
}

static void put_note(struct buf *event, const char *name, double number)
{
	auto_done(buf) struct buf note = { 0 };

	if (!isfinite(number))
		return;
	proto_text(&note, NOTE_NAME, name);
	if (number == trunc(number) && fabs(number) < 1e15)
		proto_int(&note, NOTE_INT, (uint64_t)(int64_t)number);
	else
		proto_double(&note, NOTE_DOUBLE, number);
	proto_message(event, EVENT_NOTES, &note);
}

static void begin_slice(struct buf *event, uint64_t track, const char *category, const char *name)
{
	proto_int(event, EVENT_TYPE, SLICE_BEGIN);
	proto_int(event, EVENT_TRACK, track);
	proto_text(event, EVENT_CATEGORY, category);
	proto_text(event, EVENT_NAME, name);
}

static void end_slice(struct perfetto *p, int64_t t_ns, uint64_t track, struct buf *out)
{
	auto_done(buf) struct buf event = { 0 };

	proto_int(&event, EVENT_TYPE, SLICE_END);
	proto_int(&event, EVENT_TRACK, track);
	put_packet(p, &t_ns, PACKET_EVENT, &event, out);
}

static void put_counter(struct perfetto *p, int64_t t_ns, uint64_t track, double v, struct buf *out)
{
	auto_done(buf) struct buf event = { 0 };

	if (!isfinite(v))
		return;
	proto_int(&event, EVENT_TYPE, COUNTER);
	proto_int(&event, EVENT_TRACK, track);
	proto_double(&event, EVENT_DOUBLE, v);
	put_packet(p, &t_ns, PACKET_EVENT, &event, out);
}

/* Number of a name; those of a program that has thousands share one. */
static uint32_t name_number(struct perfetto *p, const char *name)
{
	const char **slot;

	for (size_t i = 0; i < p->names.n; i++)
		if (strcmp(p->names.v[i], name) == 0)
			return (uint32_t)i + 1;
	slot = p->names.n < NAMES_MAX ? vec_push(&p->names) : NULL;
	if (!slot)
		return 0;
	*slot = name;
	return (uint32_t)p->names.n;
}

static uint64_t name_track(struct perfetto *p, const struct sink_source *src, uint32_t entity,
			   const char *name, const char *unit, struct buf *out)
{
	uint64_t process = entity_track(p, src, entity, out);
	uint32_t number = name_number(p, name) * 2 + (unit != NULL);
	uint64_t uuid = uuid_of(TRACK_OF_NAME, entity, number);

	if (is_new(p, uuid))
		put_track(p, uuid, process, number < 2 ? "others" : name, unit, out);
	return uuid;
}

static int perfetto_begin(void *state, const struct sink_source *src, struct buf *out)
{
	put_track(state, uuid_of(TRACK_OF_EVENTS, 0, 0), 0, "events", NULL, out);
	(void)src;
	return 0;
}

static int perfetto_step(void *state, const struct sink_source *src, const struct window_step *s,
			 struct buf *out)
{
	uint64_t process = entity_track(state, src, s->entity, out);
	uint64_t uuid = uuid_of(TRACK_OF_STEPS, s->entity, 0);
	auto_done(buf) struct buf event = { 0 };
	char name[40];

	if (isfinite(s->loss))
		put_counter(state, s->end_ns, name_track(state, src, s->entity, "loss", "", out),
			    s->loss, out);
	if (s->begin_ns >= s->end_ns)
		return 0;
	if (is_new(state, uuid)) {
		snprintf(name, sizeof(name), s->rank >= 0 ? "steps of rank %d" : "steps", s->rank);
		put_track(state, uuid, process, name, NULL, out);
	}
	snprintf(name, sizeof(name), "step %llu", (unsigned long long)s->number);
	begin_slice(&event, uuid, "step", name);
	put_note(&event, "loss", s->loss);
	put_note(&event, "data_wait_s", s->data_wait);
	put_note(&event, "batches", s->micro ? s->micro : NAN);
	put_packet(state, &s->begin_ns, PACKET_EVENT, &event, out);
	end_slice(state, s->end_ns, uuid, out);
	return 0;
}

static int perfetto_scalar(void *state, const struct sink_source *src,
			   const struct window_scalar *s, struct buf *out)
{
	if (s->name)
		put_counter(state, s->t_ns, name_track(state, src, s->entity, s->name, "", out),
			    s->value, out);
	return 0;
}

/* A track for each name: phases of several threads need not nest. */
static int perfetto_phase(void *state, const struct sink_source *src, const struct window_phase *p,
			  struct buf *out)
{
	auto_done(buf) struct buf event = { 0 };
	uint64_t uuid;

	if (!p->name)
		return 0;
	uuid = name_track(state, src, p->entity, p->name, NULL, out);
	begin_slice(&event, uuid, "phase", p->name);
	put_packet(state, &p->begin_ns, PACKET_EVENT, &event, out);
	if (p->end_ns > p->begin_ns)
		end_slice(state, p->end_ns, uuid, out);
	return 0;
}

static int perfetto_event(void *state, const struct sink_source *src, const struct window_event *e,
			  struct buf *out)
{
	auto_done(buf) struct buf event = { 0 }, note = { 0 };

	(void)src;
	proto_int(&event, EVENT_TYPE, INSTANT);
	proto_int(&event, EVENT_TRACK, uuid_of(TRACK_OF_EVENTS, 0, 0));
	proto_text(&event, EVENT_CATEGORY, "event");
	proto_text(&event, EVENT_NAME, event_kind_name(e->kind));
	proto_text(&note, NOTE_NAME, "text");
	proto_text(&note, NOTE_TEXT, e->text ? e->text : "");
	proto_message(&event, EVENT_NOTES, &note);
	put_packet(state, &e->t_ns, PACKET_EVENT, &event, out);
	return 0;
}

/* The job, GPUs, and of each process what people look for; threads have slices instead. */
static bool is_shown(const struct entity *e, const struct metric *m)
{
	if (e->kind == ENTITY_JOB || e->kind == ENTITY_GPU)
		return true;
	return m->id == M_PROC_CPU || m->id == M_PROC_RSS || m->id == M_PROC_READ_BYTES ||
	       m->id == M_PROC_WRITTEN_BYTES || m->id == M_DISK_READ || m->id == M_DISK_WRITTEN;
}

static void metric_track(struct perfetto *p, const struct sink_source *src, const struct entity *e,
			 const struct metric *m, uint64_t uuid, struct buf *out)
{
	bool counter = m->kind == KIND_COUNTER;
	char name[160], unit[40];

	if (e->kind == ENTITY_GPU && e->key < GPU_PARTITION_KEY)
		snprintf(name, sizeof(name), "GPU %lld %s", (long long)e->key, m->name);
	else if (e->kind == ENTITY_GPU || e->kind == ENTITY_DISK)
		snprintf(name, sizeof(name), "%s %s", e->name, m->name);
	else
		snprintf(name, sizeof(name), "%s", m->name);
	/* Seconds of CPU a second are cores. */
	if (counter && m->unit == UNIT_SECONDS && strstr(m->name, ".cpu"))
		snprintf(unit, sizeof(unit), "cores");
	else
		snprintf(unit, sizeof(unit), "%s%s", metric_unit_name(m->unit),
			 counter ? "/s" : "");
	put_track(p, uuid, e->kind == ENTITY_PROC ? entity_track(p, src, e->id, out) : 0, name,
		  unit, out);
}

/* Growth per second since the sample before, and when that was: a viewer draws a value from its time
 * on. NAN: there was none. */
static double rate_of(struct perfetto *p, uint64_t uuid, int64_t t_ns, double value,
		      int64_t *ret_from)
{
	struct last *l;
	double rate = NAN;
	uint32_t at;

	if (!map_get(&p->before, uuid, &at)) {
		l = vec_push(&p->last);
		if (l && map_put(&p->before, uuid, (uint32_t)p->last.n - 1))
			*l = (struct last){ t_ns, value };
		return NAN;
	}
	l = &p->last.v[at];
	*ret_from = l->t_ns;
	if (t_ns > l->t_ns)
		rate = counter_growth(l->value, value) / ((double)(t_ns - l->t_ns) / 1e9);
	*l = (struct last){ t_ns, value };
	return rate;
}

static int perfetto_sample(void *state, const struct sink_source *src, const struct sink_sample *s,
			   struct buf *out)
{
	const struct metric *m = s->kind_known ? metric_by_name(s->metric) : NULL;
	const struct entity *e = m ? entity_find(src->entities, s->entity) : NULL;
	int64_t t_ns = s->t_ns;
	double value = s->value;
	uint64_t uuid;

	if (!e || !is_shown(e, m))
		return 0;
	uuid = uuid_of(TRACK_OF_METRIC, s->entity, (uint32_t)m->id);
	if (m->kind == KIND_COUNTER)
		value = rate_of(state, uuid, s->t_ns, s->value, &t_ns);
	if (!isfinite(value))
		return 0;
	if (is_new(state, uuid))
		metric_track(state, src, e, m, uuid, out);
	put_counter(state, t_ns, uuid, value, out);
	return 0;
}

/* What a thread did in a slice, by what it did most. Rows are in order of threads. */
static void put_thread(struct perfetto *p, const struct sink_source *src,
		       const struct stack_slice *s, size_t first, size_t end, struct buf *out)
{
	auto_done(buf) struct buf event = { 0 };
	double weight[WAIT_KINDS] = { 0 }, sum = 0;
	int most = WAIT_UNKNOWN;
	uint64_t track = entity_track(p, src, s->rows[first].entity, out);

	for (size_t i = first; i < end; i++)
		if (s->rows[i].kind < WAIT_KINDS && s->rows[i].weight_ns > 0) {
			weight[s->rows[i].kind] += (double)s->rows[i].weight_ns;
			sum += (double)s->rows[i].weight_ns;
		}
	for (int i = 0; i < WAIT_KINDS; i++)
		most = weight[i] > weight[most] ? i : most;
	if (!track || !(sum > 0) || s->from_ns >= s->to_ns)
		return;
	begin_slice(&event, track, "mostly", wait_kind_name((enum wait_kind)most));
	for (int i = 0; i < WAIT_KINDS; i++)
		if (weight[i] > 0)
			put_note(&event, wait_kind_name((enum wait_kind)i), weight[i] / sum);
	put_packet(p, &s->from_ns, PACKET_EVENT, &event, out);
	end_slice(p, s->to_ns, track, out);
}

static int perfetto_stack(void *state, const struct sink_source *src, const struct stack_slice *s,
			  struct buf *out)
{
	for (size_t i = 0, end; i < s->n; i = end) {
		for (end = i; end < s->n && s->rows[end].entity == s->rows[i].entity; end++)
			;
		put_thread(state, src, s, i, end, out);
	}
	return 0;
}

static int perfetto_end(void *state, const struct sink_source *src, struct buf *out)
{
	(void)state;
	(void)src;
	(void)out;
	return 0;
}

static void perfetto_done(void *state)
{
	struct perfetto *p = state;

	map_done(&p->told);
	map_done(&p->before);
	vec_done(&p->last);
	vec_done(&p->names);
}

const struct sink_type perfetto_sink = {
	.name = "perfetto",
	.extension = "pftrace",
	.help = "steps, phases, threads and counters as a trace for ui.perfetto.dev",
	.state_size = sizeof(struct perfetto),
	.begin = perfetto_begin,
	.sample = perfetto_sample,
	.event = perfetto_event,
	.step = perfetto_step,
	.scalar = perfetto_scalar,
	.phase = perfetto_phase,
	.stack = perfetto_stack,
	.end = perfetto_end,
	.done = perfetto_done,
};
