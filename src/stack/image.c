/* SPDX-License-Identifier: MIT */
#include "stack/image.h"

#include <elf.h>
#include <errno.h>

#define HEADERS_MAX 64   /* program headers of an image; 16 is much */
#define DYNAMIC_MAX 256  /* entries of PT_DYNAMIC; 40 is much */
#define CHAIN_MAX   4096 /* symbols in one hash bucket; some 5 in practice */

/* The addresses of all segments of the image, and where its dynamic table is. */
static int read_headers(struct mem *m, uint64_t start, struct elf_image *ret, uint64_t *ret_dynamic,
			uint64_t *ret_dynamic_n)
{
	Elf64_Ehdr head;
	Elf64_Phdr headers[HEADERS_MAX];
	uint64_t low = UINT64_MAX, high = 0;
	int r = mem_read(m, start, &head, sizeof(head));

	if (r < 0)
		return r;
	if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64 ||
	    head.e_ident[EI_DATA] != ELFDATA2LSB || head.e_phentsize != sizeof(Elf64_Phdr) ||
	    head.e_phnum == 0 || head.e_phnum > HEADERS_MAX || head.e_phoff > 1 << 20)
		return -ENOEXEC;
	r = mem_read(m, start + head.e_phoff, headers, head.e_phnum * sizeof(headers[0]));
	if (r < 0)
		return r;
	*ret_dynamic_n = 0;
	for (unsigned i = 0; i < head.e_phnum; i++) {
		const Elf64_Phdr *h = &headers[i];

		if (h->p_type == PT_DYNAMIC) {
			*ret_dynamic = h->p_vaddr;
			*ret_dynamic_n = h->p_memsz / sizeof(Elf64_Dyn);
		}
		if (h->p_type != PT_LOAD || h->p_vaddr + h->p_memsz < h->p_vaddr)
			continue;
		low = h->p_vaddr < low ? h->p_vaddr : low;
		high = h->p_vaddr + h->p_memsz > high ? h->p_vaddr + h->p_memsz : high;
	}
	if (low >= high || !*ret_dynamic_n)
		return -ENOEXEC;
	*ret = (struct elf_image){ .start = start,
				   .bias = start - (low & ~(uint64_t)4095),
				   .machine = head.e_machine };
	ret->end = ret->bias + high;
	*ret_dynamic += ret->bias;
	return ret->end > start ? 0 : -ENOEXEC;
}

/* glibc writes absolute addresses over those of the file, others (musl, vdso) leave them. */
static uint64_t absolute(const struct elf_image *image, uint64_t value)
{
	if (value >= image->start && value < image->end)
		return value;
	value += image->bias;
	return value >= image->start && value < image->end ? value : 0;
}

int elf_image_at(struct mem *m, const elf_mappings *maps, size_t i, struct elf_image *ret)
{
	Elf64_Dyn table[DYNAMIC_MAX];
	uint64_t dynamic = 0, n = 0;
	struct elf_image image;
	int r;

	if (!maps->v[i].readable || maps->v[i].offset)
		return -ENOEXEC;
	r = read_headers(m, maps->v[i].start, &image, &dynamic, &n);
	if (r < 0)
		return r;
	n = n < DYNAMIC_MAX ? n : DYNAMIC_MAX;
	r = mem_read(m, dynamic, table, n * sizeof(table[0]));
	if (r < 0)
		return r;
	for (uint64_t k = 0; k < n && table[k].d_tag != DT_NULL; k++) {
		uint64_t value = table[k].d_un.d_val;

		switch (table[k].d_tag) {
		case DT_SYMTAB:
			image.symbols = absolute(&image, value);
			break;
		case DT_STRTAB:
			image.strings = absolute(&image, value);
			break;
		case DT_STRSZ:
			image.strings_n = value;
			break;
		case DT_GNU_HASH:
			image.gnu_hash = absolute(&image, value);
			break;
		case DT_HASH:
			image.old_hash = absolute(&image, value);
			break;
		default:
			break;
		}
	}
	if (!image.symbols || !image.strings || (!image.gnu_hash && !image.old_hash))
		return -ENOEXEC;
	*ret = image;
	return 0;
}

