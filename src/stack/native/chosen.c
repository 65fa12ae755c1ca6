/* SPDX-License-Identifier: MIT
 *
 * memcpy, strlen, sin and their like are symbols of a function that chooses (STT_GNU_IFUNC); what runs
 * is one that has no exported name, as __memmove_avx_unaligned_erms. Which one was chosen stands in the
 * library itself, as it calls them as well: a relocation
 *	R_X86_64_IRELATIVE  offset: the slot   addend: the function that chooses
 * whose slot the loader has filled with the address of the chosen one. How far that reaches say the
 * unwind tables.
 */
#include "stack/native/process.h"

#include <elf.h>
#include <errno.h>

#define HEADERS_MAX 64
#define DYNAMIC_MAX 256
#define RELOCATIONS 4096 /* of an image that has such functions; libc has 53, libm some 100 */

struct table {
	uint64_t at, n; /* address, entries */
};

static int find_dynamic(struct mem *m, const struct elf_image *elf, Elf64_Dyn to[DYNAMIC_MAX],
			size_t *ret)
{
	Elf64_Ehdr head;
	Elf64_Phdr headers[HEADERS_MAX];
	int r = mem_read(m, elf->start, &head, sizeof(head));

	if (r < 0)
		return r;
	if (head.e_phnum > HEADERS_MAX || head.e_phoff > 1 << 20)
		return -ENOENT;
	r = mem_read(m, elf->start + head.e_phoff, headers, head.e_phnum * sizeof(headers[0]));
	for (unsigned i = 0; r == 0 && i < head.e_phnum; i++) {
		if (headers[i].p_type != PT_DYNAMIC)
			continue;
		*ret = headers[i].p_memsz / sizeof(Elf64_Dyn);
		*ret = *ret < DYNAMIC_MAX ? *ret : DYNAMIC_MAX;
		return mem_read(m, headers[i].p_vaddr + elf->bias, to, *ret * sizeof(to[0]));
	}
	return -ENOENT;
}

/* Slots of procedures, and others; either may hold what we look for. */
static bool find_tables(struct mem *m, const struct elf_image *elf, struct table ret[2])
{
	Elf64_Dyn dynamic[DYNAMIC_MAX];
	size_t n;

	memset(ret, 0, 2 * sizeof(ret[0]));
	if (find_dynamic(m, elf, dynamic, &n) < 0)
		return false;
	for (size_t i = 0; i < n && dynamic[i].d_tag != DT_NULL; i++) {
		uint64_t value = dynamic[i].d_un.d_val;

		/* glibc has made these absolute, others leave them. */
		if (dynamic[i].d_tag == DT_JMPREL || dynamic[i].d_tag == DT_RELA)
			ret[dynamic[i].d_tag == DT_RELA].at =
			    value >= elf->start && value < elf->end ? value : value + elf->bias;
		else if (dynamic[i].d_tag == DT_PLTRELSZ || dynamic[i].d_tag == DT_RELASZ)
			ret[dynamic[i].d_tag == DT_RELASZ].n = value / sizeof(Elf64_Rela);
	}
	return true;
}

static bool chooses(const struct elf_image *elf, const Elf64_Rela *r)
{
	return ELF64_R_TYPE(r->r_info) ==
	       (elf->machine == EM_AARCH64 ? R_AARCH64_IRELATIVE : R_X86_64_IRELATIVE);
}

/* The chosen function under every name of the one that chooses. False: the loader has not filled in
 * which one. */
static bool add_chosen(struct mem *m, const struct native_image *image,
		       const native_symbols *indirect, const Elf64_Rela *r, native_symbols *symbols)
{
	const struct elf_image *elf = &image->elf;
	uint64_t chooser = (uint64_t)r->r_addend + elf->bias - elf->start, chosen = 0, end;

	for (size_t i = 0; i < indirect->n; i++) {
		struct native_symbol *slot;

		if (indirect->v[i].start != chooser)
			continue;
		if (!chosen && mem_read_u64(m, r->r_offset + elf->bias, &chosen) < 0)
			return false;
		if (chosen < elf->start)
			return false; /* nothing, or an address of the file */
		if (chosen >= elf->end || native_function_end(m, image, chosen, &end) < 0)
			return true; /* leads elsewhere */
		if (end - elf->start > UINT32_MAX || symbols->n >= NATIVE_SYMBOLS)
			return true;
		slot = vec_push(symbols);
		if (slot)
			*slot =
			    (struct native_symbol){ (uint32_t)(chosen - elf->start),
						    (uint32_t)(end - chosen), indirect->v[i].name };
	}
	return true;
}

bool native_chosen(struct mem *m, const struct native_image *image, const native_symbols *indirect,
		   native_symbols *symbols)
{
	struct table tables[2];
	Elf64_Rela some[64];
	bool all = true;

	if (!indirect->n || !find_tables(m, &image->elf, tables))
		return true;
	for (int t = 0; t < 2; t++) {
		uint64_t n = tables[t].at && tables[t].n < RELOCATIONS ? tables[t].n : 0;

		for (uint64_t i = 0; i < n;) {
			uint64_t part = n - i < 64 ? n - i : 64;

			if (mem_read(m, tables[t].at + i * sizeof(some[0]), some,
				     part * sizeof(some[0])) < 0)
				break;
			for (uint64_t k = 0; k < part; k++)
				if (chooses(&image->elf, &some[k]))
					all &= add_chosen(m, image, indirect, &some[k], symbols);
			i += part;
		}
	}
	return all;
}
