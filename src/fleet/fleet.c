/* SPDX-License-Identifier: MIT */
#include "fleet/fleet.h"

#include "base/num.h"
#include "base/text.h"
#include "fleet/answer.h"
#include "fleet/query.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

void fleet_begin(struct fleet *f, double window_s)
{
	*f = (struct fleet){ .now_s = NAN, .window_s = window_s };
}

void fleet_done(struct fleet *f)
{
	vec_done(&f->runs);
	vec_done(&f->nodes);
	vec_done(&f->places);
	vec_done(&f->ranks);
	vec_done(&f->ledgers);
	vec_done(&f->gpus);
	vec_done(&f->holds);
	vec_done(&f->verdicts);
	map_done(&f->run_map);
	map_done(&f->node_map);
	map_done(&f->place_map);
	map_done(&f->rank_map);
	map_done(&f->gpu_map);
	map_done(&f->hold_map);
	map_done(&f->verdict_map);
	free(f->rank_order);
	free(f->hold_order);
	*f = (struct fleet){ 0 };
}

/* FNV-1a, of a text behind what it begins with. */
static uint64_t hash(uint64_t h, const char *s)
{
	h ^= 0xcbf29ce484222325ull;
	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001b3ull;
	return map_mix(h);
}

/* Finding by text: two that have the same hash stand behind each other. */
static bool find_run(const struct fleet *f, const char *id, uint64_t *key, uint32_t *ret)
{
	for (*key = hash(1, id);; ++*key) {
		if (!map_get(&f->run_map, *key, ret))
			return false;
		if (strcmp(f->runs.v[*ret].id, id) == 0)
			return true;
	}
}

static int run_of(struct fleet *f, const struct fleet_sample *s, uint32_t *ret)
{
	struct fleet_run *r;
	char id[sizeof(r->id)];
	uint64_t key;

	text_safe_copy(id, sizeof(id), s->labels[LABEL_RUN]);
	if (!id[0])
		return -EINVAL;
	if (find_run(f, id, &key, ret))
		return 0;
	if (f->runs.n >= FLEET_RUNS_MAX)
		return -E2BIG;
	*ret = (uint32_t)f->runs.n;
	if (!map_put(&f->run_map, key, *ret) || !(r = vec_push(&f->runs)))
		return -ENOMEM;
	r->start_s = r->moves = r->mean_step_s = NAN;
	text_copy(r->id, sizeof(r->id), id);
	return 0;
}

static int node_of(struct fleet *f, const struct fleet_sample *s, uint32_t *ret)
{
	struct fleet_node *n;
	char name[sizeof(n->name)];
	uint64_t key;

	text_safe_copy(name, sizeof(name), s->labels[LABEL_NODE]);
	for (key = hash(2, name); map_get(&f->node_map, key, ret); key++)
		if (strcmp(f->nodes.v[*ret].name, name) == 0)
			return 0;
	if (f->nodes.n >= FLEET_NODES_MAX)
		return -E2BIG;
	*ret = (uint32_t)f->nodes.n;
	if (!map_put(&f->node_map, key, *ret) || !(n = vec_push(&f->nodes)))
		return -ENOMEM;
	n->io_wait = n->cpu_wait = n->memory_wait = NAN;
	text_copy(n->name, sizeof(n->name), name);
	return 0;
}

static uint64_t pair(uint32_t a, uint32_t b)
{
	return (uint64_t)a << 32 | b;
}

static int place_of(struct fleet *f, const struct fleet_sample *s, uint32_t *ret)
{
	struct fleet_place *p;
	uint32_t run = 0, node = 0;
	int r = run_of(f, s, &run);

	if (r == 0)
		r = node_of(f, s, &node);
	if (r < 0 || map_get(&f->place_map, pair(run, node), ret))
		return r;
	*ret = (uint32_t)f->places.n;
	if (!map_put(&f->place_map, pair(run, node), *ret) || !(p = vec_push(&f->places)))
		return -ENOMEM;
	*p = (struct fleet_place){ .run = run, .node = node, .up = NAN, .here = NAN };
	return 0;
}

static int rank_of(struct fleet *f, const struct fleet_sample *s, uint32_t *ret)
{
	const char *label = s->labels[LABEL_RANK];
	struct fleet_rank *r;
	uint32_t place = 0;
	int64_t number = -1;
	uint64_t key;
	int e;

	if (label[0] && (!num_parse_i64(label, &number) || number < 0 || number > INT32_MAX - 1))
		return -EINVAL;
	e = place_of(f, s, &place);
	key = pair(place, (uint32_t)(number + 1));
	if (e < 0 || map_get(&f->rank_map, key, ret))
		return e;
	if (f->ranks.n >= FLEET_RANKS_MAX)
		return -E2BIG;
	*ret = (uint32_t)f->ranks.n;
	if (!map_put(&f->rank_map, key, *ret) || !(r = vec_push(&f->ranks)))
		return -ENOMEM;
	*r = (struct fleet_rank){ .run = f->places.v[place].run,
				  .node = f->places.v[place].node,
				  .rank = (int32_t)number,
				  .info = NAN,
				  .steps = NAN,
				  .steps_ever = NAN,
				  .step_seconds = NAN,
				  .steps_timed = NAN,
				  .own = NAN,
				  .comm = NAN,
				  .data = NAN,
				  .last_step_s = NAN,
				  .ledger_from = FLEET_NONE };
	return 0;
}

