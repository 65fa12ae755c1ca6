/* SPDX-License-Identifier: MIT
 *
 * The other machine, in memory made by hand: a thread waits in inner(), which has saved the frame
 * pointer and the link register; outer() keeps its frame by the pointer and signs its return address;
 * first() is the outermost. The code is x86_64's as well, so this runs anywhere.
 */
#include "../../fuzz/memory.h"
#include "../unit.h"
#include "stack/native/process.h"

#include <elf.h>

#define BASE  0x10000000ull
#define INDEX 0x400 /* of .eh_frame_hdr in the image */
#define CIE   0x480
#define INNER 0x2000
#define OUTER 0x2100
#define FIRST 0x2200
#define STACK 0x7f0000000000ull

static const char maps[] = "10000000-10001000 r--p 00000000 00:01 5 /lib/libmade.so\n"
			   "10001000-10003000 r-xp 00001000 00:01 5 /lib/libmade.so\n"
			   "7f0000000000-7f0000001000 rw-p 00000000 00:00 0\n";

struct made {
	uint8_t image[0x1000];
	uint64_t stack[64];
};

static void put32(struct made *m, size_t at, uint32_t value)
{
	memcpy(m->image + at, &value, 4);
}

/* Length, back to the CIE, where it begins (relative to this field), size, no augmentation, code. */
static void put_function(struct made *m, unsigned entry, size_t fde, uint32_t begin,
			 const uint8_t *code, size_t n)
{
	memset(m->image + fde, 0, 32);
	put32(m, fde, 28);
	put32(m, fde + 4, (uint32_t)(fde + 4 - CIE));
	put32(m, fde + 8, begin - (uint32_t)(fde + 8));
	put32(m, fde + 12, 0x100);
	memcpy(m->image + fde + 17, code, n);
	put32(m, INDEX + 12 + entry * 8, begin - INDEX);
	put32(m, INDEX + 16 + entry * 8, (uint32_t)(fde - INDEX));
}

static void make(struct made *m)
{
	static const uint8_t
	    cie[] = { 16, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 4, 0x78, 30, 1, 0x1b, 0x0c, 31, 0 },
	    index[] = { 1, 0x1b, 3, 0x3b },
	    /* from its 2nd instruction on: cfa sp+32, x29 at cfa-32, x30 at cfa-24 */
	    inner[] = { 0x41, 0x0e, 32, 0x9d, 4, 0x9e, 3 },
	    /* signed; cfa x29+16, x29 at cfa-16, x30 at cfa-8 */
	    outer[] = { 0x41, 0x2d, 0x41, 0x0c, 29, 16, 0x9d, 2, 0x9e, 1 }, first[] = { 0x07, 30 };
	Elf64_Ehdr head = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB },
			    .e_machine = EM_AARCH64,
			    .e_phoff = sizeof(head),
			    .e_phentsize = sizeof(Elf64_Phdr),
			    .e_phnum = 2 };
	Elf64_Phdr headers[] = { { .p_type = PT_LOAD, .p_memsz = 0x3000 },
				 { .p_type = PT_GNU_EH_FRAME, .p_vaddr = INDEX } };

	memset(m, 0, sizeof(*m));
	memcpy(m->image, &head, sizeof(head));
	memcpy(m->image + sizeof(head), headers, sizeof(headers));
	memcpy(m->image + CIE, cie, sizeof(cie));
	memcpy(m->image + INDEX, index, sizeof(index));
	put32(m, INDEX + 8, 3);
	put_function(m, 0, 0x500, INNER, inner, sizeof(inner));
	put_function(m, 1, 0x540, OUTER, outer, sizeof(outer));
	put_function(m, 2, 0x580, FIRST, first, sizeof(first));
	/* sp is at word 4: x29 and x30 of outer, then its own frame at word 20. */
	m->stack[4] = STACK + 20 * 8;
	m->stack[5] = BASE + OUTER + 0x40;
	m->stack[20] = 0;
	m->stack[21] = 0x00ab000000000000ull | (BASE + FIRST + 0x20);
}

static size_t walk(struct made *made, uint64_t pc, uint64_t *found)
{
	static struct memory memory;
	struct native_process *p;
	struct mem m;
	size_t n;

	memory = (struct memory){ 0 };
	memory_add(&memory, BASE, made->image, sizeof(made->image));
	memory_add(&memory, STACK, made->stack, sizeof(made->stack));
	mem_open_source(&m, memory_read, &memory);
	assert_int_equal(native_open_memory(&p, &m, maps, sizeof(maps) - 1), 0);
	n = native_unwind(p, pc, STACK + 4 * 8, 0, found, NATIVE_FRAMES_MAX);
	native_close(p);
	return n;
}

static void test_walk(void **state)
{
	uint64_t found[NATIVE_FRAMES_MAX];
	struct made made;

	(void)state;
	make(&made);
	assert_int_equal(walk(&made, BASE + INNER + 0x10, found), 3);
	assert_int_equal(found[0], BASE + INNER + 0x10);
	assert_int_equal(found[1], BASE + OUTER + 0x40);
	assert_int_equal(found[2], BASE + FIRST + 0x20); /* without its signature */
}

static void test_stops(void **state)
{
	uint64_t found[NATIVE_FRAMES_MAX];
	struct made made;

	(void)state;
	make(&made);
	/* The link register is not saved yet, and nobody knows it. */
	assert_int_equal(walk(&made, BASE + INNER, found), 1);
	/* The caller's frame lies below the callee's: a lie. */
	made.stack[4] = STACK;
	assert_int_equal(walk(&made, BASE + INNER + 0x10, found), 2);
	/* A return address that is no code is no frame. */
	make(&made);
	made.stack[21] = STACK;
	assert_int_equal(walk(&made, BASE + INNER + 0x10, found), 2);
	make(&made);
	made.stack[5] = BASE + 0x10;
	assert_int_equal(walk(&made, BASE + INNER + 0x10, found), 1);
	/* Code between functions has no rule. */
	make(&made);
	assert_int_equal(walk(&made, BASE + FIRST + 0x100, found), 1);
	/* A table that says it is longer than the image. */
	put32(&made, INDEX + 8, 0x00ffffff);
	assert_int_equal(walk(&made, BASE + INNER + 0x10, found), 1);
	/* Of another kind of machine. */
	make(&made);
	((Elf64_Ehdr *)(void *)made.image)->e_machine = EM_RISCV;
	assert_int_equal(walk(&made, BASE + INNER + 0x10, found), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_walk),
		cmocka_unit_test(test_stops),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
