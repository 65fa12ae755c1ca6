/* SPDX-License-Identifier: MIT
 *
 * The compact protocol of Thrift, as far as Parquet's headers and footer need it (writing only). Fields
 * of a struct go by rising number; a field's header is its distance to the one before and its type:
 *
 *	15 02        field 1, type 5 (i32): zigzag(1)
 *	00           end of the struct
 */
#ifndef SPOTTER_SINK_THRIFT_H
#define SPOTTER_SINK_THRIFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

enum thrift_type {
	THRIFT_TRUE = 1,
	THRIFT_FALSE = 2,
	THRIFT_I32 = 5,
	THRIFT_I64 = 6,
	THRIFT_BINARY = 8,
	THRIFT_LIST = 9,
	THRIFT_STRUCT = 12,
};

/* One struct being written; {out} begins one. Nested ones have one of their own. */
struct thrift {
	struct buf *out;
	int last; /* number of the field before */
};

void thrift_i32(struct thrift *t, int field, int32_t v);
void thrift_i64(struct thrift *t, int field, int64_t v);
void thrift_bool(struct thrift *t, int field, bool v);
void thrift_text(struct thrift *t, int field, const char *s);
/* The header alone; n elements follow, as thrift_put_*() or structs. */
void thrift_list(struct thrift *t, int field, enum thrift_type of, size_t n);
/* The header of a struct as a field: its fields follow, written through what is returned. */
struct thrift thrift_struct(struct thrift *t, int field);
void thrift_end(struct thrift *t);

/* Elements of lists. */
void thrift_put_i32(struct buf *out, int32_t v);
void thrift_put_text(struct buf *out, const char *s);

#endif
