/* SPDX-License-Identifier: MIT
 *
 * The table of things measured, as a reader of frames or of a run file builds it. Ids are those of
 * the frames (unique within a run, never reused, roughly dense).
 */
#ifndef SPOTTER_MODEL_ENTITY_H
#define SPOTTER_MODEL_ENTITY_H

#include "base/map.h"
#include "base/vec.h"
#include "model/frame.h"

struct entity {
	uint32_t id, parent;
	enum entity_kind kind;
	int64_t key;      /* pid, tid, cpu number */
	int64_t start_ns; /* boot clock */
	int64_t born_ns,
	    gone_ns;         /* monotonic clock of the ticks that saw it; gone 0: still there */
	char *name, *detail; /* owned; detail "" when there is none */
};

struct entity_table {
	VEC(struct entity) rows; /* by birth; pointers into it are invalid after the next apply */
	struct map by_id;
};

void entity_table_done(struct entity_table *t);
/* Applies one life of a frame seen at mono_ns. 0 or -ENOMEM; an unknown id that changes or ends is
 * ignored. */
int entity_table_apply(struct entity_table *t, const struct frame *f, const struct life *life);
/* All lives of a frame. */
int entity_table_frame(struct entity_table *t, const struct frame *f);
/* Adds a row as it is (strings are copied): for readers of files. */
int entity_table_add(struct entity_table *t, const struct entity *e);
/* Drops the rows of what ended before this time, keeping the order of the others. */
void entity_table_forget(struct entity_table *t, int64_t before_ns);
const struct entity *entity_find(const struct entity_table *t, uint32_t id); /* NULL: unknown */
/* The process with this pid that lived last, or NULL. */
const struct entity *entity_find_pid(const struct entity_table *t, int64_t pid);

#endif
