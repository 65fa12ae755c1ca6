/* SPDX-License-Identifier: MIT */
#include "engine/sampler.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/vec.h"
#include "engine/gpu_watch.h"
#include "engine/mark_watch.h"
#include "engine/stack_watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	SLOW_EVERY_S = 5,
	/* Below these a change between two ticks is a slewed or late clock, not an event. */
	JUMP_MS = 500,
	SUSPEND_MS = 1000,
	SILENCE_S = 5,
};

struct source {
	const struct collector *collector;
	void *state;
	bool open;
	int64_t due_ns;
};

struct sampler {
	struct host *host;
	struct collect collect;
	VEC(struct source) sources;
	struct gpu_watch *gpus;     /* NULL: not wanted */
	struct stack_watch *stacks; /* NULL: not wanted */
	struct mark_watch *marks;   /* NULL: not wanted */
	unsigned thrift;
	bool started, last;
	int64_t slow_due_ns;
	int64_t last_mono_ns, last_gap_ns, wall_offset_ns, boot_offset_ns;
};

static bool wanted(const struct sampler_options *o, const char *name)
{
	if (!o->only)
		return true;
	for (const char *const *p = o->only; *p; p++)
		if (strcmp(*p, name) == 0)
			return true;
	return false;
}

int sampler_open(struct host *host, const struct sampler_options *o, struct sampler **ret,
		 struct err *e)
{
	struct sampler *s = calloc(1, sizeof(*s));

	if (!s)
		return err_set(e, -ENOMEM, "out of memory");
	s->host = host;
	s->thrift = 1;
	s->collect = (struct collect){ .host = host, .job = o->job, .next_id = ID_FIRST_FREE };
	for (const struct collector *const *c = collectors; *c; c++) {
		struct source *src;

		if (!wanted(o, (*c)->name))
			continue;
		src = vec_push(&s->sources);
		if (src)
			src->state = calloc(1, (*c)->state_size ? (*c)->state_size : 1);
		if (!src || !src->state) {
			sampler_close(s);
			return err_set(e, -ENOMEM, "out of memory");
		}
		src->collector = *c;
	}
	/* Without memory for it the rest is still worth having. */
	if (wanted(o, "gpu") && gpu_watch_open(host, o->nvml, &s->gpus, e) < 0)
		s->gpus = NULL;
	/* On a fixture there is nobody to look into. */
	if (o->stacks_hz > 0 && host->live &&
	    stack_watch_start(&(struct stack_watch_options){ o->stacks_hz, o->stacks_budget },
			      &s->stacks, e) < 0)
		s->stacks = NULL;
	if (o->marks && host->live && mark_watch_open(o->marks, &s->marks, e) < 0)
		s->marks = NULL;
	*ret = s;
	return 0;
}

static enum gap_why why_of(int error)
{
	return error == -EACCES || error == -EPERM ? GAP_NO_PERMISSION : GAP_NOT_SUPPORTED;
}

/* First tick: the entities that always exist, and every source's own. */
static void start(struct sampler *s, struct frame *f)
{
	static const struct life fixed[] = {
		{ .change = LIFE_BORN, .id = ID_HOST, .kind = ENTITY_HOST },
		{ .change = LIFE_BORN, .id = ID_JOB, .parent = ID_HOST, .kind = ENTITY_JOB },
		{ .change = LIFE_BORN, .id = ID_SELF, .parent = ID_HOST, .kind = ENTITY_SELF },
	};
	static const char *const names[] = { "machine", "job", "spotter" };

	for (size_t i = 0; i < 3; i++)
		frame_life(f, &fixed[i], names[i], NULL);
	for (size_t i = 0; i < s->sources.n; i++) {
		struct source *src = &s->sources.v[i];
		int r = src->collector->open ? src->collector->open(&s->collect, src->state, f) : 0;

		src->open = r >= 0;
		if (r < 0 && src->collector->sample_metric)
			frame_gap(f, src->collector->sample_metric, 0, why_of(r));
	}
	s->started = true;
}

