/* SPDX-License-Identifier: MIT
 *
 * Private to src/stack/native: what is known of a process.
 */
#ifndef SPOTTER_STACK_NATIVE_PROCESS_H
#define SPOTTER_STACK_NATIVE_PROCESS_H

#include "base/map.h"
#include "base/vec.h"
#include "stack/image.h"
#include "stack/native/names.h"
#include "stack/native/native.h"
#include "stack/native/rules.h"
#include "stack/native/shared.h"

#define NATIVE_NONE     UINT32_MAX
#define NATIVE_WINDOW   8192 /* bytes of stack read at a time: some 40 frames */
#define NATIVE_SEEN_MAX 8192 /* addresses whose place is kept: 400 KB */
#define NATIVE_ENDS     8    /* of stacks that are remembered */
#define NATIVE_CALLS    256  /* calls whose check is kept: 6 KB; a power of two */

/* The sorted index of functions with unwind rules (.eh_frame_hdr). */
struct native_index {
	uint64_t header;  /* address of the section: entries count from it */
	uint64_t entries; /* address of the first one, 8 bytes each */
	uint32_t n;
};

struct native_image {
	struct elf_image elf; /* symbols 0: it has none that we can read */
	struct native_index index;
	struct native_table *table;
	const char *file;
	bool libc;
	bool unreadable; /* the symbols, from this process */
	/* Which file it is. */
	struct native_headers headers;
	uint64_t device, inode;
};

/* Whether what stands before a return address calls the function that an address is in. */
struct native_call {
	uint64_t back, callee; /* back 0: none */
	bool calls;
};

struct native_process {
	struct native_shared *shared;
	bool shared_own;
	struct mem own, *mem;
	const char *fixed_maps; /* not NULL: a test's, instead of the process's */
	size_t fixed_maps_n;

	char *maps_text;
	elf_mappings maps;
	VEC(uint32_t) image_of; /* a mapping: index of its image + 2, 0: not looked for, 1: none */
	int64_t maps_ns;        /* of the last reading */
	int64_t maps_pause;     /* ns from it to the next, for what it took */
	unsigned maps_vain;     /* readings in a row that did not find what was looked for */
	unsigned maps_reads;
	bool maps_tried;

	VEC(struct native_image) images;
	struct map image_by_start;
	struct names names;

	VEC(struct native_place) places;
	struct map place_by_symbol; /* image << 52 | start << 20 | size, 0 0: none */
	struct map place_by_address;

	struct native_call calls[NATIVE_CALLS];

	uint8_t window[NATIVE_WINDOW];
	uint64_t window_at;
	size_t window_n;
	uint64_t ends[NATIVE_ENDS]; /* of stacks, as far as they were met; 0: none */
	unsigned ends_next;
	bool whole; /* the last walk of a waiting thread came to its outermost function */
};

/* A process that is an image of memory; `m` and `maps` must outlive it. */
int native_open_memory(struct native_process **ret, struct mem *m, const char *maps, size_t maps_n);

/* The mapping of code or of an image that an address is in, NULL: none. Reads maps (again) when it may. */
const struct elf_mapping *native_mapping(struct native_process *p, uint64_t address,
					 int64_t now_ns);
/* The image of a mapping (that native_mapping() gave), covering the address: NULL, none. */
struct native_image *native_image(struct native_process *p, const struct elf_mapping *mapping,
				  uint64_t address);

/* Index of the function that covers an address (not relative), NATIVE_NONE: none. Good until the next
 * call. */
uint32_t native_symbol(struct native_process *p, struct native_image *image, uint64_t address);
/* Its name, kept; "" when that cannot be read. */
const char *native_symbol_name(struct native_process *p, const struct native_image *image,
			       uint32_t symbol);

/* The function of the file that covers an address, or none (name ""). False: it is being looked for. */
bool native_local(struct native_process *p, const struct native_image *image, uint64_t address,
		  int64_t now_ns, struct native_local *ret);

/* Is there a call before the return address `back`, and does it lead, as far as that can be told, to the
 * function that has `callee`? Unwind rules of assembly are not always true: a word of the stack that
 * happens to be an address of code is no caller. */
bool native_calls(struct native_process *p, uint64_t back, uint64_t callee, int64_t now_ns);

/* Functions that are chosen when a library is loaded (memcpy: one for each kind of CPU): adds those that
 * were chosen to the symbols. `indirect` are those that choose. False: some are not chosen yet. */
bool native_chosen(struct mem *m, const struct native_image *image, const native_symbols *indirect,
		   native_symbols *symbols);
/* Begin and end of the function that has an unwind rule at pc: 0, or -ENOENT. */
int native_function(struct mem *m, const struct native_image *image, uint64_t pc,
		    uint64_t *ret_begin, uint64_t *ret_end);
int native_function_end(struct mem *m, const struct native_image *image, uint64_t pc,
			uint64_t *ret);

/* Where the index of unwind rules is: 0, or -ENOENT when there is none of the usual form. */
int native_index_read(struct mem *m, const struct elf_image *elf, uint64_t section,
		      struct native_index *ret);
/* The unwind rule at pc: 0, -ENOENT when there is none, or an error of the read. */
int native_row_find(struct mem *m, const struct native_image *image, uint64_t pc,
		    struct native_row *ret);

#endif
