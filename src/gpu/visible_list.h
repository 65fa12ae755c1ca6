/* SPDX-License-Identifier: MIT
 *
 * What the readers of masks share: private to visible*.c.
 */
#ifndef SPOTTER_GPU_VISIBLE_LIST_H
#define SPOTTER_GPU_VISIBLE_LIST_H

#include "base/scan.h"
#include "gpu/visible.h"

/* Whole GPUs of one vendor, in the driver's order. */
struct visible_rows {
	int n, row[GPU_DEVICES];
};
void visible_rows(const struct gpu_snapshot *s, enum gpu_vendor vendor, struct visible_rows *ret);

/* The value of a variable; false when it is not set. */
bool visible_env(const char *environ, size_t n, const char *name, struct scan *ret);
/* Next entry of a list, without blanks around it; an empty list has one empty entry. */
bool visible_entry(struct scan *list, struct scan *ret);
bool visible_word(const struct scan *s, const char *word);
/* The number an entry begins with ("2gpu" is 2, as strtoul has it). */
bool visible_index(struct scan entry, uint64_t *ret);
/* Row whose UUID is, or alone begins with, this text; -1 none. */
int visible_uuid(const struct gpu_snapshot *s, enum gpu_vendor vendor, bool partition,
		 const struct scan *entry);

void visible_shown(struct gpu_visible *v, enum gpu_vendor vendor, const char *name,
		   struct scan value);
void visible_why(struct gpu_visible *v, const char *why);
void visible_all(const struct gpu_snapshot *s, enum gpu_vendor vendor, enum gpu_allowed a,
		 struct gpu_visible *v);
bool visible_any(const struct gpu_snapshot *s, enum gpu_vendor vendor, const struct gpu_visible *v);

void visible_intel(const struct gpu_snapshot *s, const char *environ, size_t n,
		   struct gpu_visible *v);

#endif
