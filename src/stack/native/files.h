/* SPDX-License-Identifier: MIT
 *
 * Private to src/stack/native: asking the files of a job for functions that they do not export. A file may
 * be on storage that hangs, and reading one takes time: a thread of its own does it, which is started when
 * there is a question, and nobody waits for its answers.
 */
#ifndef SPOTTER_STACK_NATIVE_FILES_H
#define SPOTTER_STACK_NATIVE_FILES_H

#include "stack/native/shared.h"
#include "stack/native/symtab.h"

#define NATIVE_LOOKUP_MAX 64 /* addresses in one question */

/* A question, and then its answer. Heap memory. */
struct native_lookup {
	uint32_t table; /* number of the table it is for */
	pid_t pid;      /* a process that has the file, in whose root it is named */
	char *path;
	struct native_headers headers; /* which build it must be */
	uint64_t device, inode;        /* which file, where no build-id tells */
	uint64_t low, span;            /* as symtab_find() wants them */
	size_t n;
	struct symtab_place of[NATIVE_LOOKUP_MAX]; /* by address */

	int result; /* of symtab_find(); -ESTALE: not the file that is mapped; -EAGAIN: none there */
	int64_t cost_ns; /* of CPU time */
};

struct native_files;

/* NULL without memory. */
struct native_files *native_files_open(void);
/* Waits 50 ms at most for a reading that is under way; the thread ends when that does. */
void native_files_close(struct native_files *f);
/* The question becomes theirs. False: there are too many, or no thread can be had; it is freed. */
bool native_files_ask(struct native_files *f, struct native_lookup *q);
/* One that was answered, NULL: none. It becomes the caller's. */
struct native_lookup *native_files_next(struct native_files *f);
void native_lookup_free(struct native_lookup *q);
/* What the thread does. */
void native_lookup_answer(struct native_lookup *q);

#endif
