/* SPDX-License-Identifier: MIT
 *
 * The programs and libraries mapped by a process, and their dynamic symbols, read from its memory:
 * no file is opened, so a deleted, renamed, packed or foreign-namespace file makes no difference.
 */
#ifndef SPOTTER_STACK_IMAGE_H
#define SPOTTER_STACK_IMAGE_H

#include "base/vec.h"
#include "stack/mem.h"

#define ELF_IMAGES_MAX 4096 /* of a process; a large training maps some 400 */

struct elf_mapping {
	uint64_t start, end, offset, inode;
	uint64_t device; /* major << 32 | minor */
	bool readable, writable, executable;
	uint32_t name; /* where the path begins in the text of maps, 0: none */
	uint32_t name_n;
};

typedef VEC(struct elf_mapping) elf_mappings;

/* An image whose symbols can be looked up. Addresses are the target's. */
struct elf_image {
	uint64_t start, end; /* all its mappings */
	uint64_t bias;       /* what is added to addresses in the file */
	uint64_t symbols, strings, strings_n;
	uint64_t gnu_hash, old_hash; /* 0: absent */
	uint16_t machine;            /* EM_X86_64, EM_AARCH64 */
};

/* The lines of /proc/PID/maps. -ENOMEM, or 0; a line that makes no sense is left out. */
int elf_parse_maps(const char *text, size_t n, elf_mappings *ret);
/* The lines of /proc/PID/maps that are code, or other parts of a file that has code: a program's data and
 * data files are left out, however many they are. 1 MB at most. Heap memory to free, or NULL with
 * *ret_err set. */
char *elf_read_maps(pid_t pid, size_t *ret_n, int *ret_err);
/* The image that begins at maps->v[i]: 0, -ENOEXEC when none does, or -errno of the read. */
int elf_image_at(struct mem *m, const elf_mappings *maps, size_t i, struct elf_image *ret);
/* Address of a defined dynamic symbol: 0, or -ENOENT. */
int elf_symbol(struct mem *m, const struct elf_image *image, const char *name, uint64_t *ret);

#endif
