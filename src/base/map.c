/* SPDX-License-Identifier: MIT */
#include "base/map.h"

#include <stdlib.h>
#include <string.h>

uint64_t map_mix(uint64_t x)
{
	/* splitmix64's finaliser */
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9ull;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebull;
	x ^= x >> 31;
	return x;
}

void map_done(struct map *m)
{
	free(m->slots);
	*m = (struct map){ 0 };
}

void map_clear(struct map *m)
{
	if (m->slots)
		memset(m->slots, 0, m->cap * sizeof(*m->slots));
	m->n = 0;
}

static size_t home(const struct map *m, uint64_t key)
{
	return (size_t)map_mix(key) & (m->cap - 1);
}

/* The slot that holds key, or the free one where it would go. */
static size_t probe(const struct map *m, uint64_t key)
{
	size_t i = home(m, key);

	while (m->slots[i].used && m->slots[i].key != key)
		i = (i + 1) & (m->cap - 1);
	return i;
}

static bool grow(struct map *m)
{
	struct map bigger = { .cap = m->cap ? m->cap * 2 : 64 };

	bigger.slots = calloc(bigger.cap, sizeof(*bigger.slots));
	if (!bigger.slots)
		return false;
	for (size_t i = 0; i < m->cap; i++)
		if (m->slots[i].used)
			bigger.slots[probe(&bigger, m->slots[i].key)] = m->slots[i];
	bigger.n = m->n;
	free(m->slots);
	*m = bigger;
	return true;
}

bool map_put(struct map *m, uint64_t key, uint32_t value)
{
	size_t i;

	if ((m->n + 1) * 4 > m->cap * 3 && !grow(m))
		return false;
	i = probe(m, key);
	if (!m->slots[i].used)
		m->n++;
	m->slots[i] = (struct map_slot){ .key = key, .value = value, .used = true };
	return true;
}

bool map_get(const struct map *m, uint64_t key, uint32_t *ret)
{
	size_t i;

	if (!m->cap)
		return false;
	i = probe(m, key);
	if (!m->slots[i].used)
		return false;
	*ret = m->slots[i].value;
	return true;
}

bool map_del(struct map *m, uint64_t key)
{
	size_t hole, i;

	if (!m->cap)
		return false;
	hole = probe(m, key);
	if (!m->slots[hole].used)
		return false;
	/* Move later members of the run back over the hole, so that no probe stops early. */
	for (i = (hole + 1) & (m->cap - 1); m->slots[i].used; i = (i + 1) & (m->cap - 1)) {
		size_t want = home(m, m->slots[i].key);

		if (((i - want) & (m->cap - 1)) < ((i - hole) & (m->cap - 1)))
			continue;
		m->slots[hole] = m->slots[i];
		hole = i;
	}
	m->slots[hole].used = false;
	m->n--;
	return true;
}
