/* SPDX-License-Identifier: MIT
 *
 * .symtab of files: what covers an address, and files that somebody made to be wrong.
 */
#include "../unit.h"
#include "stack/native/symtab.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>

#define LOW      0x400000ull /* the file's lowest address */
#define SPAN     0x10000ull
#define SYMBOLS  16
#define FUNCTION ELF64_ST_INFO(STB_LOCAL, STT_FUNC)

struct small {
	Elf64_Ehdr head;
	Elf64_Shdr sections[4];
	Elf64_Sym symbols[SYMBOLS];
	char strings[64];
};

struct file {
	const uint8_t *bytes;
	size_t n;
};

static int read_file(void *arg, struct mem_piece *pieces, size_t n)
{
	const struct file *f = arg;

	for (size_t i = 0; i < n; i++) {
		pieces[i].failed = pieces[i].at > f->n || pieces[i].n > f->n - (size_t)pieces[i].at;
		if (!pieces[i].failed)
			memcpy(pieces[i].to, f->bytes + pieces[i].at, pieces[i].n);
	}
	return 0;
}

/* "\0outer\0inner\0data\0last": the last one does not end. */
static struct small make(void)
{
	struct small s = {
		.head = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB },
			  .e_shoff = offsetof(struct small, sections),
			  .e_shentsize = sizeof(Elf64_Shdr),
			  .e_shnum = 4 },
		.sections = { [2] = { .sh_type = SHT_SYMTAB,
				      .sh_offset = offsetof(struct small, symbols),
				      .sh_size = sizeof(s.symbols),
				      .sh_entsize = sizeof(Elf64_Sym),
				      .sh_link = 3 },
			      [3] = { .sh_type = SHT_STRTAB,
				      .sh_offset = offsetof(struct small, strings),
				      .sh_size = 23 } },
		.symbols = { [1] = { 1, FUNCTION, 0, 1, LOW + 0x1000, 0x100 }, /* outer */
			     [2] = { 7, FUNCTION, 0, 1, LOW + 0x1040, 0x10 },  /* inner */
			     [3] = { 13, STT_OBJECT, 0, 1, LOW + 0x2000, 0x100 } /* data */,
			     [4] = { 1, FUNCTION, 0, 1, LOW + 0x3000, 0 },  /* without a size */
			     [5] = { 1, FUNCTION, 0, 0, LOW + 0x4000, 16 }, /* of another file */
			     [6] = { 18, FUNCTION, 0, 1, LOW + 0x5000, 16 },
			     [7] = { 24, FUNCTION, 0, 1, LOW + 0x6000, 16 },
			     [8] = { 1, FUNCTION, 0, 1, LOW + 0x7000, SPAN },
			     [9] = { 1, FUNCTION, 0, 1, LOW - 16, 32 },
			     [10] = { 0, FUNCTION, 0, 1, LOW + 0x8000, 16 },
			     [11] = { 7, FUNCTION, 0, 1, LOW + SPAN - 16, 16 } },
		.strings = "\0outer\0inner\0data\0lastX\0outside",
	};

	return s;
}

static int find(const void *bytes, size_t n, struct symtab_place *of, size_t of_n)
{
	struct file file = { bytes, n };
	struct mem m;

	mem_open_source(&m, read_file, &file);
	return symtab_find(&m, LOW, SPAN, of, of_n);
}

static void free_all(struct symtab_place *of, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(of[i].name);
}

static void test_covers(void **state)
{
	static const struct {
		uint32_t at;
		const char *name; /* NULL: none */
		uint32_t start, size;
	} want[] = {
		{ 0, NULL, 0, 0 }, /* by one that begins below the image */
		{ 0xfff, NULL, 0, 0 },
		{ 0x1000, "outer", 0x1000, 0x100 },
		{ 0x103f, "outer", 0x1000, 0x100 },
		{ 0x1040, "inner", 0x1040, 0x10 },
		{ 0x104f, "inner", 0x1040, 0x10 },
		{ 0x1050, "outer", 0x1000, 0x100 },
		{ 0x1100, NULL, 0, 0 },
		{ 0x2000, NULL, 0, 0 },
		{ 0x3000, NULL, 0, 0 },
		{ 0x4000, NULL, 0, 0 },
		{ 0x5000, NULL, 0, 0 }, /* a name that does not end */
		{ 0x6000, NULL, 0, 0 }, /* and one beyond the strings */
		{ 0x7000, NULL, 0, 0 }, /* longer than the image */
		{ 0x8000, NULL, 0, 0 },
		{ SPAN - 1, "inner", SPAN - 16, 16 },
		{ UINT32_MAX, NULL, 0, 0 },
	};
	enum { N = sizeof(want) / sizeof(want[0]) };
	struct symtab_place of[N] = { 0 };
	struct small s = make();

	(void)state;
	for (size_t i = 0; i < N; i++)
		of[i].at = want[i].at;
	assert_int_equal(find(&s, sizeof(s), of, N), 0);
	for (size_t i = 0; i < N; i++) {
		assert_int_equal(of[i].at, want[i].at);
		if (!want[i].name) {
			assert_int_equal(of[i].size, 0);
			assert_null(of[i].name);
			continue;
		}
		assert_string_equal(of[i].name, want[i].name);
		assert_int_equal(of[i].start, want[i].start);
		assert_int_equal(of[i].size, want[i].size);
	}
	free_all(of, N);
	assert_int_equal(find(&s, sizeof(s), NULL, 0), 0);
}

