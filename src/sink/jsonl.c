/* SPDX-License-Identifier: MIT
 *
 * One JSON object a line, "type" says which: first the run, then every entity (process, thread,
 * disk...), then samples, events, steps, scalars and phases by time, then an end line that tells a whole file from a cut one.
 *
 *	{"type":"run","schema":"spotter.samples/1","id":"20261115-211209-4f3a","name":"train.py",...}
 *	{"type":"entity","id":17,"kind":"process","name":"python3","key":4242,...}
 *	{"type":"sample","t":0.1,"entity":17,"metric":"proc.cpu","value":1.25}
 *	{"type":"event","t":8.2,"kind":"oom_kill","text":"..."}
 *	{"type":"step","t":8.4,"seconds":0.158,"step":41,"entity":17,"loss":0.31,"data_wait":0.002}
 *	{"type":"scalar","t":8.4,"step":41,"entity":17,"name":"accuracy","value":0.9}
 *	{"type":"phase","t":9.1,"end":12.3,"entity":17,"name":"evaluate"}
 *	{"type":"end","samples":123456,"steps":41}
 */
#include "sink/sink.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "model/step_usage.h"

#include <string.h>

struct jsonl_state {
	uint64_t samples, steps;
};

static double since_start(const struct run_info *run, int64_t t_ns)
{
	return ((double)t_ns - (double)run->started_mono_ns) / 1e9;
}

static void begin_line(struct json *j, struct buf *out, const char *type)
{
	json_init(j, out, false);
	json_begin(j, '{');
	json_key_str(j, "type", type);
}

static void end_line(struct json *j)
{
	json_end(j, '}');
	buf_char(j->out, '\n');
}

static void put_exit(struct json *j, const struct run_info *run)
{
	if (!run->has_exit)
		return;
	json_key_begin(j, "exit", '{');
	if (run->exit_signal)
		json_key_int(j, "signal", run->exit_signal);
	else
		json_key_int(j, "code", run->exit_code);
	json_end(j, '}');
}

static void put_run(const struct run_info *run, struct buf *out)
{
	char started[32];
	struct json j;

	clock_iso(run->started_wall_ns, started, sizeof(started));
	begin_line(&j, out, "run");
	json_key_str(&j, "schema", "spotter.samples/1");
	json_key_str(&j, "id", run->id);
	json_key_str(&j, "name", run->name);
	json_key_begin(&j, "argv", '[');
	for (char **a = run->argv; a && *a; a++)
		json_str(&j, *a);
	json_end(&j, ']');
	json_key_str(&j, "cwd", run->cwd);
	if (run->machine.hostname[0])
		json_key_str(&j, "host", run->machine.hostname);
	json_key_str(&j, "started", started);
	json_key_num(&j, "duration_s", since_start(run, run->ended_mono_ns));
	json_key_str(&j, "state", run_state_name(run->state));
	put_exit(&j, run);
	json_key_num(&j, "hz", run->hz);
	end_line(&j);
}

static void put_entity(const struct run_info *run, const struct entity *e, struct buf *out)
{
	struct json j;

	begin_line(&j, out, "entity");
	json_key_int(&j, "id", e->id);
	if (e->parent)
		json_key_int(&j, "parent", e->parent);
	json_key_str(&j, "kind", entity_kind_name(e->kind));
	json_key_str(&j, "name", e->name ? e->name : "");
	if (sink_has_key(e))
		json_key_int(&j, "key", e->key);
	if (e->detail && e->detail[0])
		json_key_str(&j, "detail", e->detail);
	json_key_num(&j, "born", since_start(run, e->born_ns));
	if (e->gone_ns)
		json_key_num(&j, "gone", since_start(run, e->gone_ns));
	end_line(&j);
}

static int jsonl_begin(void *state, const struct sink_source *src, struct buf *out)
{
	(void)state;
	put_run(src->run, out);
	for (size_t i = 0; i < src->entities->rows.n; i++)
		put_entity(src->run, &src->entities->rows.v[i], out);
	return 0;
}

static int jsonl_sample(void *state, const struct sink_source *src, const struct sink_sample *s,
			struct buf *out)
{
	struct jsonl_state *st = state;
	struct json j;

