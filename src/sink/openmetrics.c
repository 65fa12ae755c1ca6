/* SPDX-License-Identifier: MIT
 *
 * The run as OpenMetrics 1.0 with timestamps, which Prometheus makes blocks of:
 *
 *	promtool tsdb create-blocks-from openmetrics run.om data/
 *
 * Names and labels are those of the exporter (model/metric_family.h), so that one dashboard shows both.
 * Family after family, series after series, each in order of time, as that tool wants it:
 *
 *	# HELP spotter_gpu_power_watts power drawn by the board
 *	# TYPE spotter_gpu_power_watts gauge
 *	# UNIT spotter_gpu_power_watts watts
 *	spotter_gpu_power_watts{node="n12",gpu="0",gpu_uuid="GPU-7b1"} 212.5 1763324129.123
 *
 * Processes and threads have no series of their own: their names would make millions of them.
 */
#include "sink/openmetrics.h"

#include "base/buf.h"
#include "base/text.h"
#include "model/gpu_tag.h"
#include "model/node.h"

#include <stdio.h>
#include <string.h>

enum { SLICE_BYTES = 256 << 10 };

/* Whose series are written; run_id where the number is the run's own. */
#define KINDS                                                                               \
	(METRIC_KIND(ENTITY_HOST) | METRIC_KIND(ENTITY_CPU) | METRIC_KIND(ENTITY_DISK) |    \
	 METRIC_KIND(ENTITY_NIC) | METRIC_KIND(ENTITY_MOUNT) | METRIC_KIND(ENTITY_CGROUP) | \
	 METRIC_KIND(ENTITY_JOB) | METRIC_KIND(ENTITY_GPU) | METRIC_KIND(ENTITY_SELF))
#define OF_RUN (METRIC_KIND(ENTITY_CGROUP) | METRIC_KIND(ENTITY_JOB) | METRIC_KIND(ENTITY_SELF))

/* Texts that labels point to. */
struct label_texts {
	char node[80], run[48], name[112], thing[200], number[24], part[24], rank[16];
	struct gpu_tag gpu;
};

static int om_begin(void *state, const struct sink_source *src, struct buf *out)
{
	struct openmetrics *om = state;

	(void)src;
	exposition_begin(&om->text, out, EXPOSITION_OPENMETRICS);
	om->text.times = true;
	om->metric = 1;
	metric_families(KINDS, &om->families);
	return 0;
}

static void label(struct series_sample *s, const char *name, const char *value)
{
	if (value[0] && s->n_labels < SERIES_LABELS_MAX)
		s->labels[s->n_labels++] = (struct series_label){ name, value };
}

static void label_gpu(struct series_sample *s, const struct entity *e, struct label_texts *t)
{
	int64_t index = e->key, part = -1;

	if (index >= GPU_PARTITION_KEY) {
		part = index % GPU_PARTITION_KEY;
		index = index / GPU_PARTITION_KEY - 1;
	}
	snprintf(t->number, sizeof(t->number), "%lld", (long long)index);
	label(s, "gpu", t->number);
	if (part >= 0) {
		snprintf(t->part, sizeof(t->part), "%lld", (long long)part);
		label(s, "partition", t->part);
	}
	gpu_tag_read(e->detail, &t->gpu);
	label(s, "gpu_uuid", text_safe_copy(t->thing, sizeof(t->thing), t->gpu.uuid));
}

static void label_thing(struct series_sample *s, const struct entity *e, struct label_texts *t)
{
	switch (e->kind) {
	case ENTITY_DISK:
	case ENTITY_NIC:
		label(s, "device", text_safe_copy(t->thing, sizeof(t->thing), e->name));
		break;
	case ENTITY_MOUNT:
		label(s, "mountpoint", text_safe_copy(t->thing, sizeof(t->thing), e->name));
		break;
	case ENTITY_CGROUP:
		label(s, "cgroup", text_safe_copy(t->thing, sizeof(t->thing), e->name));
		break;
	case ENTITY_CPU:
		snprintf(t->number, sizeof(t->number), "%lld", (long long)node_own_key(e->key));
		label(s, "cpu", t->number);
		break;
	case ENTITY_GPU:
		label_gpu(s, e, t);
		break;
	default:
		break;
	}
}

static void label_all(struct series_sample *s, const struct sink_source *src,
		      const struct om_series *o, struct label_texts *t)
{
	const struct entity *e = o->entity ? entity_find(src->entities, o->entity) : NULL;
	const char *node = e ? node_name(src->entities, e) : "";
	struct series_label more;

	label(
	    s, "node",
	    text_safe_copy(t->node, sizeof(t->node), node[0] ? node : src->run->machine.hostname));
	if (o->metric == M_NONE || METRIC_KIND(metrics[o->metric].entity) & OF_RUN)
		label(s, "run_id", text_safe_copy(t->run, sizeof(t->run), src->run->id));
	if (!o->entity)
		label(s, "name", text_safe_copy(t->name, sizeof(t->name), src->run->name));
	if (o->rank >= 0) {
		snprintf(t->rank, sizeof(t->rank), "%d", o->rank);
		label(s, "rank", t->rank);
	}
	if (e && o->metric != M_NONE)
		label_thing(s, e, t);
	if (o->metric != M_NONE && metric_family_label(o->metric, &more))
		label(s, more.name, more.value);
}

/* What fits into a slice of the batch. True: all of it is written. */
static bool put_batch(struct openmetrics *om, const struct sink_source *src, struct buf *out)
{
	for (; om->series < om->n_batch; om->series++, om->point = 0) {
		const struct om_series *o = &om->batch.v[om->series];
		struct label_texts texts = { 0 };
		struct series_sample s = { .family = o->family, .name = o->family->name };

		label_all(&s, src, o, &texts);
		for (; om->point < o->points.n; om->point++) {
			if (out->len >= SLICE_BYTES)
				return false;
			s.value = o->points.v[om->point].value;
			s.time_ms = o->points.v[om->point].ms;
			if (!exposition_sample(&s, &om->text))
				return true; /* no memory: the driver sees it */
		}
	}
	return true;
}

static int om_end(void *state, const struct sink_source *src, struct buf *out)
{
	struct openmetrics *om = state;
	int r;

	om->text.out = out;
	if (!put_batch(om, src, out))
		return 1;
	r = om_take(om, src);
	if (r < 0)
		return r;
	if (om->n_batch)
		return 1;
	exposition_end(&om->text);
	return 0;
}

static void om_done(void *state)
{
	struct openmetrics *om = state;

	for (size_t i = 0; i < om->batch.n; i++)
		vec_done(&om->batch.v[i].points);
	vec_done(&om->batch);
	vec_done(&om->order);
}

const struct sink_type openmetrics_sink = {
	.name = "openmetrics",
	.extension = "om",
	.help = "series with their times, for Prometheus",
	.state_size = sizeof(struct openmetrics),
	.begin = om_begin,
	.end = om_end,
	.done = om_done,
};
