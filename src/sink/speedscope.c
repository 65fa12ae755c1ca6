/* SPDX-License-Identifier: MIT
 *
 * A file for https://www.speedscope.app: one "sampled" profile a thread, weights in seconds of wall
 * time, frames shared by all. Facts of the format: https://www.speedscope.app/file-format-schema.json
 *
 *	{"$schema":"...","shared":{"frames":[{"name":"train","file":"/x/train.py","line":41},...]},
 *	 "profiles":[{"type":"sampled","name":"python3 (4711), main thread","unit":"seconds",
 *	              "startValue":0,"endValue":59.8,"samples":[[0,1],[0,2]],"weights":[1.2,0.4]},...]}
 *
 * A record counts stacks by the second, so within a second the order of samples is not that of time.
 * A profile must be in one piece while slices come for all threads at once: so 24 bytes a row are
 * kept, and no frames; rows of a thread that go on as the last one did are one.
 */
#include "sink/sink.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/map.h"
#include "base/text.h"
#include "base/vec.h"
#include "model/stack_text.h"

#include <errno.h>
#include <string.h>

enum { WRITE_AT = 256 << 10 };

struct item {
	struct stack_look look;
	uint32_t next; /* of the same thread: place in items + 1; 0 the last */
	int64_t weight_ns;
};

struct thread {
	uint32_t entity;
	uint32_t first, last; /* place in items + 1 */
	int64_t weight_ns;
};

/* What end() writes next: one frame, one sample or one weight at a time. */
enum step { STEP_HEAD, STEP_FRAMES, STEP_PROFILE, STEP_SAMPLES, STEP_WEIGHTS, STEP_DONE };

struct speedscope_state {
	VEC(struct item) items;
	VEC(struct thread) threads;
	struct map by_entity; /* -> place in threads */
	VEC(uint32_t) frames; /* codes */
	struct map by_code;   /* -> place in frames */
	struct map nodes;     /* whose places have frames */
	struct json json;
	enum step step;
	size_t at;     /* frame, or thread */
	uint32_t item; /* place in items + 1 */
};

static int speedscope_begin(void *state, const struct sink_source *src, struct buf *out)
{
	(void)state;
	(void)src;
	(void)out;
	return 0;
}

static bool add_frame(struct speedscope_state *st, uint32_t code)
{
	uint32_t at, *frame;

	if (map_get(&st->by_code, code, &at))
		return true;
	frame = vec_push(&st->frames);
	if (!frame)
		return false;
	*frame = code;
	return map_put(&st->by_code, code, (uint32_t)(st->frames.n - 1));
}

/* Frames are written before the samples that use them. */
static bool add_frames(struct speedscope_state *st, const struct stack_book *b,
		       const struct stack_look *l)
{
	uint64_t key =
	    (uint64_t)l->node << 32 | (uint32_t)l->hole << 16 | (uint32_t)l->kind << 8 | l->on;
	uint32_t codes[STACK_CODES_MAX], seen;
	size_t n;

	if (map_get(&st->nodes, key, &seen))
		return true;
	n = stack_codes(b, l, codes);
	for (size_t i = 0; i < n; i++)
		if (!add_frame(st, codes[i]))
			return false;
	return map_put(&st->nodes, key, 1);
}

static struct thread *find_thread(struct speedscope_state *st, uint32_t entity)
{
	struct thread *t;
	uint32_t at;

	if (map_get(&st->by_entity, entity, &at))
		return &st->threads.v[at];
	t = vec_push(&st->threads);
	if (!t || !map_put(&st->by_entity, entity, (uint32_t)(st->threads.n - 1)))
		return NULL;
	t->entity = entity;
	return t;
}

static void add_weight(int64_t *sum, int64_t more)
{
	if (__builtin_add_overflow(*sum, more, sum))
		*sum = INT64_MAX;
}

static int add_row(struct speedscope_state *st, const struct stack_book *b,
		   const struct stack_row *r)
{
	struct stack_look look = stack_look_of(r);
	struct thread *t = find_thread(st, r->entity);
	struct item *item;

	if (!t || !add_frames(st, b, &look))
		return -ENOMEM;
	add_weight(&t->weight_ns, r->weight_ns);
	item = t->last ? &st->items.v[t->last - 1] : NULL;
	if (!item || !stack_look_same(&item->look, &look)) {
		item = st->items.n < UINT32_MAX - 1 ? vec_push(&st->items) : NULL;
		if (!item)
			return -ENOMEM;
		item->look = look;
		if (t->last)
			st->items.v[t->last - 1].next = (uint32_t)st->items.n;
		else
			t->first = (uint32_t)st->items.n;
		t->last = (uint32_t)st->items.n;
	}
	add_weight(&item->weight_ns, r->weight_ns);
	return 0;
}

static int speedscope_stack(void *state, const struct sink_source *src, const struct stack_slice *s,
			    struct buf *out)
{
	(void)out;
	for (size_t i = 0; i < s->n; i++) {
		/* A damaged record may hold any number. */
		int r = s->rows[i].weight_ns > 0 ? add_row(state, src->book, &s->rows[i]) : 0;

		if (r < 0)
			return r;
	}
	return 0;
}

