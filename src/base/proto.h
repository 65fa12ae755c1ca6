/* SPDX-License-Identifier: MIT
 *
 * Fields of protocol buffers as they go over the wire: a key (number << 3 | type), then the value.
 * A message inside a message is written into a buffer of its own first, as its length comes before it.
 */
#ifndef SPOTTER_BASE_PROTO_H
#define SPOTTER_BASE_PROTO_H

#include <stddef.h>
#include <stdint.h>

struct buf;

void proto_int(struct buf *out, unsigned field, uint64_t v);
void proto_double(struct buf *out, unsigned field, double v);
void proto_fixed64(struct buf *out, unsigned field, uint64_t v);
void proto_float(struct buf *out, unsigned field, float v);
void proto_bytes(struct buf *out, unsigned field, const void *p, size_t n);
/* Foreign text: made safe to show first, as proto strings must be UTF-8. NULL: nothing. */
void proto_text(struct buf *out, unsigned field, const char *s);
void proto_message(struct buf *out, unsigned field, const struct buf *message);

#endif
