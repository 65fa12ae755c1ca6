/* SPDX-License-Identifier: MIT
 *
 * Snappy's block format, which remote_write is sent in: a varint with the length, then literals and copies of
 * what came before.
 */
#ifndef SPOTTER_PUSH_SNAPPY_H
#define SPOTTER_PUSH_SNAPPY_H

#include <stddef.h>

struct buf;

/* Appends n bytes, compressed: at most n + n/6 + 32 of them. */
void snappy_compress(const void *p, size_t n, struct buf *out);

#endif
