/* SPDX-License-Identifier: MIT
 *
 * The section headers are at e_shoff, 64 bytes each. SHT_SYMTAB is a list of
 *	u32 name, u8 info (type in the low 4 bits), u8 other, u16 section, u64 value, u64 size
 * in no order worth mentioning, and its sh_link is the section of the names. The list is gone through once
 * for all addresses that are asked for, without keeping it.
 */
#include "stack/native/symtab.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SECTIONS_MAX 4096       /* a program has some 40 */
#define SYMBOLS_MAX  (1u << 21) /* 48 MB are read over */
#define AT_ONCE      1024       /* symbols, 24 KB */
#define STRINGS_MAX  (1ull << 32)
/* Functions hardly ever overlap; where all cover all that is asked for, somebody made them so. */
#define COVERS_MAX (1u << 22)
#define NAME_MAX_N 4096

static int read_section(struct mem *file, const Elf64_Ehdr *head, uint32_t i, Elf64_Shdr *ret)
{
	return mem_read(file, head->e_shoff + (uint64_t)i * sizeof(*ret), ret, sizeof(*ret));
}

static int find_sections(struct mem *file, Elf64_Shdr *symbols, Elf64_Shdr *strings)
{
	Elf64_Ehdr head;
	int r = mem_read(file, 0, &head, sizeof(head));

	if (r < 0)
		return r == -EFAULT ? -ENOEXEC : r;
	if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64 ||
	    head.e_ident[EI_DATA] != ELFDATA2LSB)
		return -ENOEXEC;
	if (!head.e_shoff || head.e_shentsize != sizeof(*symbols) || head.e_shnum > SECTIONS_MAX ||
	    head.e_shoff > INT64_MAX - SECTIONS_MAX * sizeof(*symbols))
		return -ENOENT;
	for (uint32_t i = 0; i < head.e_shnum; i++) {
		r = read_section(file, &head, i, symbols);
		if (r < 0)
			return r == -EFAULT ? -ENOENT : r;
		if (symbols->sh_type != SHT_SYMTAB)
			continue;
		if (symbols->sh_entsize != sizeof(Elf64_Sym) || symbols->sh_link >= head.e_shnum ||
		    symbols->sh_size / sizeof(Elf64_Sym) > SYMBOLS_MAX ||
		    symbols->sh_offset > INT64_MAX - symbols->sh_size)
			return -ENOENT;
		r = read_section(file, &head, symbols->sh_link, strings);
		if (r < 0)
			return r == -EFAULT ? -ENOENT : r;
		return strings->sh_type == SHT_STRTAB && strings->sh_size <= STRINGS_MAX &&
			       strings->sh_offset <= INT64_MAX - STRINGS_MAX
			   ? 0
			   : -ENOENT;
	}
	return -ENOENT;
}

/* The first address at or behind `start`. */
static size_t first_from(const struct symtab_place *of, size_t n, uint32_t start)
{
	size_t low = 0;

	while (low < n) {
		size_t middle = low + (n - low) / 2;

		if (of[middle].at < start)
			low = middle + 1;
		else
			n = middle;
	}
	return low;
}

/* The innermost of those that cover an address; of several names the first. How many it covers. */
static size_t cover(struct symtab_place *of, size_t n, uint32_t start, uint32_t size, uint32_t name)
{
	size_t first = first_from(of, n, start), i;

	for (i = first; i < n && of[i].at - start < size; i++) {
		struct symtab_place *p = &of[i];

		if (p->size && (p->start > start || (p->start == start && p->size <= size)))
			continue;
		p->start = start;
		p->size = size;
		p->name_at = name;
	}
	return i - first;
}

/* A function without a size covers nothing: see symbols.c. */
static bool is_function(const Elf64_Sym *s, uint64_t low, uint64_t span, uint64_t strings_n)
{
	uint64_t start = s->st_value - low;

	return ELF64_ST_TYPE(s->st_info) == STT_FUNC && s->st_shndx != SHN_UNDEF && s->st_size &&
	       start < span && s->st_size <= span - start && start <= UINT32_MAX &&
	       s->st_size <= UINT32_MAX && s->st_name && s->st_name < strings_n;
}

static int scan(struct mem *file, const Elf64_Shdr *symbols, uint64_t low, uint64_t span,
		uint64_t strings_n, struct symtab_place *of, size_t n)
{
	Elf64_Sym some[AT_ONCE];
	uint64_t all = symbols->sh_size / sizeof(some[0]), covered = 0;

	for (uint64_t i = 0; i < all; i += AT_ONCE) {
		uint64_t part = all - i < AT_ONCE ? all - i : AT_ONCE;
		int r = mem_read(file, symbols->sh_offset + i * sizeof(some[0]), some,
				 part * sizeof(some[0]));

		if (r < 0)
			return r == -EFAULT ? -ENOENT : r;
		for (uint64_t k = 0; k < part; k++)
			if (is_function(&some[k], low, span, strings_n))
				covered += cover(of, n, (uint32_t)(some[k].st_value - low),
						 (uint32_t)some[k].st_size, some[k].st_name);
		if (covered > COVERS_MAX)
			return -ENOENT;
	}
	return 0;
}

/* Heap memory; NULL: it does not end, or cannot be read. */
static char *read_name(struct mem *file, const Elf64_Shdr *strings, uint32_t at)
{
	static const size_t tries[] = { 128, NAME_MAX_N };
	char text[NAME_MAX_N];

	for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
		uint64_t n = strings->sh_size - at < tries[i] ? strings->sh_size - at : tries[i];

		if (mem_read(file, strings->sh_offset + at, text, n) < 0)
			return NULL;
		if (memchr(text, 0, n))
			return text[0] ? strdup(text) : NULL;
	}
	return NULL;
}

int symtab_find(struct mem *file, uint64_t low, uint64_t span, struct symtab_place *of, size_t n)
{
	Elf64_Shdr symbols, strings;
	int r = find_sections(file, &symbols, &strings);

	for (size_t i = 0; i < n; i++) {
		of[i].size = 0;
		of[i].name = NULL;
	}
	if (r == 0)
		r = scan(file, &symbols, low, span, strings.sh_size, of, n);
	for (size_t i = 0; i < n; i++) {
		if (r == 0 && of[i].size)
			of[i].name = read_name(file, &strings, of[i].name_at);
		if (!of[i].name)
			of[i].size = 0;
	}
	return r;
}
