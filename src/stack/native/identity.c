/* SPDX-License-Identifier: MIT
 *
 * When are two images in two processes the same one? Device and inode say which file it is; a file that
 * was overwritten, or deleted and its inode given to another, has another build-id:
 *	u32 namesz 4, u32 descsz 20, u32 type 3, "GNU\0", 20 bytes
 * and where somebody gave two builds one id, other headers or other symbols. An image without a build-id,
 * or that is of no file, or whose beginning can be written to, is nobody else's.
 *
 * A process that writes over its own copy of further symbols may give wrong names to others of its job
 * that map the file. It cannot make us read or write out of bounds: what bounds them is compared.
 */
#include "stack/native/shared.h"

#include <elf.h>
#include <errno.h>

#define HEADERS_MAX 64
#define NOTES_MAX   1024 /* bytes of a segment of notes; some 100 */
#define ID_LEAST    8    /* bytes; shorter ones are made by hand */
#define SAMPLE      4096 /* bytes of the symbols */

static uint64_t add(uint64_t hash, const void *data, size_t n)
{
	const uint8_t *p = data;

	for (size_t i = 0; i < n; i++)
		hash = (hash ^ p[i]) * 1099511628211u; /* FNV-1a */
	return hash;
}

/* The build-id among the notes. */
static void find_id(const uint8_t *notes, size_t n, size_t align, struct native_headers *ret)
{
	Elf64_Nhdr head;
	size_t at = 0, name, id;

	while (n - at >= sizeof(head)) {
		memcpy(&head, notes + at, sizeof(head));
		name = at + sizeof(head);
		if (head.n_namesz > NOTES_MAX || head.n_descsz > NOTES_MAX)
			return;
		id = (name + head.n_namesz + align - 1) & ~(align - 1);
		at = (id + head.n_descsz + align - 1) & ~(align - 1);
		if (id + head.n_descsz > n)
			return;
		if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == 4 &&
		    memcmp(notes + name, "GNU", 4) == 0) {
			if (head.n_descsz < ID_LEAST || head.n_descsz > NATIVE_ID_MAX)
				return;
			memcpy(ret->id, notes + id, head.n_descsz);
			ret->id_n = head.n_descsz;
			return;
		}
		if (at > n)
			return;
	}
}

static void read_id(struct mem *m, const uint64_t *bias, const Elf64_Phdr *headers,
		    unsigned headers_n, struct native_headers *ret)
{
	uint8_t notes[NOTES_MAX];

	for (unsigned i = 0; i < headers_n && !ret->id_n; i++) {
		const Elf64_Phdr *h = &headers[i];
		uint64_t n = h->p_memsz < NOTES_MAX ? h->p_memsz : NOTES_MAX;
		uint64_t at = bias ? h->p_vaddr + *bias : h->p_offset;

		if (h->p_type == PT_NOTE && mem_read(m, at, notes, n) == 0)
			find_id(notes, n, h->p_align == 8 ? 8 : 4, ret);
	}
}

int native_headers_read(struct mem *m, uint64_t start, const uint64_t *bias,
			struct native_headers *ret)
{
	Elf64_Ehdr head;
	Elf64_Phdr headers[HEADERS_MAX];
	int r = mem_read(m, start, &head, sizeof(head));

	*ret = (struct native_headers){ 0 };
	if (r < 0)
		return r;
	if (head.e_phnum > HEADERS_MAX || head.e_phoff > 1 << 20)
		return -ENOEXEC;
	r = mem_read(m, start + head.e_phoff, headers, head.e_phnum * sizeof(headers[0]));
	if (r < 0)
		return r;
	ret->hash = add(add(14695981039346656037u, &head, sizeof(head)), headers,
			head.e_phnum * sizeof(headers[0]));
	read_id(m, bias, headers, head.e_phnum, ret);
	return 0;
}

/* Where the tables are, and the first of the symbols: nothing that a loader writes to. */
static bool add_tables(struct mem *m, const struct elf_image *elf, uint64_t *hash)
{
	uint8_t sample[SAMPLE];
	const uint64_t tables[] = { elf->symbols ? elf->symbols - elf->start : 0,
				    elf->strings ? elf->strings - elf->start : 0,
				    elf->gnu_hash ? elf->gnu_hash - elf->start : 0,
				    elf->old_hash ? elf->old_hash - elf->start : 0 };
	uint64_t n = elf->symbols ? elf->end - elf->symbols : 0;

	n = n < SAMPLE ? n : SAMPLE;
	if (n && mem_read(m, elf->symbols, sample, n) < 0)
		return false;
	*hash = add(add(*hash, tables, sizeof(tables)), sample, n);
	return true;
}

void native_identity(struct mem *m, const struct elf_mapping *first, const struct elf_image *elf,
		     const struct native_headers *headers, struct native_key *ret)
{
	struct native_key key = { .device = first->device,
				  .inode = first->inode,
				  .span = elf->end - elf->start,
				  .strings_n = elf->strings_n,
				  .fingerprint = headers->hash,
				  .id_n = headers->id_n };

	*ret = (struct native_key){ 0 };
	if (!first->inode || first->writable || !headers->id_n ||
	    !add_tables(m, elf, &key.fingerprint))
		return;
	memcpy(key.id, headers->id, headers->id_n);
	*ret = key;
}