static int ledger_of(struct fleet *f, const struct fleet_sample *s, uint32_t *ret)
{
	int state = 0, e = rank_of(f, s, ret);
	struct fleet_rank *r;

	if (e < 0)
		return e;
	while (state < TIME_STATES &&
	       strcmp(time_state_name((enum time_state)state), s->labels[LABEL_STATE]) != 0)
		state++;
	if (state == TIME_STATES)
		return -EINVAL; /* `unaccounted`, and states of later versions */
	r = &f->ranks.v[*ret];
	if (r->ledger_from == FLEET_NONE) {
		uint32_t from = (uint32_t)f->ledgers.n;

		if (!vec_reserve(&f->ledgers, f->ledgers.n + TIME_STATES))
			return -ENOMEM;
		for (int i = 0; i < TIME_STATES; i++)
			f->ledgers.v[f->ledgers.n++] = (struct fleet_ledger){ NAN, NAN };
		r->ledger_from = from;
	}
	*ret = r->ledger_from + (uint32_t)state;
	return 0;
}

static bool same_gpu(const struct fleet_gpu *a, const struct fleet_gpu *b)
{
	return a->node == b->node && strcmp(a->index, b->index) == 0 &&
	       strcmp(a->partition, b->partition) == 0 && strcmp(a->uuid, b->uuid) == 0;
}

static int gpu_of(struct fleet *f, const struct fleet_sample *s, uint32_t *ret)
{
	struct fleet_gpu *g, made = { .busy_max = NAN, .clock_hz = NAN, .xids = NAN };
	int e = node_of(f, s, &made.node);
	uint64_t key;

	made.held[HELD_POWER] = made.held[HELD_HEAT] = NAN;
	text_safe_copy(made.index, sizeof(made.index), s->labels[LABEL_GPU]);
	text_safe_copy(made.partition, sizeof(made.partition), s->labels[LABEL_PARTITION]);
	text_safe_copy(made.uuid, sizeof(made.uuid), s->labels[LABEL_GPU_UUID]);
	if (e < 0)
		return e;
	if (!made.index[0] && !made.uuid[0])
		return -EINVAL;
	key = hash(hash(hash(made.node, made.index), made.partition), made.uuid);
	for (; map_get(&f->gpu_map, key, ret); key++)
		if (same_gpu(&f->gpus.v[*ret], &made))
			return 0;
	if (f->gpus.n >= FLEET_GPUS_MAX)
		return -E2BIG;
	*ret = (uint32_t)f->gpus.n;
	if (!map_put(&f->gpu_map, key, *ret) || !(g = vec_push(&f->gpus)))
		return -ENOMEM;
	*g = made;
	return 0;
}

static int hold_of(struct fleet *f, const struct fleet_sample *s, uint32_t *ret)
{
	struct fleet_hold *h;
	uint32_t rank = 0, gpu = 0;
	int e = rank_of(f, s, &rank);

	if (e == 0)
		e = gpu_of(f, s, &gpu);
	if (e < 0 || map_get(&f->hold_map, pair(rank, gpu), ret))
		return e;
	*ret = (uint32_t)f->holds.n;
	if (!map_put(&f->hold_map, pair(rank, gpu), *ret) || !(h = vec_push(&f->holds)))
		return -ENOMEM;
	*h = (struct fleet_hold){ .rank = rank, .gpu = gpu, .info = NAN, .memory = NAN };
	return 0;
}

static int verdict_of(struct fleet *f, const struct fleet_sample *s, uint32_t *ret)
{
	struct fleet_verdict *v;
	char cause[sizeof(v->cause)];
	uint32_t place = 0;
	int e = place_of(f, s, &place);
	uint64_t key;

	text_safe_copy(cause, sizeof(cause), s->labels[LABEL_CAUSE]);
	if (e < 0 || !cause[0])
		return e < 0 ? e : -EINVAL;
	for (key = hash(place, cause); map_get(&f->verdict_map, key, ret); key++) {
		v = &f->verdicts.v[*ret];
		if (v->run == f->places.v[place].run && v->node == f->places.v[place].node &&
		    strcmp(v->cause, cause) == 0)
			return 0;
	}
	if (f->verdicts.n >= FLEET_VERDICTS_MAX)
		return -E2BIG;
	*ret = (uint32_t)f->verdicts.n;
	if (!map_put(&f->verdict_map, key, *ret) || !(v = vec_push(&f->verdicts)))
		return -ENOMEM;
	*v = (struct fleet_verdict){ .run = f->places.v[place].run,
				     .node = f->places.v[place].node,
				     .info = NAN,
				     .cost = NAN,
				     .confidence = NAN };
	text_copy(v->cause, sizeof(v->cause), cause);
	return 0;
}

