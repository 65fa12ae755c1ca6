/* SPDX-License-Identifier: MIT
 *
 * A Parquet file, written from front to back: rows are gathered until a group is full, then every
 * column of it goes out as one chunk (texts: a dictionary page and a page of numbers into it; else one
 * plain page), each page packed with zstd. Where the chunks are stands in the footer. What is held in
 * memory is one group and the footer, about 1 KB a group.
 *
 *	PAR1  group 1: column 1, column 2...  group 2...  footer  length of the footer  PAR1
 *
 * Pages are of version 1, which every reader knows. The format: parquet.apache.org/docs/file-format.
 */
#ifndef SPOTTER_SINK_PARQUET_FILE_H
#define SPOTTER_SINK_PARQUET_FILE_H

#include "base/buf.h"
#include "base/map.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

enum parquet_type {
	PARQUET_TIME,   /* microseconds since 1970, UTC */
	PARQUET_INT,    /* 64 bits, signed */
	PARQUET_DOUBLE, /* not finite: absent */
	PARQUET_TEXT,   /* made valid UTF-8 without control characters; NULL: absent */
};

struct parquet_column {
	char *name; /* owned */
	enum parquet_type type;
	bool optional;
	VEC(uint8_t) there; /* a byte a row: 1 there, 0 absent */
	VEC(int64_t) ints;  /* of those that are there */
	VEC(double) doubles;
	VEC(uint32_t) ids;   /* texts: place in the dictionary */
	VEC(uint32_t) words; /* where each text begins in `texts` */
	struct buf texts;    /* length (32 bits), bytes; as the dictionary page has them */
	struct map word_of;  /* hash -> id */
};

struct parquet {
	VEC(struct parquet_column) columns;
	uint32_t rows; /* of the group that is gathered */
	uint64_t all_rows;
	uint64_t at;       /* bytes written so far */
	struct buf groups; /* what the footer will say of them */
	size_t n_groups;
	struct buf page, packed, header, safe; /* kept for their memory */
	void *zstd;
	bool failed; /* no memory */
};

struct parquet_word {
	const char *key, *value;
};

enum { PARQUET_GROUP_ROWS = 65536 };

/* Before the first row. Names that are there already get a number behind them. */
void parquet_column(struct parquet *p, const char *name, enum parquet_type type, bool optional);
void parquet_begin(struct parquet *p, struct buf *out);

/* Values of the row at hand, in the order of the columns or any other; those of an optional column may
 * be left out, of another they are 0 or "" then. */
void parquet_int(struct parquet *p, size_t column, int64_t v);
void parquet_double(struct parquet *p, size_t column, double v);
void parquet_text(struct parquet *p, size_t column, const char *s);
/* The row is whole. 0 or -errno. */
int parquet_row(struct parquet *p, struct buf *out);

/* The last group and the footer, with words about the file (ends with a key of NULL). 0 or -errno. */
int parquet_end(struct parquet *p, const struct parquet_word *words, struct buf *out);
void parquet_done(struct parquet *p);

#endif