/* What the clocks say about the time between two ticks. */
static void watch_clocks(struct sampler *s, struct frame *f)
{
	int64_t wall_offset = f->wall_ns - f->mono_ns;
	int64_t boot_offset = s->collect.boot_ns - f->mono_ns;
	int64_t jump = wall_offset - s->wall_offset_ns;
	int64_t asleep = boot_offset - s->boot_offset_ns;
	int64_t silence = f->mono_ns - s->last_mono_ns;

	if (s->last_mono_ns && asleep > SUSPEND_MS * NS_PER_MS)
		frame_event(f, EVENT_SUSPEND, ID_HOST, (double)asleep / 1e9,
			    "the machine slept for %.1f s", (double)asleep / 1e9);
	/* Sleep moves the wall clock too: only what is left is a jump. */
	if (s->last_mono_ns && llabs(jump - asleep) > JUMP_MS * NS_PER_MS)
		frame_event(f, EVENT_CLOCK_JUMP, ID_HOST, (double)(jump - asleep) / 1e9,
			    "the wall clock was set by %+.1f s", (double)(jump - asleep) / 1e9);
	/* Slow by wish is not standing still: only a gap unlike the one before. */
	if (s->last_mono_ns && silence > SILENCE_S * NS_PER_S && silence > 3 * s->last_gap_ns &&
	    s->last_gap_ns)
		frame_event(f, EVENT_SUSPEND, ID_SELF, (double)silence / 1e9,
			    "no samples for %.1f s: the recorder stood still",
			    (double)silence / 1e9);
	s->last_gap_ns = s->last_mono_ns ? silence : 0;
	s->last_mono_ns = f->mono_ns;
	s->wall_offset_ns = wall_offset;
	s->boot_offset_ns = boot_offset;
}

int sampler_tick(struct sampler *s, struct frame *f)
{
	int64_t mono, wall;
	int worst = -ENODATA;

	host_clock(s->host, &mono, &wall, &s->collect.boot_ns);
	frame_begin(f, mono, wall);
	if (!s->started)
		start(s, f);
	watch_clocks(s, f);
	s->collect.thrift = s->thrift;
	s->collect.slow = mono >= s->slow_due_ns;
	if (s->collect.slow)
		s->slow_due_ns = mono + SLOW_EVERY_S * (int64_t)s->thrift * NS_PER_S;
	for (size_t i = 0; i < s->sources.n; i++) {
		struct source *src = &s->sources.v[i];
		int r;

		if (!src->open || mono < src->due_ns)
			continue;
		/* A quarter of a period early is still this tick: ticks never fall exactly. */
		src->due_ns = mono + src->collector->every_ns - src->collector->every_ns / 4;
		r = src->collector->read(&s->collect, src->state, f);
		if (r >= 0)
			worst = 0;
	}
	if (s->gpus)
		gpu_watch_tick(s->gpus, &s->collect, f, s->last);
	if (s->stacks)
		stack_watch_tick(s->stacks, f, s->last);
	if (s->marks)
		mark_watch_tick(s->marks, &s->collect, f, s->last);
	s->last = false;
	return f->failed ? -ENOMEM : worst;
}

void sampler_all_due(struct sampler *s)
{
	s->slow_due_ns = 0;
	s->last = true;
	for (size_t i = 0; i < s->sources.n; i++)
		s->sources.v[i].due_ns = 0;
}

void sampler_set_thrift(struct sampler *s, unsigned thrift)
{
	s->thrift = thrift ? thrift : 1;
}

int64_t sampler_helpers_cpu_ns(const struct sampler *s)
{
	return gpu_watch_cpu_ns(s->gpus);
}

int64_t sampler_helpers_rss_bytes(const struct sampler *s)
{
	return gpu_watch_rss_bytes(s->gpus);
}

int64_t sampler_stacks_cpu_ns(const struct sampler *s)
{
	return s->stacks ? stack_watch_cpu_ns(s->stacks) : 0;
}

void sampler_allow_stacks(struct sampler *s, const struct stack_allowance *a)
{
	if (s->stacks)
		stack_watch_allow(s->stacks, a);
}

int sampler_level(const struct sampler *s)
{
	return s->stacks ? stack_watch_level(s->stacks) : 1;
}

void sampler_close(struct sampler *s)
{
	if (!s)
		return;
	stack_watch_stop(s->stacks);
	mark_watch_close(s->marks);
	gpu_watch_close(s->gpus);
	for (size_t i = 0; i < s->sources.n; i++) {
		struct source *src = &s->sources.v[i];

		if (src->open && src->collector->close)
			src->collector->close(src->state);
		free(src->state);
	}
	vec_done(&s->sources);
	free(s);
}