static void put_head(struct json *j, const struct sink_source *src)
{
	auto_done(buf) struct buf text = { 0 };

	json_begin(j, '{');
	json_key_str(j, "$schema", "https://www.speedscope.app/file-format-schema.json");
	json_key_str(j, "exporter", "spotter " SPOTTER_VERSION);
	text_safe(&text, src->run->name, strlen(src->run->name));
	json_key_str(j, "name", buf_text(&text));
	json_key_int(j, "activeProfileIndex", 0);
	json_key_begin(j, "shared", '{');
	json_key_begin(j, "frames", '[');
}

static void put_frame(struct json *j, const struct stack_book *b, uint32_t code)
{
	const struct place *p = stack_code_place(b, code);
	auto_done(buf) struct buf text = { 0 };

	json_begin(j, '{');
	stack_code_name(b, code, &text);
	json_key_str(j, "name", buf_text(&text));
	if (p && p->file && p->file[0]) {
		buf_reset(&text);
		text_safe(&text, p->file, strlen(p->file));
		json_key_str(j, "file", buf_text(&text));
	}
	if (p && p->line > 0)
		json_key_int(j, "line", p->line);
	json_end(j, '}');
}

static void put_profile(struct json *j, const struct sink_source *src, const struct thread *t)
{
	auto_done(buf) struct buf name = { 0 };

	stack_process_name(src->entities, t->entity, &name);
	buf_str(&name, ", ");
	stack_thread_name(src->entities, t->entity, &name);
	json_begin(j, '{');
	json_key_str(j, "type", "sampled");
	json_key_str(j, "name", buf_text(&name));
	json_key_str(j, "unit", "seconds");
	json_key_num(j, "startValue", 0);
	json_key_num(j, "endValue", (double)t->weight_ns / 1e9);
	json_key_begin(j, "samples", '[');
}

static void put_sample(struct speedscope_state *st, const struct stack_book *b,
		       const struct stack_look *l)
{
	uint32_t codes[STACK_CODES_MAX], frame;
	size_t n = stack_codes(b, l, codes);

	json_begin(&st->json, '[');
	for (size_t i = 0; i < n; i++)
		if (map_get(&st->by_code, codes[i], &frame))
			json_int(&st->json, frame);
	json_end(&st->json, ']');
}

static void step_frames(struct speedscope_state *st, const struct sink_source *src)
{
	if (st->at < st->frames.n) {
		put_frame(&st->json, src->book, st->frames.v[st->at++]);
		return;
	}
	json_end(&st->json, ']');
	json_end(&st->json, '}');
	json_key_begin(&st->json, "profiles", '[');
	st->at = 0;
	st->step = STEP_PROFILE;
}

static void step_profile(struct speedscope_state *st, const struct sink_source *src)
{
	if (st->at < st->threads.n) {
		put_profile(&st->json, src, &st->threads.v[st->at]);
		st->item = st->threads.v[st->at].first;
		st->step = STEP_SAMPLES;
		return;
	}
	json_end(&st->json, ']');
	json_end(&st->json, '}');
	buf_char(st->json.out, '\n');
	st->step = STEP_DONE;
}

static void step_samples(struct speedscope_state *st, const struct sink_source *src)
{
	if (st->item) {
		put_sample(st, src->book, &st->items.v[st->item - 1].look);
		st->item = st->items.v[st->item - 1].next;
		return;
	}
	json_end(&st->json, ']');
	json_key_begin(&st->json, "weights", '[');
	st->item = st->threads.v[st->at].first;
	st->step = STEP_WEIGHTS;
}

static void step_weights(struct speedscope_state *st)
{
	if (st->item) {
		json_num(&st->json, (double)st->items.v[st->item - 1].weight_ns / 1e9);
		st->item = st->items.v[st->item - 1].next;
		return;
	}
	json_end(&st->json, ']');
	json_end(&st->json, '}');
	st->at++;
	st->step = STEP_PROFILE;
}

static void write_step(struct speedscope_state *st, const struct sink_source *src)
{
	if (st->step == STEP_HEAD) {
		put_head(&st->json, src);
		st->step = STEP_FRAMES;
	} else if (st->step == STEP_FRAMES) {
		step_frames(st, src);
	} else if (st->step == STEP_PROFILE) {
		step_profile(st, src);
	} else if (st->step == STEP_SAMPLES) {
		step_samples(st, src);
	} else {
		step_weights(st);
	}
}

static int speedscope_end(void *state, const struct sink_source *src, struct buf *out)
{
	struct speedscope_state *st = state;
	size_t enough = out->len + WRITE_AT;

	if (st->step == STEP_HEAD)
		json_init(&st->json, out, false);
	st->json.out = out;
	while (st->step != STEP_DONE && out->len < enough && buf_ok(out))
		write_step(st, src);
	return st->step != STEP_DONE && buf_ok(out);
}

static void speedscope_done(void *state)
{
	struct speedscope_state *st = state;

	vec_done(&st->items);
	vec_done(&st->threads);
	vec_done(&st->frames);
	map_done(&st->by_entity);
	map_done(&st->by_code);
	map_done(&st->nodes);
}

const struct sink_type speedscope_sink = {
	.name = "speedscope",
	.extension = "speedscope.json",
	.help = "stacks by time and thread for speedscope.app, one JSON file",
	.state_size = sizeof(struct speedscope_state),
	.begin = speedscope_begin,
	.stack = speedscope_stack,
	.end = speedscope_end,
	.done = speedscope_done,
};
