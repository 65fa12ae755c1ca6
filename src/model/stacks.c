/* SPDX-License-Identifier: MIT */
#include "model/stacks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FUNCTION_MAX = 255, FILE_MAX = 1023, SOURCE_MAX = 255, TEXTS_MAX = 3 * STACK_PLACES_MAX };

void stack_book_done(struct stack_book *b)
{
	for (size_t i = 0; i < b->texts.n; i++)
		free(b->texts.v[i]);
	vec_done(&b->texts);
	vec_done(&b->text_next);
	vec_done(&b->places);
	vec_done(&b->place_next);
	vec_done(&b->nodes);
	map_done(&b->by_node);
	map_done(&b->by_place);
	map_done(&b->by_text);
}

/* FNV-1a: texts are short, and a chain of equal hashes is only slow. */
static uint64_t hash_text(const char *s, size_t n)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (size_t i = 0; i < n; i++)
		h = (h ^ (unsigned char)s[i]) * 0x100000001b3u;
	return map_mix(h);
}

/* The book's own copy of a text, one for all that are equal; NULL without memory. */
static const char *keep_text(struct stack_book *b, const char *s, size_t max)
{
	size_t n = s ? strnlen(s, max) : 0;
	uint64_t h;
	uint32_t at, first = 0;
	char *copy, **slot;
	uint32_t *next;

	if (!n)
		return "";
	h = hash_text(s, n);
	if (map_get(&b->by_text, h, &first))
		for (at = first; at; at = b->text_next.v[at - 1])
			if (strncmp(b->texts.v[at - 1], s, n) == 0 && !b->texts.v[at - 1][n])
				return b->texts.v[at - 1];
	copy = b->texts.n < TEXTS_MAX ? strndup(s, n) : NULL;
	slot = copy ? vec_push(&b->texts) : NULL;
	next = slot ? vec_push(&b->text_next) : NULL;
	if (!next || !map_put(&b->by_text, h, (uint32_t)b->texts.n)) {
		b->texts.n -= slot ? 1 : 0;
		b->text_next.n -= next ? 1 : 0;
		free(copy);
		return NULL;
	}
	*slot = copy;
	*next = first;
	return copy;
}

static uint64_t hash_place(const struct place *p)
{
	uint64_t h = map_mix((uint64_t)(uintptr_t)p->function);

	h = map_mix(h ^ (uint64_t)(uintptr_t)p->file);
	return map_mix(h ^ ((uint64_t)(uint32_t)p->line << 8) ^ (uint64_t)p->kind);
}

/* Texts of equal content are one text, so pointers tell. */
static bool same_place(const struct place *a, const struct place *b)
{
	return a->function == b->function && a->file == b->file && a->line == b->line &&
	       a->kind == b->kind;
}

static int keep_place(struct stack_book *b, const struct place *p, struct place *ret)
{
	*ret = (struct place){ .kind = p->kind, .line = p->line };
	ret->function = keep_text(b, p->function, FUNCTION_MAX);
	ret->file = keep_text(b, p->file, FILE_MAX);
	ret->source = keep_text(b, p->source, SOURCE_MAX);
	return ret->function && ret->file && ret->source ? 0 : -ENOMEM;
}

uint32_t stack_book_place(struct stack_book *b, const struct place *p)
{
	struct place own, *slot;
	uint32_t first = 0, *next;
	uint64_t h;

	if (keep_place(b, p, &own) < 0)
		return 0;
	h = hash_place(&own);
	if (map_get(&b->by_place, h, &first))
		for (uint32_t at = first; at; at = b->place_next.v[at - 1])
			if (same_place(&b->places.v[at - 1], &own))
				return at;
	slot = b->places.n < STACK_PLACES_MAX ? vec_push(&b->places) : NULL;
	next = slot ? vec_push(&b->place_next) : NULL;
	if (!next || !map_put(&b->by_place, h, (uint32_t)b->places.n)) {
		b->places.n -= slot ? 1 : 0;
		b->place_next.n -= next ? 1 : 0;
		return 0;
	}
	*slot = own;
	*next = first;
	return (uint32_t)b->places.n;
}

uint32_t stack_book_node(struct stack_book *b, uint32_t parent, uint32_t place)
{
	uint64_t key = (uint64_t)parent << 32 | place;
	struct stack_node *n;
	uint32_t id;

	if (map_get(&b->by_node, key, &id))
		return id;
	if (!place || parent > b->nodes.n || b->nodes.n >= STACK_NODES_MAX)
		return 0;
	n = vec_push(&b->nodes);
	if (!n || !map_put(&b->by_node, key, (uint32_t)b->nodes.n)) {
		b->nodes.n -= n ? 1 : 0;
		return 0;
	}
	*n = (struct stack_node){ .parent = parent, .place = place };
	return (uint32_t)b->nodes.n;
}

int stack_book_set_place(struct stack_book *b, uint32_t id, const struct place *p)
{
	struct place own;

	if (!id || id > STACK_PLACES_MAX)
		return -EINVAL;
	if (keep_place(b, p, &own) < 0)
		return -ENOMEM;
	while (b->places.n < id) {
		struct place *hole = vec_push(&b->places);
		uint32_t *next = hole ? vec_push(&b->place_next) : NULL;

		if (!next) {
			b->places.n -= hole ? 1 : 0;
			return -ENOMEM;
		}
		*hole = (struct place){ .function = "", .file = "", .source = "" };
	}
	b->places.v[id - 1] = own;
	return 0;
}

int stack_book_set_node(struct stack_book *b, uint32_t id, uint32_t parent, uint32_t place)
{
	if (!id || id > STACK_NODES_MAX || parent >= id || !place || place > STACK_PLACES_MAX)
		return -EINVAL;
	while (b->nodes.n < id)
		if (!vec_push(&b->nodes))
			return -ENOMEM;
	b->nodes.v[id - 1] = (struct stack_node){ .parent = parent, .place = place };
	return 0;
}

const struct place *stack_book_find_place(const struct stack_book *b, uint32_t id)
{
	return id && id <= b->places.n ? &b->places.v[id - 1] : NULL;
}

const struct stack_node *stack_book_find_node(const struct stack_book *b, uint32_t id)
{
	return id && id <= b->nodes.n ? &b->nodes.v[id - 1] : NULL;
}

size_t stack_book_walk(const struct stack_book *b, uint32_t node, uint32_t *places, size_t max)
{
	const struct stack_node *n;
	size_t k = 0;

	/* Parents are below their children, so this ends; the bound keeps it short as well. */
	while (k < max && k < STACK_DEPTH_MAX && (n = stack_book_find_node(b, node))) {
		places[k++] = n->place;
		node = n->parent;
	}
	return k;
}
