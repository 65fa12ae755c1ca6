/* SPDX-License-Identifier: MIT
 *
 * Private to src/stack/native: functions that a file does not export. They are in .symtab, which is not
 * mapped: it has to be read from the file. Of 400 MB of libtorch_cpu.so that is some 10 MB; nothing of it
 * is kept but the answer.
 */
#ifndef SPOTTER_STACK_NATIVE_SYMTAB_H
#define SPOTTER_STACK_NATIVE_SYMTAB_H

#include "stack/mem.h"

/* What covers an address. Addresses count from the lowest that the image is mapped at. */
struct symtab_place {
	uint32_t at;          /* asked for */
	uint32_t start, size; /* the function; size 0: none */
	uint32_t name_at;     /* in the file's table of strings */
	char *name;           /* heap memory of the caller's; NULL where size is 0 */
};

/* Looks n addresses up, which must be in order. `file` is read as if it were memory from 0 on; `low`: the
 * address of the file that is the image's lowest; span: bytes of the image. 0; -ENOENT: it has no
 * symbols, or more than we read; -ENOEXEC: no such file; or -errno of the reading. Where it fails no name
 * is given. */
int symtab_find(struct mem *file, uint64_t low, uint64_t span, struct symtab_place *of, size_t n);

#endif
