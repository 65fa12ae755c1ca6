/* SPDX-License-Identifier: MIT */
#include "model/stack_sum.h"

#include <errno.h>

void stack_sum_done(struct stack_sum *s)
{
	vec_done(&s->lines);
	map_done(&s->by_hash);
}

static uint64_t hash_of(uint32_t owner, const struct stack_look *l)
{
	uint64_t look = (uint64_t)l->hole << 16 | (uint64_t)l->kind << 8 | l->on;

	return map_mix(map_mix((uint64_t)owner << 32 | l->node) ^ look);
}

static struct stack_line *find(struct stack_sum *s, uint32_t owner, const struct stack_look *l)
{
	uint64_t h = hash_of(owner, l);
	uint32_t first = 0;
	struct stack_line *line;

	if (map_get(&s->by_hash, h, &first))
		for (uint32_t at = first; at; at = s->lines.v[at - 1].next) {
			line = &s->lines.v[at - 1];
			if (line->owner == owner && stack_look_same(&line->look, l))
				return line;
		}
	line = s->lines.n < UINT32_MAX - 1 ? vec_push(&s->lines) : NULL;
	if (!line || !map_put(&s->by_hash, h, (uint32_t)s->lines.n))
		return NULL;
	*line = (struct stack_line){ .owner = owner, .next = first, .look = *l };
	return line;
}

int stack_sum_add(struct stack_sum *s, uint32_t owner, const struct stack_row *row)
{
	struct stack_look look = stack_look_of(row);
	struct stack_line *line;

	if (row->weight_ns <= 0)
		return 0;
	line = find(s, owner, &look);
	if (!line)
		return -ENOMEM;
	if (__builtin_add_overflow(line->weight_ns, row->weight_ns, &line->weight_ns))
		line->weight_ns = INT64_MAX;
	return 0;
}
