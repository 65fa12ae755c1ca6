/* SPDX-License-Identifier: MIT */
#include "stack/native/names.h"

#define BLOCK 4096

static uint64_t hash_of(const char *text, size_t length)
{
	uint64_t h = 14695981039346656037u; /* FNV-1a */

	for (size_t i = 0; i < length; i++)
		h = (h ^ (uint8_t)text[i]) * 1099511628211u;
	return h;
}

static char *room(struct names *n, size_t size)
{
	size_t cap = size > BLOCK ? size : BLOCK;
	char **slot;

	if (n->block_cap - n->block_n < size) {
		if (n->bytes + cap > (n->max ? n->max : NAMES_BYTES_MAX))
			return NULL;
		slot = vec_push(&n->blocks);
		if (!slot)
			return NULL;
		*slot = malloc(cap);
		if (!*slot) {
			n->blocks.n--;
			return NULL;
		}
		n->bytes += cap;
		n->block_n = 0;
		n->block_cap = cap;
	}
	n->block_n += size;
	return n->blocks.v[n->blocks.n - 1] + n->block_n - size;
}

const char *names_keep(struct names *n, const char *text, size_t length)
{
	uint64_t hash = hash_of(text, length);
	const char **slot;
	uint32_t at;
	char *copy;

	if (!length)
		return "";
	/* Two texts of one hash: the next number is tried, so both are found again. */
	for (; map_get(&n->by_hash, hash, &at); hash++) {
		const char *have = n->texts.v[at];

		if (strncmp(have, text, length) == 0 && have[length] == '\0')
			return have;
	}
	if (!vec_reserve(&n->texts, n->texts.n + 1))
		return "";
	copy = room(n, length + 1);
	if (!copy || !map_put(&n->by_hash, hash, (uint32_t)n->texts.n))
		return "";
	memcpy(copy, text, length);
	copy[length] = '\0';
	slot = vec_push(&n->texts);
	*slot = copy;
	return copy;
}

void names_done(struct names *n)
{
	for (size_t i = 0; i < n->blocks.n; i++)
		free(n->blocks.v[i]);
	vec_done(&n->blocks);
	vec_done(&n->texts);
	map_done(&n->by_hash);
	n->block_n = n->block_cap = n->bytes = 0;
}
