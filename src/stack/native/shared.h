/* SPDX-License-Identifier: MIT
 *
 * Private to src/stack/native: what is the same in every process that maps the same file, kept once:
 * the functions of an image, by address from its beginning, and unwind rules. A training with 16 loader
 * workers maps the same 150 libraries 17 times.
 */
#ifndef SPOTTER_STACK_NATIVE_SHARED_H
#define SPOTTER_STACK_NATIVE_SHARED_H

#include "base/map.h"
#include "base/vec.h"
#include "stack/image.h"
#include "stack/native/names.h"
#include "stack/native/native.h"
#include "stack/native/rules.h"

#define NATIVE_ID_MAX      64
#define NATIVE_ROWS_MAX    2048       /* program counters whose unwind rule is kept: 1 MB */
#define NATIVE_SYMBOLS     (1u << 18) /* kept of an image: 3 MB; libtorch_cpu has some 150,000 */
#define NATIVE_BYTES_MAX   (8u << 20) /* of the symbols of all images */
#define NATIVE_IDLE_MAX    256        /* tables that no process uses, and the next may */
#define NATIVE_EARLY_MAX   4          /* times a table is read again that was read too early */
#define NATIVE_NAMES_BYTES (1u << 20) /* names of all; a job sees some thousand, of 30 bytes */
#define NATIVE_NAMES_MAX   (1u << 15)

/* A function, by address from the image's lowest: what is 4 GB away from it is left out. */
struct native_symbol {
	uint32_t start, size;
	uint32_t name; /* in the image's table of strings */
};

typedef VEC(struct native_symbol) native_symbols;

/* What says which build a file is, wherever it is mapped. */
struct native_headers {
	uint64_t hash;             /* of the ELF header and the program headers; 0: not read */
	uint8_t id[NATIVE_ID_MAX]; /* the build-id */
	uint32_t id_n;             /* 0: none */
};

/* What must be equal for two images to be one. A file may be overwritten in place, or its number be used
 * again: so the build-id and what is in the memory count, too. */
struct native_key {
	uint64_t device, inode; /* inode 0: no identity, nothing is shared */
	uint64_t span;          /* of all its mappings, bytes: no symbol reaches beyond */
	uint64_t strings_n;     /* no name begins beyond */
	uint64_t fingerprint;
	uint8_t id[NATIVE_ID_MAX];
	uint32_t id_n;
};

/* What a function is called, of those that were asked for. */
struct native_name {
	const char *text;
	uint32_t size; /* of the function: others may begin at the same address */
};

/* A function that is not exported, by address from the image's lowest; name "": none covers it. */
struct native_local {
	uint32_t start, size;
	const char *name;
};

struct native_table {
	struct native_key key;
	uint32_t number; /* no other table has had it */
	uint32_t users;  /* images of processes */
	uint64_t used;   /* when: count of uses */
	native_symbols symbols;
	bool symbols_read;
	bool early; /* the loader was at work: what it chooses was not all there */
	uint8_t early_n;

	/* locals.c */
	VEC(struct native_local) locals; /* by start */
	VEC(uint32_t) wanted;            /* addresses to ask the file for */
	int64_t asked_ns;                /* a question is under way since; 0: none */
	int64_t again_ns;                /* no other before */
	uint8_t refusals;
	bool no_file; /* there is none to ask, or it says nothing */
};

struct native_shared {
	VEC(struct native_table *) tables;
	uint32_t next;
	uint64_t uses;
	struct native_counts counts;

	/* Addresses in them (of expressions) count from the image's start. */
	VEC(struct native_row) rows;
	struct map row_by_pc; /* table's number << 32 | pc from the image's start */

	/* Kept until all is closed, as there may be pointers to them. */
	struct names names;
	VEC(struct native_name) called;
	struct map called_by_start; /* table's number << 32 | start */

	struct native_files *files; /* NULL: nothing was asked of one yet */
};

/* The ELF headers of an image at `start`, as mapped at *bias; of a file that is read as if it were memory:
 * bias NULL. */
int native_headers_read(struct mem *m, uint64_t start, const uint64_t *bias,
			struct native_headers *ret);
/* Identity of the image that begins with the mapping; inode 0 when it has none that is safe. */
void native_identity(struct mem *m, const struct elf_mapping *first, const struct elf_image *elf,
		     const struct native_headers *headers, struct native_key *ret);

/* The table of that identity, or a new one; NULL without memory. */
struct native_table *native_table_get(struct native_shared *s, const struct native_key *key);
void native_table_put(struct native_shared *s, struct native_table *t);
/* Symbols were read: counts them, and drops those of the tables that were used least lately when all
 * are too many. */
void native_table_filled(struct native_shared *s, struct native_table *t);

void native_locals_done(struct native_table *t);

/* The name of a function, NULL: not known yet. */
const char *native_name_find(const struct native_shared *s, const struct native_table *t,
			     const struct native_symbol *symbol);
/* Keeps it for all: NULL when there is no room (then it is the process's own), or it is not to be shared. */
const char *native_name_keep(struct native_shared *s, const struct native_table *t,
			     const struct native_symbol *symbol, const char *text, size_t n);

/* The rule at a program counter of a process, as if the image were at 0: NULL, none. Good until the next
 * call. */
struct native_image;
const struct native_row *native_row(struct native_shared *s, struct mem *m,
				    const struct native_image *image, uint64_t pc);

#endif