/* Is symbol `index` defined and called `name`? 0 then, -ENOENT else. */
static int symbol_matches(struct mem *m, const struct elf_image *image, uint64_t index,
			  const char *name, uint64_t *ret)
{
	size_t n = strlen(name) + 1;
	char text[128];
	Elf64_Sym symbol;
	int r = mem_read(m, image->symbols + index * sizeof(symbol), &symbol, sizeof(symbol));

	if (r < 0)
		return r;
	if (symbol.st_shndx == SHN_UNDEF || n > sizeof(text) || symbol.st_name >= image->strings_n)
		return -ENOENT;
	r = mem_read(m, image->strings + symbol.st_name, text, n);
	if (r < 0)
		return r == -EFAULT ? -ENOENT : r;
	if (memcmp(text, name, n) != 0)
		return -ENOENT;
	*ret = symbol.st_value + image->bias;
	return *ret >= image->start && *ret < image->end ? 0 : -ENOENT;
}

static int gnu_lookup(struct mem *m, const struct elf_image *image, const char *name, uint64_t *ret)
{
	struct {
		uint32_t buckets, first, bloom_n, bloom_shift;
	} head;
	uint32_t hash = 5381, index, link;
	uint64_t word, buckets, chain;
	int r = mem_read(m, image->gnu_hash, &head, sizeof(head));

	if (r < 0)
		return r;
	for (const char *p = name; *p; p++)
		hash = hash * 33 + (uint8_t)*p;
	if (!head.buckets || !head.bloom_n || head.bloom_shift > 31)
		return -ENOENT;
	r = mem_read_u64(m, image->gnu_hash + sizeof(head) + 8ull * (hash / 64 % head.bloom_n),
			 &word);
	if (r < 0)
		return r;
	if (!(word >> (hash % 64) & 1) || !(word >> ((hash >> head.bloom_shift) % 64) & 1))
		return -ENOENT;
	buckets = image->gnu_hash + sizeof(head) + 8ull * head.bloom_n;
	r = mem_read(m, buckets + 4ull * (hash % head.buckets), &index, sizeof(index));
	if (r < 0)
		return r;
	if (index < head.first)
		return -ENOENT;
	chain = buckets + 4ull * head.buckets;
	for (unsigned step = 0; step < CHAIN_MAX; step++, index++) {
		r = mem_read(m, chain + 4ull * (index - head.first), &link, sizeof(link));
		if (r < 0)
			return r;
		if ((link | 1) == (hash | 1) && symbol_matches(m, image, index, name, ret) == 0)
			return 0;
		if (link & 1)
			return -ENOENT;
	}
	return -ENOENT;
}

static int old_lookup(struct mem *m, const struct elf_image *image, const char *name, uint64_t *ret)
{
	uint32_t head[2], hash = 0, index, high;
	int r = mem_read(m, image->old_hash, head, sizeof(head));

	if (r < 0)
		return r;
	for (const char *p = name; *p; p++) {
		hash = (hash << 4) + (uint8_t)*p;
		high = hash & 0xf0000000;
		hash = (hash ^ high >> 24) & ~high;
	}
	if (!head[0])
		return -ENOENT;
	r = mem_read(m, image->old_hash + 8 + 4ull * (hash % head[0]), &index, sizeof(index));
	for (unsigned step = 0; r == 0 && index && index < head[1] && step < CHAIN_MAX; step++) {
		if (symbol_matches(m, image, index, name, ret) == 0)
			return 0;
		r = mem_read(m, image->old_hash + 8 + 4ull * head[0] + 4ull * index, &index,
			     sizeof(index));
	}
	return r < 0 ? r : -ENOENT;
}

int elf_symbol(struct mem *m, const struct elf_image *image, const char *name, uint64_t *ret)
{
	uint64_t found;
	int r = image->gnu_hash ? gnu_lookup(m, image, name, &found)
				: old_lookup(m, image, name, &found);

	if (r == 0)
		*ret = found;
	return r == -EFAULT ? -ENOENT : r;
}
