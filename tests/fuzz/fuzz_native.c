/* SPDX-License-Identifier: MIT
 *
 * The reader of symbols and unwind tables on an image of a process (see memory.h): first byte: how it
 * tears; then pc and sp, 8 bytes each. Whatever is in there: no crash, a bounded number of reads and
 * bytes kept, and places only of what is mapped. The same bytes are read as a record of perf's, and the
 * thread also taken for one that runs, with what is at sp as the copy of its stack.
 */
#include "fuzz.h"
#include "memory.h"
#include "stack/native/process.h"
#include "stack/native/sample.h"

#define READS_MAX 200000u
#define LATER     1000000000ll

static void check_place(struct native_process *p, uint64_t address, int64_t now)
{
	struct native_place place;

	if (!native_place(p, address, now, &place))
		return;
	must(native_mapping(p, address, now) != NULL, "a place is mapped");
	must(strlen(place.symbol) < 4096, "names are bounded");
	must(place.file != NULL, "there is a file, or none");
}

static void check_walk(struct native_process *p, uint64_t pc, uint64_t sp, int64_t now)
{
	uint64_t found[NATIVE_FRAMES_MAX];
	size_t n = native_unwind(p, pc, sp, now, found, NATIVE_FRAMES_MAX);

	must(n <= NATIVE_FRAMES_MAX, "frames are bounded");
	must(!n || found[0] == pc, "the first is where it is");
	for (size_t i = 0; i < n; i++)
		check_place(p, found[i] - (i > 0), now);
}

static void check_sample(struct native_process *p, const struct native_sample *s, int64_t now)
{
	uint64_t found[NATIVE_FRAMES_MAX];
	bool whole;
	size_t n = native_unwind_sample(p, s, now, found, NATIVE_FRAMES_MAX, &whole);

	must(n <= NATIVE_FRAMES_MAX, "frames are bounded");
	must(!n || found[0] == s->pc, "the first is where it is");
	must(n < 2 || s->known, "no callers without registers");
	for (size_t i = 0; i < n; i++)
		check_place(p, found[i] - (i > 0), now);
}

/* Registers point into the stack, or at code, or nowhere. */
static void check_running(struct native_process *p, uint64_t pc, uint64_t sp, int64_t now)
{
	uint8_t copy[2048];
	struct native_sample s = { .pc = pc, .sp = sp, .stack = copy, .known = UINT64_MAX };

	for (size_t n = sizeof(copy); n >= 64 && !s.stack_n; n /= 2)
		s.stack_n = mem_read(p->mem, sp, copy, n) == 0 ? n : 0;
	for (size_t i = 0; i < COLUMNS; i++)
		s.registers[i] = i % 3 == 0 ? sp + 8 * i : i % 3 == 1 ? pc : i << 60;
	check_sample(p, &s, now);
	s.registers[6] = sp + 16;
	s.stack_n &= ~7ull;
	check_sample(p, &s, now);
	s.known = 0;
	check_sample(p, &s, now);
}

static void check_record(struct native_process *p, const uint8_t *data, size_t n, int64_t now)
{
	uint64_t chain[NATIVE_FRAMES_MAX];
	struct native_sample s;

	if (native_sample_read(data, n, true, &s)) {
		must(!s.known || (s.stack >= data && s.stack + s.stack_n <= data + n),
		     "the copy is in the record");
		check_sample(p, &s, now);
	}
	if (native_sample_read(data, n, false, &s))
		must(native_sample_chain(data, chain, NATIVE_FRAMES_MAX) >= 1,
		     "a chain has a leaf");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static struct memory memory;
	struct native_process *p;
	uint64_t pc, sp;
	struct mem m;

	if (n < 17)
		return 0;
	memcpy(&pc, data + 1, 8);
	memcpy(&sp, data + 9, 8);
	memory_parse(&memory, data + 17, n - 17);
	memory.tear = data[0];
	memory.reads = 0;
	mem_open_source(&m, memory_read, &memory);
	if (native_open_memory(&p, &m, memory.maps, memory.maps_n) < 0)
		return 0;
	for (int i = 0; i < 3; i++) {
		check_walk(p, pc, sp, i * LATER);
		check_running(p, pc, sp, i * LATER);
	}
	check_record(p, data, n, 3 * LATER);
	/* Other places of what is mapped: a few by number, so that their tables are read as well. */
	for (size_t i = 0; i < p->maps.n && i < 8; i++) {
		uint64_t at = p->maps.v[i].start + (pc * (i + 1)) % 8192;

		check_walk(p, at, sp, 4 * LATER);
		check_place(p, at, 4 * LATER);
	}
	must(memory.reads < READS_MAX, "reads are bounded");
	must(p->names.bytes <= NAMES_BYTES_MAX && p->shared->names.bytes <= NATIVE_NAMES_BYTES &&
		 p->shared->rows.n <= NATIVE_ROWS_MAX &&
		 p->shared->counts.bytes <= NATIVE_BYTES_MAX,
	     "what is kept is bounded");
	native_close(p);
	return 0;
}
