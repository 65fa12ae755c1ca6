/* SPDX-License-Identifier: MIT
 *
 * An event file for TensorBoard: loss and other scalars over steps, how long each step took and waited
 * for data, and beside it what the machine did, at the step that was going on. Records as TensorFlow
 * writes them:
 *
 *	uint64 length, uint32 masked crc32c of it, message Event, uint32 masked crc32c of that
 *
 *	message Event   { double wall_time = 1; int64 step = 2; string file_version = 3; Summary summary = 5; }
 *	message Summary { repeated Value value = 1; }
 *	message Value   { string tag = 1; float simple_value = 2; }
 *
 * Ranks other than the first have tags of their own: rank1/loss.
 */
#include "sink/sink.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/crc32c.h"
#include "base/proto.h"
#include "base/vec.h"
#include "model/gpu_tag.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { EVENT_WALL = 1, EVENT_STEP = 2, EVENT_VERSION = 3, EVENT_SUMMARY = 5 };
enum { SUMMARY_VALUE = 1, VALUE_TAG = 1, VALUE_SIMPLE = 2 };
enum { TAG_BYTES = 160, SERIES_MAX = 4096 };

/* Of the machine one point a second is plenty: a day has 86,400. */
static const int64_t every_ns = NS_PER_S;

/* What the charts of a training show of the machine. */
static const struct {
	const char *metric, *tag;
	bool of_gpu;
} shown[] = {
	{ "job.cpu", "cpu_cores", false },    { "job.rss", "memory_bytes", false },
	{ "gpu.busy", "busy", true },         { "gpu.memory_used", "memory_bytes", true },
	{ "gpu.power", "power_w", true },     { "gpu.temperature", "temperature_c", true },
	{ "gpu.clock_sm", "clock_hz", true },
};

struct series {
	uint32_t entity, row;
	bool counter;
	int64_t t_ns;      /* of a counter: of `told` */
	double value;      /* the latest */
	double told;       /* of a counter: what it was when it was told last */
	int64_t latest_ns; /* of value */
};

struct tensorboard {
	uint64_t step;              /* the one that ended last */
	int64_t told_ns, latest_ns; /* when figures of the machine were told, and came, last */
	VEC(struct series) series;
};

static uint32_t masked_crc(const void *p, size_t n)
{
	uint32_t c = crc32c(0, p, n);

	return (c >> 15 | c << 17) + 0xa282ead8u;
}

static void put_record(const struct buf *event, struct buf *out)
{
	uint64_t length = event->len;
	uint32_t crc = masked_crc(&length, sizeof(length));

	out->failed |= event->failed;
	buf_put(out, &length, sizeof(length));
	buf_put(out, &crc, sizeof(crc));
	buf_put(out, buf_text(event), event->len);
	crc = masked_crc(buf_text(event), event->len);
	buf_put(out, &crc, sizeof(crc));
}

static void begin_event(const struct sink_source *src, int64_t t_ns, struct buf *event)
{
	proto_double(event, EVENT_WALL, (double)sink_wall_ns(src->run, t_ns) / 1e9);
}

static void put_value(const struct sink_source *src, int64_t t_ns, uint64_t step, const char *tag,
		      double v, struct buf *out)
{
	auto_done(buf) struct buf event = { 0 }, summary = { 0 }, value = { 0 };

	/* TensorBoard draws what is not a number as a mark of its own: a loss that became NaN is news,
	 * but one that was not said is nothing, and both are NAN here. */
	if (!isfinite(v))
		return;
	proto_text(&value, VALUE_TAG, tag);
	proto_float(&value, VALUE_SIMPLE, (float)v);
	proto_message(&summary, SUMMARY_VALUE, &value);
	begin_event(src, t_ns, &event);
	proto_int(&event, EVENT_STEP, step);
	proto_message(&event, EVENT_SUMMARY, &summary);
	put_record(&event, out);
}

static const char *tag_of(int32_t rank, const char *name, char *buf, size_t size)
{
	if (rank > 0)
		snprintf(buf, size, "rank%d/%s", rank, name);
	else
		snprintf(buf, size, "%s", name);
	return buf;
}

static int tensorboard_begin(void *state, const struct sink_source *src, struct buf *out)
{
	auto_done(buf) struct buf event = { 0 };

	(void)state;
	begin_event(src, src->run->started_mono_ns, &event);
	proto_text(&event, EVENT_VERSION, "brain.Event:2");
	put_record(&event, out);
	return 0;
}

static int tensorboard_step(void *state, const struct sink_source *src, const struct window_step *s,
			    struct buf *out)
{
	struct tensorboard *tb = state;
	char tag[TAG_BYTES];

