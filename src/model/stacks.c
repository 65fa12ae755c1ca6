/* SPDX-License-Identifier: MIT */
#include "model/stacks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	FUNCTION_MAX = 255,
	FILE_MAX = 1023,
	SOURCE_MAX = 255,
	TEXTS_MAX = 3 * STACK_PLACES_MAX,
	/* A program that makes up functions by the thousand must not fill our memory. */
	TEXT_BYTES_MAX = 16 << 20,
};

const char *place_kind_name(enum place_kind kind)
{
	switch (kind) {
	case PLACE_NATIVE:
		return "native";
	case PLACE_KEEPS:
		return "keeps";
	case PLACE_DOES:
		return "does";
	default:
		return "python";
	}
}

enum place_kind place_kind_by_name(const char *name)
{
	if (strcmp(name, "keeps") == 0)
		return PLACE_KEEPS;
	if (strcmp(name, "does") == 0)
		return PLACE_DOES;
	return strcmp(name, "python") == 0 ? PLACE_PYTHON : PLACE_NATIVE;
}

static const struct {
	unsigned bit;
	const char *name;
} flag_names[] = {
	{ STACK_PARTIAL, "partial" }, { STACK_UNPROVEN, "unproven" }, { STACK_JOINED, "joined" },
	{ STACK_GIL, "gil" },         { STACK_HELD, "held" },         { STACK_PYTHON, "python" },
	{ STACK_GC, "gc" },
};

const char *stack_flag_name(unsigned bit)
{
	for (size_t i = 0; i < sizeof(flag_names) / sizeof(flag_names[0]); i++)
		if (flag_names[i].bit == bit)
			return flag_names[i].name;
	return NULL;
}

unsigned stack_flag_by_name(const char *name)
{
	for (size_t i = 0; i < sizeof(flag_names) / sizeof(flag_names[0]); i++)
		if (strcmp(flag_names[i].name, name) == 0)
			return flag_names[i].bit;
	return 0;
}

static int compare(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int compare_rows(const void *x, const void *y)
{
	const struct stack_row *a = x, *b = y;
	int c = compare(a->entity, b->entity);

	if (!c)
		c = compare(a->node, b->node);
	if (!c)
		c = compare(a->kind, b->kind);
	if (!c)
		c = compare(a->on, b->on);
	if (!c)
		c = compare(a->peer, b->peer);
	return c ? c : compare(a->flags, b->flags);
}

size_t stack_rows_merge(struct stack_row *rows, size_t n)
{
	size_t kept = 0;

	if (n)
		qsort(rows, n, sizeof(*rows), compare_rows);
	for (size_t i = 0; i < n; i++) {
		struct stack_row *last = kept ? &rows[kept - 1] : NULL;

		if (!last || compare_rows(last, &rows[i]) != 0) {
			rows[kept++] = rows[i];
			continue;
		}
		if (__builtin_add_overflow(last->count, rows[i].count, &last->count))
			last->count = UINT32_MAX;
		if (__builtin_add_overflow(last->weight_ns, rows[i].weight_ns, &last->weight_ns))
			last->weight_ns = INT64_MAX;
	}
	return kept;
}

void stack_book_done(struct stack_book *b)
{
	for (size_t i = 0; i < b->texts.n; i++)
		free(b->texts.v[i]);
	vec_done(&b->texts);
	b->text_bytes = 0;
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

/* The book's own copy of a text, one for all that are equal; NULL without room for a new one. */
static const char *keep_text(struct stack_book *b, const char *s, size_t max, bool may_add)
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
	may_add = may_add && b->texts.n < TEXTS_MAX && b->text_bytes + n < TEXT_BYTES_MAX;
	copy = may_add ? strndup(s, n) : NULL;
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
	b->text_bytes += n + 1;
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

/* A source line there is no room for is not known. */
static int keep_place(struct stack_book *b, const struct place *p, bool may_add, struct place *ret)
{
	*ret = (struct place){ .kind = p->kind, .line = p->line, .source = "" };
	ret->function = keep_text(b, p->function, FUNCTION_MAX, may_add);
	ret->file = ret->function ? keep_text(b, p->file, FILE_MAX, may_add) : NULL;
	if (!ret->file)
		return -ENOMEM;
	ret->source = keep_text(b, p->source, SOURCE_MAX, may_add);
	if (!ret->source)
		ret->source = "";
	return 0;
}

uint32_t stack_book_place(struct stack_book *b, const struct place *p)
{
	struct place own, *slot;
	uint32_t first = 0, *next;
	uint64_t h;

	/* A full book keeps no further texts, and still finds what it has. */
	if (keep_place(b, p, b->places.n < STACK_PLACES_MAX, &own) < 0)
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
	if (!place || place > STACK_PLACES_MAX || parent > b->nodes.n ||
	    b->nodes.n >= STACK_NODES_MAX)
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
	if (keep_place(b, p, true, &own) < 0)
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
	if (!vec_reserve(&b->nodes, id))
		return -ENOMEM;
	while (b->nodes.n < id)
		(void)vec_push(&b->nodes);
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
	while (k < max && k < STACK_DEPTH_MAX && (n = stack_book_find_node(b, node)) && n->place) {
		places[k++] = n->place;
		node = n->parent;
	}
	return k;
}
