/* SPDX-License-Identifier: MIT
 *
 * u64 -> u32 hash table, open addressing, linear probing with backward-shift deletion, so a table
 * that churns (pids come and go) neither degrades nor allocates once it is as large as it gets.
 */
#ifndef SPOTTER_BASE_MAP_H
#define SPOTTER_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map {
	struct map_slot {
		uint64_t key;
		uint32_t value;
		bool used;
	} * slots;
	size_t n, cap; /* cap is 0 or a power of two */
};

void map_done(struct map *m);
void map_clear(struct map *m);
/* False without memory. An existing key gets the new value. */
bool map_put(struct map *m, uint64_t key, uint32_t value);
/* False when absent; then *ret is left alone. */
bool map_get(const struct map *m, uint64_t key, uint32_t *ret);
bool map_del(struct map *m, uint64_t key);

/* A good mixer for keys made of small numbers. */
uint64_t map_mix(uint64_t x);

#endif
