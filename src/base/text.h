/* SPDX-License-Identifier: MIT
 *
 * Text from outside made safe to show: process names, paths and arguments may hold anything.
 */
#ifndef SPOTTER_BASE_TEXT_H
#define SPOTTER_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

/* Length of the valid UTF-8 sequence at p (1..4), 0 when it is not one. */
size_t text_utf8(const char *p, size_t n);
/* Appends s for a terminal or a log line: control bytes, escape sequences and invalid UTF-8 become
 * '?', so nothing a process is called can move a cursor. */
void text_safe(struct buf *out, const char *s, size_t n);
/* The same into a fixed buffer, cut to fit with no half character; returns dst. */
const char *text_safe_copy(char *dst, size_t size, const char *s);
/* Number of terminal columns, counting a code point as one (wide CJK as two). */
size_t text_width(const char *s);
/* Copies at most size-1 bytes and always terminates; true when all of it fitted. */
bool text_copy(char *dst, size_t size, const char *src);
/* Edit distance for "did you mean", bounded: anything over 32 bytes is 99. */
unsigned text_distance(const char *a, const char *b);

#endif
