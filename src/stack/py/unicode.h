/* SPDX-License-Identifier: MIT
 *
 * Python's text objects as UTF-8.
 */
#ifndef SPOTTER_STACK_PY_UNICODE_H
#define SPOTTER_STACK_PY_UNICODE_H

#include "base/buf.h"
#include "stack/mem.h"
#include "stack/py/layout.h"

#define PY_TEXT_MAX \
	4096 /* characters of a name or path that are looked at; the rest becomes "..." */

/* Appends the text object at `at`. 0; -EBADMSG: it is not one (and nothing is appended); or -errno
 * of the read. */
int py_unicode_read(struct mem *m, const struct py_layout *l, uint64_t at, struct buf *out);
/* n characters of `width` bytes each (1: Latin-1, 2, 4), little endian. What is no character
 * (lone surrogates stand for undecodable bytes of file names) becomes U+FFFD. Pure. */
void py_unicode_put(struct buf *out, const uint8_t *data, size_t n, unsigned width);

#endif