	begin_line(&j, out, "sample");
	json_key_num(&j, "t", since_start(src->run, s->t_ns));
	json_key_int(&j, "entity", s->entity);
	json_key_str(&j, "metric", s->metric);
	json_key_num(&j, "value", s->value);
	end_line(&j);
	st->samples++;
	return 0;
}

static int jsonl_event(void *state, const struct sink_source *src, const struct window_event *e,
		       struct buf *out)
{
	struct json j;

	(void)state;
	begin_line(&j, out, "event");
	json_key_num(&j, "t", since_start(src->run, e->t_ns));
	json_key_str(&j, "kind", event_kind_name(e->kind));
	if (e->entity)
		json_key_int(&j, "entity", e->entity);
	json_key_num(&j, "value", e->value);
	json_key_str(&j, "text", e->text);
	end_line(&j);
	return 0;
}

static void put_usage(struct json *j, const struct sink_source *src, const struct window_step *s)
{
	struct step_usage u;

	if (!src->window || !step_usage(src->window, s, &u))
		return;
	json_key_num(j, "cpu_cores", u.cores);
	json_key_num(j, "memory_bytes", u.memory);
	json_key_num(j, "gpu_busy", u.gpu_busy);
	json_key_num(j, "gpu_memory_bytes", u.gpu_memory);
	json_key_num(j, "gpu_power_w", u.gpu_power);
}

static int jsonl_step(void *state, const struct sink_source *src, const struct window_step *s,
		      struct buf *out)
{
	struct jsonl_state *st = state;
	struct json j;

	begin_line(&j, out, "step");
	json_key_num(&j, "t", since_start(src->run, s->end_ns));
	if (s->begin_ns < s->end_ns)
		json_key_num(&j, "seconds", ((double)s->end_ns - (double)s->begin_ns) / 1e9);
	json_key_int(&j, "step", (int64_t)s->number);
	if (s->rank >= 0)
		json_key_int(&j, "rank", s->rank);
	json_key_int(&j, "entity", s->entity);
	json_key_num(&j, "loss", s->loss);
	json_key_num(&j, "data_wait", s->data_wait);
	if (s->micro)
		json_key_int(&j, "batches", s->micro);
	put_usage(&j, src, s);
	end_line(&j);
	st->steps++;
	return 0;
}

static int jsonl_scalar(void *state, const struct sink_source *src, const struct window_scalar *s,
			struct buf *out)
{
	struct json j;

	(void)state;
	begin_line(&j, out, "scalar");
	json_key_num(&j, "t", since_start(src->run, s->t_ns));
	json_key_int(&j, "step", (int64_t)s->step);
	if (s->rank >= 0)
		json_key_int(&j, "rank", s->rank);
	json_key_int(&j, "entity", s->entity);
	json_key_str(&j, "name", s->name);
	json_key_num(&j, "value", s->value);
	end_line(&j);
	return 0;
}

static int jsonl_phase(void *state, const struct sink_source *src, const struct window_phase *p,
		       struct buf *out)
{
	struct json j;

	(void)state;
	begin_line(&j, out, "phase");
	json_key_num(&j, "t", since_start(src->run, p->begin_ns));
	if (p->end_ns)
		json_key_num(&j, "end", since_start(src->run, p->end_ns));
	json_key_int(&j, "entity", p->entity);
	json_key_str(&j, "name", p->name);
	end_line(&j);
	return 0;
}

static int jsonl_end(void *state, const struct sink_source *src, struct buf *out)
{
	const struct jsonl_state *st = state;
	struct json j;

	(void)src;
	begin_line(&j, out, "end");
	json_key_int(&j, "samples", (int64_t)st->samples);
	if (st->steps)
		json_key_int(&j, "steps", (int64_t)st->steps);
	end_line(&j);
	return 0;
}

const struct sink_type jsonl_sink = {
	.name = "jsonl",
	.extension = "jsonl",
	.help = "one JSON object a line: run, entities, samples, events and steps",
	.state_size = sizeof(struct jsonl_state),
	.begin = jsonl_begin,
	.sample = jsonl_sample,
	.event = jsonl_event,
	.step = jsonl_step,
	.scalar = jsonl_scalar,
	.phase = jsonl_phase,
	.end = jsonl_end,
};
