/* SPDX-License-Identifier: MIT
 *
 * Images of processes (tests/fuzz/corpus/py_image, one a version): what is read from them is the stack
 * that was there; and with something wrong in them, nothing wrong is read. And symbols of images: of
 * this process, against dlsym().
 */
#include "../../fuzz/memory.h"
#include "../unit.h"

#include "base/err.h"
#include "base/io.h"
#include "stack/image.h"
#include "stack/py/locate.h"
#include "stack/py/py.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define IMAGE_MAX (1 << 20)

static struct memory memory;
static uint8_t *image;
static size_t image_n;

static void load(const char *name)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), CORPUS "/py_image/%s", name);
	f = fopen(path, "re");
	assert_non_null(f);
	free(image);
	image = malloc(IMAGE_MAX);
	assert_non_null(image);
	image_n = fread(image, 1, IMAGE_MAX, f);
	fclose(f);
	memory_parse(&memory, image + 1, image_n - 1);
	memory.tear = 0;
	memory.tear_from = memory.tear_to = 0;
	memory.reads = 0;
}

static const char *const names[] = {
	"größe", "h", "g", "m", "m", "m", "m", "__init__", "<module>"
};
static const int lines[] = { 12, 11, 9, 7, 6, 6, 6, 4, 13 };

static bool is_expected(const struct py_process *p, const struct py_frame *f, size_t i)
{
	struct py_function function;
	const char *bare;

	assert_non_null(py_code(p, f->code, &function));
	bare = strrchr(function.name, '.');
	return strcmp(bare ? bare + 1 : function.name, names[i]) == 0 &&
	       py_line(p, f->code, f->offset) == lines[i] && strcmp(function.file, "<string>") == 0;
}

static void test_stack_of_each_version(void **state)
{
	static const char *const versions[] = { "3.8", "3.10", "3.11", "3.12", "3.13" };

	(void)state;
	for (size_t v = 0; v < 5; v++) {
		struct py_process *p = NULL;
		struct py_stacks s = { 0 };
		struct err e = { 0 };
		struct mem m;

		load(versions[v]);
		mem_open_source(&m, memory_read, &memory);
		if (py_attach_memory(&p, &m, memory.maps, memory.maps_n, &e) < 0)
			fail_msg("%s: %s", versions[v], e.text);
		assert_int_equal(py_version(p) >> 16 & 0xff, strtol(versions[v] + 2, NULL, 10));
		assert_int_equal(py_sample(p, &s), 0);
		assert_int_equal(s.threads.n, 1);
		assert_int_equal(s.threads.v[0].status, PY_COMPLETE);
		assert_int_equal(s.threads.v[0].n, 9);
		for (size_t i = 0; i < 9; i++)
			assert_true(is_expected(p, &s.frames.v[i], i));
		py_stacks_done(&s);
		py_detach(p);
	}
}

/* Writes at an address of the image, in every segment that has it. */
static void poke_bytes(uint64_t at, const void *bytes, size_t n)
{
	for (size_t i = 0; i < memory.n; i++) {
		uint64_t into = at - memory.segment[i].at;

		if (at >= memory.segment[i].at && into + n <= memory.segment[i].n)
			memcpy((uint8_t *)(uintptr_t)memory.segment[i].bytes + into, bytes, n);
	}
}

static void poke(uint64_t at, uint64_t value)
{
	poke_bytes(at, &value, sizeof(value));
}

static uint64_t peek(uint64_t at)
{
	struct mem m;
	uint64_t value = 0;

	mem_open_source(&m, memory_read, &memory);
	assert_int_equal(mem_read_u64(&m, at, &value), 0);
	return value;
}

static uint64_t first_thread(const struct py_place *place)
{
	return peek(peek(place->runtime + place->layout.runtime_interpreters) +
		    place->layout.interp_threads);
}

/* The frames change between readings, anywhere and all the time: what is called complete is the stack
 * that stands there, but for the innermost frame's line. */