static int find_one(const struct small *s, size_t n)
{
	struct symtab_place of = { .at = 0x1000 };
	int r = find(s, n, &of, 1);

	assert_true((r == 0 && of.size) || !of.name);
	free(of.name);
	return r;
}

static void test_wrong_files(void **state)
{
	struct small s = make();

	(void)state;
	assert_int_equal(find_one(&s, sizeof(s)), 0);
	for (size_t n = 0; n < sizeof(s); n += 7)
		assert_true(find_one(&s, n) <= 0);
	assert_int_equal(find_one(&s, 0), -ENOEXEC);
	assert_int_equal(find_one(&s, offsetof(struct small, symbols) + 24), -ENOENT);
#define WRONG(change, result)                                        \
	do {                                                         \
		s = make();                                          \
		change;                                              \
		assert_int_equal(find_one(&s, sizeof(s)), (result)); \
	} while (0)
	WRONG(s.head.e_ident[EI_CLASS] = ELFCLASS32, -ENOEXEC);
	WRONG(s.head.e_ident[0] = 0, -ENOEXEC);
	WRONG(s.head.e_shoff = 0, -ENOENT);
	WRONG(s.head.e_shoff = UINT64_MAX - 8, -ENOENT);
	WRONG(s.head.e_shoff = INT64_MAX - 8, -ENOENT);
	WRONG(s.head.e_shentsize = 63, -ENOENT);
	WRONG(s.head.e_shnum = 2, -ENOENT); /* stripped */
	WRONG(s.head.e_shnum = 0, -ENOENT);
	WRONG(s.head.e_shnum = UINT16_MAX, -ENOENT);
	WRONG(s.sections[2].sh_entsize = 0, -ENOENT);
	WRONG(s.sections[2].sh_link = 4, -ENOENT);
	WRONG(s.sections[2].sh_link = 2, -ENOENT);
	WRONG(s.sections[2].sh_link = UINT32_MAX, -ENOENT);
	WRONG(s.sections[2].sh_size = UINT64_MAX, -ENOENT);
	WRONG(s.sections[2].sh_size = 24u << 21, -ENOENT);
	WRONG(s.sections[2].sh_offset = UINT64_MAX - 100, -ENOENT);
	WRONG(s.sections[2].sh_offset = sizeof(s), -ENOENT);
	WRONG(s.sections[3].sh_size = UINT64_MAX, -ENOENT);
	WRONG(s.sections[3].sh_offset = UINT64_MAX - 4, -ENOENT);
	WRONG(s.sections[3].sh_offset = sizeof(s), 0); /* symbols, and no names */
	WRONG(s.sections[3].sh_size = 0, 0);
	WRONG(s.symbols[1].st_value = UINT64_MAX, 0);
	WRONG(s.symbols[1].st_size = UINT64_MAX, 0);
#undef WRONG
}

/* Every function covers every address that is asked for: given up, and soon. */
static void test_overlapping(void **state)
{
	enum { MANY = 100000, ASKED = 64 };
	size_t n = sizeof(struct small) + MANY * sizeof(Elf64_Sym);
	struct small *s = calloc(1, n);
	Elf64_Sym *symbols = (Elf64_Sym *)(s + 1);
	struct symtab_place of[ASKED] = { 0 };

	(void)state;
	*s = make();
	s->sections[2].sh_offset = sizeof(*s);
	s->sections[2].sh_size = MANY * sizeof(Elf64_Sym);
	for (uint32_t i = 0; i < ASKED; i++)
		of[i].at = 0x1000 + i;
	for (size_t i = 0; i < MANY; i++)
		symbols[i] = (Elf64_Sym){ 1, FUNCTION, 0, 1, LOW + i % 0x1000, 0x8000 };
	assert_int_equal(find(s, n, of, ASKED), -ENOENT);
	for (size_t i = 0; i < ASKED; i++)
		assert_true(!of[i].name && !of[i].size);
	s->sections[2].sh_size = 1000 * sizeof(Elf64_Sym);
	assert_int_equal(find(s, n, of, ASKED), 0);
	assert_int_equal(of[0].start, 999);
	free_all(of, ASKED);
	free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_covers),
		cmocka_unit_test(test_wrong_files),
		cmocka_unit_test(test_overlapping),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
