/* SPDX-License-Identifier: MIT
 *
 * Runs of several machines, as `spotter merge` makes them. Each machine (node) has a host of its own, whose
 * key is its number + 1 and whose name is what it is called; its devices hang on that. ID_HOST, ID_JOB
 * and ID_SELF then are sums over all of them. Numbers of processes, threads and CPUs may be the same on
 * two machines, so there they have the node's number in front: 2 * 10,000,000 + 4242 is pid 4242 of
 * node 2. Node 0 has its own numbers, and so has a run of one machine.
 */
#ifndef SPOTTER_MODEL_NODE_H
#define SPOTTER_MODEL_NODE_H

#include "model/entity.h"

/* Above any pid (at most 2^22). */
#define NODE_KEYS INT64_C(10000000)
enum { NODES_MOST = 1024 };

static inline int64_t node_key(unsigned node, int64_t key)
{
	return key >= 0 && key < NODE_KEYS ? (int64_t)node * NODE_KEYS + key : key;
}

/* The number as it was on its machine. */
static inline int64_t node_own_key(int64_t key)
{
	return key >= 0 && key < NODES_MOST * NODE_KEYS ? key % NODE_KEYS : key;
}

/* Is it a run of several machines? */
bool node_several(const struct entity_table *t);
/* The host of the machine a thing was on; NULL in a run of one machine, and of sums. Borrowed. */
const struct entity *node_host(const struct entity_table *t, const struct entity *e);
/* Its name, "" where there is none. Foreign text. */
const char *node_name(const struct entity_table *t, const struct entity *e);
/* "412", or "412 on gpu-7": as people are told of a process. Safe to show. */
const char *node_pid_text(const struct entity_table *t, const struct entity *e, char *buf,
			  size_t size);

#endif