static void test_torn_readings(void **state)
{
	unsigned complete = 0, other = 0;
	uint64_t retries = 0;

	(void)state;
	for (unsigned tear = 2; tear < 60; tear++) {
		struct py_process *p = NULL;
		struct py_stacks s = { 0 };
		struct py_place place;
		struct mem m;

		load("3.12");
		mem_open_source(&m, memory_read, &memory);
		assert_int_equal(py_locate(&m, memory.maps, memory.maps_n, &place, NULL), 0);
		assert_int_equal(py_attach_memory(&p, &m, memory.maps, memory.maps_n, NULL), 0);
		memory.tear_from = peek(first_thread(&place) + place.layout.thread_chunk);
		memory.tear_to = memory.tear_from + 16384;
		memory.tear = tear;
		for (int i = 0; i < 20; i++) {
			assert_int_equal(py_sample(p, &s), 0);
			assert_int_equal(s.threads.n, 1);
			if (s.threads.v[0].status != PY_COMPLETE) {
				other++;
				continue;
			}
			complete++;
			assert_int_equal(s.threads.v[0].n, 9);
			for (size_t k = 1; k < 9; k++)
				assert_true(is_expected(p, &s.frames.v[k], k));
		}
		retries += py_counts(p).retries;
		py_stacks_done(&s);
		py_detach(p);
	}
	print_message("%u complete, %u not, %llu read again\n", complete, other,
		      (unsigned long long)retries);
	assert_true(complete && retries > 100);
}

/* 3.13: the innermost frame is its own caller. And a frame list that leads nowhere. */
static void test_cycle_and_wild_pointer(void **state)
{
	struct py_place place;
	struct py_process *p = NULL;
	struct py_stacks s = { 0 };
	uint64_t thread, frame, next;
	size_t threads;
	struct mem m;
	int r;

	(void)state;
	load("3.13");
	mem_open_source(&m, memory_read, &memory);
	assert_int_equal(py_locate(&m, memory.maps, memory.maps_n, &place, NULL), 0);
	assert_int_equal(py_attach_memory(&p, &m, memory.maps, memory.maps_n, NULL), 0);
	thread = first_thread(&place);
	next = peek(thread + place.layout.thread_next);
	frame = peek(thread + place.layout.thread_frame);
	poke(frame + place.layout.frame_previous, frame);
	assert_int_equal(py_sample(p, &s), 0);
	threads = s.threads.n;
	assert_int_not_equal(s.threads.v[0].status, PY_COMPLETE);
	poke(frame + place.layout.frame_previous, 0xdead0000);
	assert_int_equal(py_sample(p, &s), 0);
	assert_int_not_equal(s.threads.v[0].status, PY_COMPLETE);
	poke(frame + place.layout.frame_previous, 0); /* looks like a first frame, but is not */
	assert_int_equal(py_sample(p, &s), 0);
	assert_int_not_equal(s.threads.v[0].status, PY_COMPLETE);
	poke(thread + place.layout.thread_next, thread); /* threads in a circle */
	r = py_sample(p, &s); /* for a while that may be a list that moves: nothing is proven */
	assert_int_equal(r, 0);
	assert_int_equal(s.threads.v[0].status, PY_UNPROVEN);
	poke(thread + place.layout.thread_next, next);
	assert_int_equal(py_sample(p, &s), 0);
	assert_int_equal(s.threads.n, threads);
	poke(thread + place.layout.thread_next, thread);
	for (int i = 0; i < 50 && r == 0; i++)
		r = py_sample(p, &s);
	assert_int_equal(r, -ESTALE);
	py_stacks_done(&s);
	py_detach(p);
}

/* Only frames of the stack that was there, from the outermost on, and not all of them. */
static void is_outer_part(const struct py_process *p, const struct py_stacks *s)
{
	const struct py_thread *t = &s->threads.v[0];
	struct py_function f;

	assert_int_not_equal(t->status, PY_COMPLETE);
	assert_true(t->n < 9);
	for (uint32_t i = 1; i < t->n; i++)
		assert_true(is_expected(p, &s->frames.v[i], 9 - t->n + i));
	if (t->n) {
		assert_non_null(py_code(p, s->frames.v[0].code, &f));
		assert_int_equal(s->frames.v[0].offset, PY_OFFSET_UNKNOWN);
	}
}

/* What an earlier stack left above the frame that runs now: it hangs together, both copies have it, and
 * the thread's pointer to it was read when it was still in use. But the frame that runs says that it
 * runs: -1 where its stack pointer is kept while it calls. */
