/* SPDX-License-Identifier: MIT */
#include "engine/stack_tally.h"

void stack_tally_done(struct stack_tally *t)
{
	stack_book_done(&t->book);
	vec_done(&t->rows);
	vec_done(&t->next);
	vec_done(&t->again);
	map_done(&t->by_row);
}

static uint64_t hash_of(const struct stack_row *r)
{
	uint64_t h = map_mix((uint64_t)r->entity << 32 | r->node);

	return map_mix(h ^ ((uint64_t)r->peer << 24 | (uint64_t)r->kind << 16 |
			    (uint64_t)r->on << 8 | r->flags));
}

static bool same(const struct stack_row *a, const struct stack_row *b)
{
	return a->entity == b->entity && a->node == b->node && a->peer == b->peer &&
	       a->kind == b->kind && a->on == b->on && a->flags == b->flags;
}

void stack_tally_add(struct stack_tally *t, const struct stack_row *row)
{
	uint64_t h = hash_of(row);
	uint32_t first = 0, *next;
	struct stack_row *slot;

	if (map_get(&t->by_row, h, &first))
		for (uint32_t at = first; at; at = t->next.v[at - 1])
			if (same(&t->rows.v[at - 1], row)) {
				t->rows.v[at - 1].count += row->count;
				t->rows.v[at - 1].weight_ns += row->weight_ns;
				return;
			}
	slot = vec_push(&t->rows);
	next = slot ? vec_push(&t->next) : NULL;
	if (!next || !map_put(&t->by_row, h, (uint32_t)t->rows.n)) {
		t->rows.n -= slot ? 1 : 0;
		t->next.n -= next ? 1 : 0;
		t->failed = true;
		return;
	}
	*slot = *row;
	*next = first;
}

void stack_tally_source(struct stack_tally *t, uint32_t place, const char *source)
{
	const struct place *p = stack_book_find_place(&t->book, place);
	uint32_t *again;
	struct place with;

	if (!p)
		return;
	with = *p;
	with.source = source;
	if (stack_book_set_place(&t->book, place, &with) < 0)
		return;
	again = place <= t->told_places ? vec_push(&t->again) : NULL;
	if (again)
		*again = place;
}

void stack_tally_tell(struct stack_tally *t, int64_t now_ns, struct frame *f)
{
	for (; t->told_places < t->book.places.n; t->told_places++)
		frame_place(f, t->told_places + 1, &t->book.places.v[t->told_places]);
	for (size_t i = 0; i < t->again.n; i++)
		frame_place(f, t->again.v[i], &t->book.places.v[t->again.v[i] - 1]);
	for (; t->told_nodes < t->book.nodes.n; t->told_nodes++)
		frame_node(f, t->told_nodes + 1, &t->book.nodes.v[t->told_nodes]);
	for (size_t i = 0; i < t->rows.n; i++)
		frame_stack(f, &t->rows.v[i]);
	f->stacks_from_ns = t->from_ns;
	f->stacks_to_ns = now_ns;
	f->failed |= t->failed;
	t->failed = false;
	t->rows.n = t->next.n = t->again.n = 0;
	map_clear(&t->by_row);
	t->from_ns = now_ns;
}

void stack_frame_append(struct frame *dst, const struct frame *src)
{
	for (size_t i = 0; i < src->places.n; i++) {
		const struct frame_place *p = &src->places.v[i];

		frame_place(dst, p->id,
			    &(struct place){ .kind = p->kind,
					     .line = p->line,
					     .function = frame_text(src, p->function),
					     .file = frame_text(src, p->file),
					     .source = frame_text(src, p->source) });
	}
	for (size_t i = 0; i < src->nodes.n; i++) {
		const struct frame_node *n = &src->nodes.v[i];

		frame_node(dst, n->id, &(struct stack_node){ n->parent, n->place });
	}
	for (size_t i = 0; i < src->stacks.n; i++)
		frame_stack(dst, &src->stacks.v[i]);
	for (size_t i = 0; i < src->events.n; i++) {
		const struct event *e = &src->events.v[i];

		frame_event(dst, e->kind, e->entity, e->value, "%s", frame_text(src, e->text));
	}
	for (size_t i = 0; i < src->samples.n; i++)
		frame_put(dst, (enum metric_id)src->samples.v[i].metric, src->samples.v[i].entity,
			  src->samples.v[i].raw);
	dst->stacks_from_ns = src->stacks_from_ns;
	dst->stacks_to_ns = src->stacks_to_ns;
	dst->failed |= src->failed;
}