	if (s->rank <= 0)
		tb->step = s->number;
	put_value(src, s->end_ns, s->number, tag_of(s->rank, "loss", tag, sizeof(tag)), s->loss,
		  out);
	if (s->begin_ns < s->end_ns)
		put_value(src, s->end_ns, s->number,
			  tag_of(s->rank, "spotter/step_time_s", tag, sizeof(tag)),
			  ((double)s->end_ns - (double)s->begin_ns) / 1e9, out);
	put_value(src, s->end_ns, s->number,
		  tag_of(s->rank, "spotter/data_wait_s", tag, sizeof(tag)), s->data_wait, out);
	return 0;
}

static int tensorboard_scalar(void *state, const struct sink_source *src,
			      const struct window_scalar *s, struct buf *out)
{
	char tag[TAG_BYTES];

	(void)state;
	if (s->name)
		put_value(src, s->t_ns, s->step, tag_of(s->rank, s->name, tag, sizeof(tag)),
			  s->value, out);
	return 0;
}

static struct series *series_of(struct tensorboard *tb, uint32_t entity, uint32_t row)
{
	struct series *x;

	for (size_t i = 0; i < tb->series.n; i++)
		if (tb->series.v[i].entity == entity && tb->series.v[i].row == row)
			return &tb->series.v[i];
	x = tb->series.n < SERIES_MAX ? vec_push(&tb->series) : NULL;
	if (x)
		*x = (struct series){ .entity = entity, .row = row };
	return x;
}

/* "spotter/gpu0/busy" */
static bool series_tag(const struct sink_source *src, uint32_t row, uint32_t entity, char *tag,
		       size_t size)
{
	const struct entity *e = entity_find(src->entities, entity);

	if (!shown[row].of_gpu) {
		snprintf(tag, size, "spotter/%s", shown[row].tag);
		return true;
	}
	if (!e)
		return false;
	if (e->key < GPU_PARTITION_KEY)
		snprintf(tag, size, "spotter/gpu%lld/%s", (long long)e->key, shown[row].tag);
	else
		snprintf(tag, size, "spotter/gpu%lld.%lld/%s",
			 (long long)(e->key / GPU_PARTITION_KEY - 1),
			 (long long)(e->key % GPU_PARTITION_KEY), shown[row].tag);
	return true;
}

/* Gauges hold until they change, so all are told, changed or not. */
static void tell_series(struct tensorboard *tb, const struct sink_source *src, int64_t t_ns,
			struct buf *out)
{
	for (size_t i = 0; i < tb->series.n; i++) {
		struct series *x = &tb->series.v[i];
		const struct entity *e = entity_find(src->entities, x->entity);
		double value = x->value;
		char tag[TAG_BYTES];

		if (e && e->gone_ns && e->gone_ns < t_ns && x->latest_ns < e->gone_ns)
			continue;
		if (x->counter) {
			value = counter_growth(x->told, x->value) /
				(((double)t_ns - (double)x->t_ns) / 1e9);
			if (t_ns <= x->t_ns)
				continue;
			x->told = x->value;
			x->t_ns = t_ns;
		}
		if (series_tag(src, x->row, x->entity, tag, sizeof(tag)))
			put_value(src, t_ns, tb->step, tag, value, out);
	}
	tb->told_ns = t_ns;
}

static int tensorboard_sample(void *state, const struct sink_source *src,
			      const struct sink_sample *s, struct buf *out)
{
	struct tensorboard *tb = state;
	struct series *x;
	uint32_t row = 0;

	while (row < ARRAY_LEN(shown) && strcmp(shown[row].metric, s->metric) != 0)
		row++;
	/* Samples of one tick have one time: at the first of the next, those before are complete. */
	if (!tb->told_ns)
		tb->told_ns = s->t_ns;
	if (s->t_ns > tb->latest_ns && tb->latest_ns - tb->told_ns >= every_ns)
		tell_series(tb, src, tb->latest_ns, out);
	tb->latest_ns = s->t_ns;
	if (row == ARRAY_LEN(shown))
		return 0;
	x = series_of(tb, s->entity, row);
	if (!x)
		return 0;
	if (!x->latest_ns) {
		x->counter = s->kind == KIND_COUNTER;
		x->t_ns = s->t_ns;
		x->told = s->value;
	}
	x->value = s->value;
	x->latest_ns = s->t_ns;
	return 0;
}

static int tensorboard_end(void *state, const struct sink_source *src, struct buf *out)
{
	struct tensorboard *tb = state;

	if (tb->latest_ns > tb->told_ns)
		tell_series(tb, src, tb->latest_ns, out);
	return 0;
}

static void tensorboard_done(void *state)
{
	struct tensorboard *tb = state;

	vec_done(&tb->series);
}

const struct sink_type tensorboard_sink = {
	.name = "tensorboard",
	.extension = "tfevents",
	.help = "loss, step times and the machine beside them as an event file",
	.state_size = sizeof(struct tensorboard),
	.begin = tensorboard_begin,
	.sample = tensorboard_sample,
	.step = tensorboard_step,
	.scalar = tensorboard_scalar,
	.end = tensorboard_end,
	.done = tensorboard_done,
};