static void test_leftover_frames(void **state)
{
	static const char *const versions[] = { "3.11", "3.12", "3.13" };
	unsigned tested = 0;

	(void)state;
	for (size_t v = 0; v < 3; v++) {
		struct py_process *p = NULL;
		struct py_stacks s = { 0 };
		struct py_place place;
		struct mem m;
		uint64_t at, inner = 0;
		bool from_c = true;

		load(versions[v]);
		mem_open_source(&m, memory_read, &memory);
		assert_int_equal(py_locate(&m, memory.maps, memory.maps_n, &place, NULL), 0);
		assert_int_equal(py_attach_memory(&p, &m, memory.maps, memory.maps_n, NULL), 0);
		at = peek(first_thread(&place) + place.layout.thread_frame);
		if (place.layout.frames == PY_FRAMES_CFRAME)
			at = peek(at + place.layout.cframe_frame);
		for (; at; at = peek(at + place.layout.frame_previous)) {
			const struct py_layout *l = &place.layout;
			uint8_t frame[256];
			int32_t stacktop, runs = -1;
			bool shim;

			assert_int_equal(mem_read(&m, at, frame, l->frame_size), 0);
			memcpy(&stacktop, frame + l->frame_stacktop, 4);
			shim = frame[l->frame_owner] >= l->owner_shim;
			if (inner && !from_c && !shim) {
				poke_bytes(at + l->frame_stacktop, &runs, 4);
				assert_int_equal(py_sample(p, &s), 0);
				is_outer_part(p, &s);
				poke_bytes(at + l->frame_stacktop, &stacktop, 4);
				tested++;
			}
			from_c = shim || (l->frame_entry != PY_ABSENT && frame[l->frame_entry]);
			inner = at;
		}
		assert_int_equal(py_sample(p, &s), 0);
		assert_int_equal(s.threads.v[0].status, PY_COMPLETE);
		py_stacks_done(&s);
		py_detach(p);
	}
	assert_true(tested >= 15);
}

static uint64_t restless; /* an address whose bytes are others in every reading */

static int restless_read(void *arg, struct mem_piece *pieces, size_t n)
{
	static uint8_t readings;
	int r = memory_read(arg, pieces, n);

	for (size_t i = 0; i < n; i++) {
		uint64_t into = restless - pieces[i].at;

		if (!pieces[i].failed && restless >= pieces[i].at && into < pieces[i].n)
			((uint8_t *)pieces[i].to)[into] ^= ++readings;
	}
	return r;
}

/* The innermost frame never stands still, not even when we attach and know no function yet: its callers
 * are found all the same. */
static void test_never_still(void **state)
{
	static const char *const versions[] = { "3.8", "3.11", "3.12", "3.13" };

	(void)state;
	for (size_t v = 0; v < 4; v++) {
		struct py_process *p = NULL;
		struct py_stacks s = { 0 };
		struct py_place place;
		struct err e = { 0 };
		struct mem m;

		load(versions[v]);
		mem_open_source(&m, memory_read, &memory);
		assert_int_equal(py_locate(&m, memory.maps, memory.maps_n, &place, NULL), 0);
		restless = peek(first_thread(&place) + place.layout.thread_frame);
		if (place.layout.frames == PY_FRAMES_CFRAME)
			restless = peek(restless + place.layout.cframe_frame);
		restless += place.layout.frame_code + 1;
		mem_open_source(&m, restless_read, &memory);
		if (py_attach_memory(&p, &m, memory.maps, memory.maps_n, &e) < 0)
			fail_msg("%s: %s", versions[v], e.text);
		assert_int_equal(py_sample(p, &s), 0);
		assert_int_equal(s.threads.v[0].status, PY_PARTIAL);
		assert_true(s.threads.v[0].n > 1);
		is_outer_part(p, &s);
		py_stacks_done(&s);
		py_detach(p);
	}
}

/* Without symbols: the cookie in a writable mapping of a file. */
static void test_cookie_scan(void **state)
{
	static uint8_t page[4096];
	struct py_place place, found;
	char maps[128];
	struct mem m;

	(void)state;
	load("3.13");
	mem_open_source(&m, memory_read, &memory);
	assert_int_equal(py_locate(&m, memory.maps, memory.maps_n, &place, NULL), 0);
	assert_int_equal(mem_read(&m, place.runtime, page + 0x128, PY_TABLE_MAX), 0);
	memory.n = 0;
	memory_add(&memory, 0x7000000, page, sizeof(page));
	snprintf(maps, sizeof(maps), "7000000-7001000 rw-p 00200000 fe:00 77\n");
	assert_int_equal(py_locate(&m, maps, strlen(maps), &found, NULL), 0);
	assert_int_equal(found.runtime, 0x7000128);
	assert_int_equal(found.code_type, 0);
	assert_int_equal(found.layout.minor, 13);
	memory.n = 0;
	assert_int_equal(py_locate(&m, maps, strlen(maps), &found, NULL), -ENOENT);
	assert_int_equal(py_locate(&m, "", 0, &found, NULL), -ENOENT);
}

