/* SPDX-License-Identifier: MIT
 *
 * Memory that is no process: segments, each an address (8 bytes), a length (4 bytes) and so many
 * bytes, one behind the other, little endian. The segment at address 0 is the text of maps. What no
 * single segment covers is not mapped. Used by fuzz targets and by unit tests.
 */
#ifndef SPOTTER_TESTS_MEMORY_H
#define SPOTTER_TESTS_MEMORY_H

#include "stack/mem.h"

#include <string.h>

#define SEGMENTS_MAX 4096

struct memory {
	struct {
		uint64_t at;
		const uint8_t *bytes;
		size_t n;
	} segment[SEGMENTS_MAX];
	size_t n;
	const char *maps;
	size_t maps_n;
	uint64_t reads;              /* pieces asked for */
	unsigned tear;               /* not 0: every so many-th piece comes with changed bytes */
	uint64_t tear_from, tear_to; /* pieces that begin in here only; 0, 0: all */
};

static inline void memory_add(struct memory *m, uint64_t at, const void *bytes, size_t n)
{
	if (m->n == SEGMENTS_MAX)
		return;
	m->segment[m->n].at = at;
	m->segment[m->n].bytes = bytes;
	m->segment[m->n++].n = n;
}

/* A last segment that is cut short has what is left. */
static inline void memory_parse(struct memory *m, const uint8_t *data, size_t n)
{
	m->n = m->maps_n = 0;
	m->maps = "";
	while (n > 12 && m->n < SEGMENTS_MAX) {
		uint64_t at;
		uint32_t size;

		memcpy(&at, data, 8);
		memcpy(&size, data + 8, 4);
		data += 12;
		n -= 12;
		size = size < n ? size : (uint32_t)n;
		if (at == 0) {
			m->maps = (const char *)data;
			m->maps_n = size;
		} else {
			memory_add(m, at, data, size);
		}
		data += size;
		n -= size;
	}
}

static inline bool memory_piece(const struct memory *m, struct mem_piece *p)
{
	for (size_t i = 0; i < m->n; i++) {
		uint64_t into = p->at - m->segment[i].at;

		if (p->at < m->segment[i].at || into > m->segment[i].n ||
		    m->segment[i].n - into < p->n)
			continue;
		memcpy(p->to, m->segment[i].bytes + into, p->n);
		return true;
	}
	return false;
}

static inline int memory_read(void *arg, struct mem_piece *pieces, size_t n)
{
	struct memory *m = arg;

	for (size_t i = 0; i < n; i++) {
		pieces[i].failed = !memory_piece(m, &pieces[i]);
		m->reads++;
		if (m->tear_to && (pieces[i].at < m->tear_from || pieces[i].at >= m->tear_to))
			continue;
		if (!m->tear || m->reads % m->tear || pieces[i].failed)
			continue;
		for (size_t k = m->reads * 7 % 97; k < pieces[i].n; k += 97)
			((uint8_t *)pieces[i].to)[k] ^= 8;
	}
	return 0;
}

#endif
