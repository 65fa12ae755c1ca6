/* SPDX-License-Identifier: MIT
 *
 * The pages of one column in one group of rows, and what the footer says of them.
 */
#ifndef SPOTTER_SINK_PARQUET_PAGE_H
#define SPOTTER_SINK_PARQUET_PAGE_H

#include "sink/parquet_file.h"

/* The type on disk, a number of parquet.thrift. */
int parquet_physical(enum parquet_type type);
/* Writes the chunk of a column, adds its row to p->groups and its size before packing to *unpacked. 0
 * or -errno. */
int parquet_chunk(struct parquet *p, const struct parquet_column *c, uint64_t *unpacked,
		  struct buf *out);
void parquet_zstd_done(struct parquet *p);

#endif
