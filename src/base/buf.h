/* SPDX-License-Identifier: MIT
 *
 * A growing byte buffer with a ceiling given at birth. Failure (no memory, or past the ceiling) is
 * sticky: later puts do nothing, and buf_ok() tells at the end, so that writers need no check a
 * line. The data is always NUL-terminated behind `len`.
 */
#ifndef SPOTTER_BASE_BUF_H
#define SPOTTER_BASE_BUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf {
	char *data;
	size_t len, cap;
	size_t max; /* len stays below it; 0: BUF_MAX_DEFAULT */
	bool failed;
};

#define BUF_MAX_DEFAULT ((size_t)64 << 20)

void buf_init(struct buf *b, size_t max);
void buf_done(struct buf *b);
/* Empties it, keeps the memory, forgets a failure. */
void buf_reset(struct buf *b);
bool buf_ok(const struct buf *b);
/* Room for n more bytes: true, or false with the failure noted. */
bool buf_reserve(struct buf *b, size_t n);

void buf_put(struct buf *b, const void *p, size_t n);
void buf_str(struct buf *b, const char *s);
void buf_char(struct buf *b, char c);
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_vprintf(struct buf *b, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));
/* LEB128; signed values go through zigzag first. */
void buf_varint(struct buf *b, uint64_t v);
void buf_zigzag(struct buf *b, int64_t v);

/* The text so far; "" when there is none. */
const char *buf_text(const struct buf *b);

/* Reading side of buf_varint: advances *p, never past end. False when cut short or over 64 bits. */
bool varint_read(const uint8_t **p, const uint8_t *end, uint64_t *ret);
bool zigzag_read(const uint8_t **p, const uint8_t *end, int64_t *ret);

#endif