static void test_symbols_of_this_process(void **state)
{
	elf_mappings maps = { 0 };
	struct elf_image one;
	struct mem m;
	size_t n, images = 0, found = 0;
	int r;
	char *text = io_slurp(AT_FDCWD, "/proc/self/maps", 1 << 20, &n, &r);
	uint64_t at;

	(void)state;
	assert_non_null(text);
	mem_open(&m, getpid());
	assert_int_equal(elf_parse_maps(text, n, &maps), 0);
	for (size_t i = 0; i < maps.n; i++) {
		if (elf_image_at(&m, &maps, i, &one) < 0)
			continue;
		images++;
		if (elf_symbol(&m, &one, "gnu_get_libc_version", &at) == 0) {
			assert_int_equal(
			    at, (uint64_t)(uintptr_t)dlsym(RTLD_DEFAULT, "gnu_get_libc_version"));
			found++;
		}
		assert_int_equal(elf_symbol(&m, &one, "no_such_symbol_anywhere", &at), -ENOENT);
	}
	assert_true(images >= 3 && found == 1);
	vec_done(&maps);
	free(text);
}

/* The older hash table, in an image whose addresses nobody has relocated (musl leaves them so). */
static void test_old_hash_table(void **state)
{
	static struct {
		Elf64_Ehdr head;
		Elf64_Phdr load, dynamic;
		Elf64_Dyn table[6];
		uint32_t hash[2 + 1 + 2];
		Elf64_Sym symbols[2];
		char strings[32];
	} file;
	struct elf_mapping map = { .start = 0x500000, .end = 0x501000, .readable = true };
	elf_mappings maps = { .v = &map, .n = 1, .cap = 1 };
	struct elf_image one;
	struct mem m;
	uint64_t at = 0;

	(void)state;
	memcpy(file.head.e_ident, ELFMAG, SELFMAG);
	file.head.e_ident[EI_CLASS] = ELFCLASS64;
	file.head.e_ident[EI_DATA] = ELFDATA2LSB;
	file.head.e_machine = EM_AARCH64;
	file.head.e_phentsize = sizeof(Elf64_Phdr);
	file.head.e_phnum = 2;
	file.head.e_phoff = sizeof(Elf64_Ehdr);
	file.load = (Elf64_Phdr){ .p_type = PT_LOAD, .p_memsz = 4096 };
	file.dynamic = (Elf64_Phdr){ .p_type = PT_DYNAMIC,
				     .p_vaddr = offsetof(__typeof__(file), table),
				     .p_memsz = sizeof(file.table) };
	file.table[0] = (Elf64_Dyn){ DT_HASH, { offsetof(__typeof__(file), hash) } };
	file.table[1] = (Elf64_Dyn){ DT_SYMTAB, { offsetof(__typeof__(file), symbols) } };
	file.table[2] = (Elf64_Dyn){ DT_STRTAB, { offsetof(__typeof__(file), strings) } };
	file.table[3] = (Elf64_Dyn){ DT_STRSZ, { sizeof(file.strings) } };
	memcpy(file.hash, (uint32_t[]){ 1, 2, 1, 0, 0 }, sizeof(file.hash));
	file.symbols[1] = (Elf64_Sym){ .st_name = 1, .st_shndx = 1, .st_value = 0x123 };
	memcpy(file.strings + 1, "_PyRuntime", 11);
	memory.n = 0;
	memory.tear = 0;
	memory_add(&memory, 0x500000, &file, sizeof(file));
	mem_open_source(&m, memory_read, &memory);
	assert_int_equal(elf_image_at(&m, &maps, 0, &one), 0);
	assert_int_equal(one.machine, EM_AARCH64);
	assert_int_equal(elf_symbol(&m, &one, "_PyRuntime", &at), 0);
	assert_int_equal(at, 0x500123);
	assert_int_equal(elf_symbol(&m, &one, "_PyRuntim", &at), -ENOENT);
	file.symbols[1].st_shndx = SHN_UNDEF;
	assert_int_equal(elf_symbol(&m, &one, "_PyRuntime", &at), -ENOENT);
	file.hash[4] = 1; /* a chain in a circle */
	assert_int_equal(elf_symbol(&m, &one, "other", &at), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stack_of_each_version),
		cmocka_unit_test(test_torn_readings),
		cmocka_unit_test(test_cycle_and_wild_pointer),
		cmocka_unit_test(test_leftover_frames),
		cmocka_unit_test(test_never_still),
		cmocka_unit_test(test_cookie_scan),
		cmocka_unit_test(test_symbols_of_this_process),
		cmocka_unit_test(test_old_hash_table),
	};
	int r = cmocka_run_group_tests(tests, NULL, NULL);

	free(image);
	return r;
}