/* Of a run's labels on several nodes the first that says something. */
static void take_info(struct fleet *f, const struct fleet_sample *s, uint32_t run)
{
	struct fleet_run *r = &f->runs.v[run];
	int64_t world;

	if (!r->name[0])
		text_safe_copy(r->name, sizeof(r->name), s->labels[LABEL_NAME]);
	if (!r->source[0])
		text_safe_copy(r->source, sizeof(r->source), s->labels[LABEL_SOURCE]);
	if (!r->framework[0])
		text_safe_copy(r->framework, sizeof(r->framework), s->labels[LABEL_FRAMEWORK]);
	if (num_parse_i64(s->labels[LABEL_WORLD_SIZE], &world) && world > r->world &&
	    world <= INT32_MAX)
		r->world = (int32_t)world;
}

/* The struct this sample is about, as bytes that a query's offset counts in; made when it is new. */
static int thing_of(struct fleet *f, const struct query *q, const struct fleet_sample *s,
		    char **ret)
{
	uint32_t at = 0;
	int r = 0;

	*ret = NULL;
	switch (q->of) {
	case OF_NOW:
		*ret = (char *)f;
		break;
	case OF_RUN:
	case OF_RUN_INFO:
		if ((r = run_of(f, s, &at)) == 0 && q->of == OF_RUN)
			*ret = (char *)&f->runs.v[at];
		else if (r == 0)
			take_info(f, s, at);
		break;
	case OF_PLACE:
		if ((r = place_of(f, s, &at)) == 0)
			*ret = (char *)&f->places.v[at];
		break;
	case OF_RANK:
		if ((r = rank_of(f, s, &at)) == 0)
			*ret = (char *)&f->ranks.v[at];
		break;
	case OF_LEDGER:
		if ((r = ledger_of(f, s, &at)) == 0)
			*ret = (char *)&f->ledgers.v[at];
		break;
	case OF_HOLD:
		if ((r = hold_of(f, s, &at)) == 0)
			*ret = (char *)&f->holds.v[at];
		break;
	case OF_GPU:
	case OF_GPU_REASON:
		if ((r = gpu_of(f, s, &at)) == 0)
			*ret = (char *)&f->gpus.v[at];
		break;
	case OF_NODE:
		if ((r = node_of(f, s, &at)) == 0)
			*ret = (char *)&f->nodes.v[at];
		break;
	case OF_VERDICT:
		if ((r = verdict_of(f, s, &at)) == 0) {
			struct fleet_verdict *v = &f->verdicts.v[at];

			if (!v->family[0])
				text_safe_copy(v->family, sizeof(v->family),
					       s->labels[LABEL_FAMILY]);
			*ret = (char *)v;
		}
		break;
	}
	return r;
}

int fleet_take(struct fleet *f, const struct query *q, const struct fleet_sample *s)
{
	size_t offset = q->offset;
	char *thing;
	double old;
	int r = thing_of(f, q, s, &thing);

	if (r == 0 && q->of == OF_GPU_REASON) {
		if (strcmp(s->labels[LABEL_REASON], "thermal") == 0)
			offset += HELD_HEAT * sizeof(double);
		else if (strcmp(s->labels[LABEL_REASON], "power") != 0)
			r = -EINVAL;
	}
	if (r == -EINVAL)
		f->odd++;
	if (r < 0)
		return r == -EINVAL ? 0 : r;
	if (!thing)
		return 0;
	memcpy(&old, thing + offset, sizeof(old));
	if (!isfinite(old) || (q->join == JOIN_MIN ? s->value < old : s->value > old))
		memcpy(thing + offset, &s->value, sizeof(s->value));
	return 0;
}

const struct fleet_run *fleet_find(const struct fleet *f, const char *id)
{
	char safe[sizeof(f->runs.v->id)];
	uint64_t key;
	uint32_t at;

	text_safe_copy(safe, sizeof(safe), id);
	return find_run(f, safe, &key, &at) ? &f->runs.v[at] : NULL;
}

const struct fleet_place *fleet_place_of(const struct fleet *f, uint32_t run, uint32_t node)
{
	uint32_t at;

	return map_get(&f->place_map, pair(run, node), &at) ? &f->places.v[at] : NULL;
}
