/* SPDX-License-Identifier: MIT
 *
 * 3.8 to 3.12 from the interpreters' debug information (x86_64); aarch64 differs only behind a
 * pthread_mutex_t, which has 48 bytes there instead of 40. 3.13 on: pycore_runtime.h and
 * pycore_debug_offsets.h; the order of the members grows with each minor, so the parser is keyed on
 * it and not on the size.
 */
#include "base/err.h"
#include "stack/py/layout.h"

#include <elf.h>
#include <errno.h>

#define COOKIE     "xdebugpy"
#define FIELD_MAX  4096    /* of a structure that we read whole */
#define INTERP_MAX 4194304 /* PyInterpreterState has 195 kB in 3.13, 384 kB in 3.12 */

#define HEAP                                                                                     \
	.frames = PY_FRAMES_HEAP, .runtime_interpreters = 32, .interp_next = 0,                  \
	.interp_threads = 8, .interp_gil = PY_ABSENT, .thread_frame = 24, .thread_pthread = 176, \
	.thread_native = PY_ABSENT, .thread_chunk = PY_ABSENT, .thread_top = PY_ABSENT,          \
	.thread_size = 184, .frame_code = 32, .frame_previous = 24, .frame_owner = PY_ABSENT,    \
	.frame_stacktop = PY_ABSENT, .frame_entry = PY_ABSENT, .frame_size = 120,                \
	.owner_shim = 255, .code_filename = 104, .code_name = 112, .code_qualname = PY_ABSENT,   \
	.code_first_line = 40, .code_lines = 120, .code_instructions = PY_ABSENT,                \
	.code_frame_words = PY_ABSENT, .code_locals = PY_ABSENT, .code_stack = PY_ABSENT,        \
	.code_traceable = PY_ABSENT, .code_size = 128

#define CHUNKS                                                                                    \
	.frames = PY_FRAMES_CFRAME, .lines = PY_LINES_LOCATIONS, .runtime_interpreters = 40,      \
	.runtime_collecting = PY_ABSENT, .interp_next = 0, .thread_frame = 56, .frame_instr = 56, \
	.frame_running = PY_ABSENT, .frame_stacktop = 64, .frame_size = 72, .owner_shim = 3,      \
	.locals = 9, .code_filename = 112, .code_name = 120, .code_qualname = 128,                \
	.code_lines = 136

#define EVERYWHERE                                                                           \
	.gil_holder = 8, .gil_locked = 16, .thread_next = 8, .thread_interp = 16,            \
	.frame_code_mask = UINT64_MAX, .object_type = 8, .object_size = 16, .type_name = 24, \
	.bytes_data = 32, .text_length = 16, .text_state = 32

static const struct py_layout known[] = {
	{ EVERYWHERE, HEAP, .minor = 8, .lines = PY_LINES_LNOTAB, .runtime_current = 1368,
	  .runtime_gil = 1152, .runtime_collecting = 544, .interp_id = 16,
	  .interp_collecting = PY_ABSENT, .frame_instr = 104, .frame_running = 116,
	  .running_value = 1, .text_ascii_size = 48, .text_compact_size = 72 },
	{ EVERYWHERE, HEAP, .minor = 9, .lines = PY_LINES_LNOTAB, .runtime_current = 568,
	  .runtime_gil = 352, .runtime_collecting = PY_ABSENT, .interp_id = 24,
	  .interp_collecting = 816, .frame_instr = 104, .frame_running = 116, .running_value = 1,
	  .text_ascii_size = 48, .text_compact_size = 72 },
	{ EVERYWHERE, HEAP, .minor = 10, .lines = PY_LINES_RANGES, .runtime_current = 568,
	  .runtime_gil = 352, .runtime_collecting = PY_ABSENT, .interp_id = 24,
	  .interp_collecting = 816, .frame_instr = 96, .frame_running = 108, .running_value = 0,
	  .text_ascii_size = 48, .text_compact_size = 72 },
	{ EVERYWHERE,
	  CHUNKS,
	  .minor = 11,
	  .runtime_current = 576,
	  .runtime_gil = 360,
	  .interp_id = 48,
	  .interp_threads = 16,
	  .interp_gil = PY_ABSENT,
	  .interp_collecting = 848,
	  .thread_pthread = 152,
	  .thread_native = 160,
	  .thread_chunk = 296,
	  .thread_top = 304,
	  .thread_size = 312,
	  .cframe_frame = 8,
	  .frame_code = 32,
	  .frame_previous = 48,
	  .frame_owner = 69,
	  .frame_entry = 68,
	  .code_first_line = 72,
	  .code_instructions = 184,
	  .code_frame_words = PY_ABSENT,
	  .code_locals = 76,
	  .code_stack = 68,
	  .code_traceable = 168,
	  .code_size = 184,
	  .text_ascii_size = 48,
	  .text_compact_size = 72 },
	{ EVERYWHERE,
	  CHUNKS,
	  .minor = 12,
	  .runtime_current = PY_ABSENT,
	  .runtime_gil = PY_ABSENT,
	  .interp_id = 8,
	  .interp_threads = 72,
	  .interp_gil = 384,
	  .interp_collecting = 312,
	  .thread_pthread = 136,
	  .thread_native = 144,
	  .thread_chunk = 232,
	  .thread_top = 240,
	  .thread_size = 248,
	  .cframe_frame = 0,
	  .frame_code = 0,
	  .frame_previous = 8,
	  .frame_owner = 70,
	  .frame_entry = PY_ABSENT,
	  .code_first_line = 68,
	  .code_instructions = 192,
	  .code_frame_words = 76,
	  .code_locals = PY_ABSENT,
	  .code_stack = PY_ABSENT,
	  .code_traceable = 176,
	  .code_size = 192,
	  .text_ascii_size = 40,
	  .text_compact_size = 56 },
};

int py_layout_known(unsigned minor, unsigned machine, struct py_layout *ret, struct err *e)
{
	if (machine != EM_X86_64 && machine != EM_AARCH64)
		return err_set(e, -ENOTSUP,
			       "stacks of Python are known on x86_64 and aarch64 only");
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (known[i].minor != minor)
			continue;
		*ret = known[i];
		ret->gil_size = 208;
		if (machine == EM_AARCH64) {
			ret->gil_size = 224; /* two mutexes */
			/* tstate_current stands behind the same two. */
			if (ret->runtime_current != PY_ABSENT)
				ret->runtime_current += 16;
		}
		return 0;
	}
	return err_set(e, -ENOTSUP, "Python 3.%u is not supported (3.8 to 3.14 are)", minor);
}

bool py_layout_cookie(const uint8_t *table, size_t n)
{
	return n >= 24 && memcmp(table, COOKIE, 8) == 0;
}

/* A reader of the table's members that remembers whether one of them was absurd. */
struct table {
	const uint8_t *bytes;
	size_t n;
	bool absurd;
};

static uint64_t member(struct table *t, unsigned section, unsigned index)
{
	size_t at = section + 8ul * index;
	uint64_t value = 0;

	if (at + 8 > t->n)
		t->absurd = true;
	else
		memcpy(&value, t->bytes + at, 8);
	return value;
}

/* An offset of a field of `size` bytes in a structure whose own size is the section's first member. */
static uint32_t field(struct table *t, unsigned section, unsigned index, unsigned size,
		      uint64_t max)
{
	uint64_t whole = member(t, section, 0), at = member(t, section, index);

	if (whole > max || at > whole || size > whole - at || at % size)
		t->absurd = true;
	return (uint32_t)at;
}

/* Where the sections begin and what moved within them. */
struct sections {
	unsigned runtime, interp, thread, frame, code, object, type, bytes, text, gc;
	unsigned interp_shift; /* members before .gc that 3.13 does not have */
};

static const struct sections table13 = { .runtime = 24,
					 .interp = 48,
					 .thread = 152,
					 .frame = 224,
					 .code = 272,
					 .object = 352,
					 .type = 368,
					 .bytes = 512,
					 .text = 536,
					 .gc = 568 };
/* 3.14: pyobject and type follow the code object with its eleven members; before gc stands nothing
 * new, behind it gen, llist and debugger_support. */
static const struct sections table14 = { .runtime = 24,
					 .interp = 48,
					 .thread = 176,
					 .frame = 248,
					 .code = 312,
					 .object = 400,
					 .type = 416,
					 .bytes = 592,
					 .text = 616,
					 .gc = 648,
					 .interp_shift = 1 };

static void read_interp(struct table *t, const struct sections *s, struct py_layout *l)
{
	unsigned shift = s->interp_shift;
	uint64_t gil = member(t, s->interp, 9 + shift);

	l->interp_id = field(t, s->interp, 1, 8, INTERP_MAX);
	l->interp_next = field(t, s->interp, 2, 8, INTERP_MAX);
	l->interp_threads = field(t, s->interp, 3, 8, INTERP_MAX);
	l->interp_gil = field(t, s->interp, 8 + shift, 8, INTERP_MAX);
	l->interp_collecting =
	    field(t, s->interp, 4 + shift, 8, INTERP_MAX) + field(t, s->gc, 1, 4, FIELD_MAX);
	l->gil_locked = field(t, s->interp, 11 + shift, 4, INTERP_MAX) - (uint32_t)gil;
	l->gil_holder = field(t, s->interp, 12 + shift, 8, INTERP_MAX) - (uint32_t)gil;
	l->gil_size = 208;
	if (gil > INTERP_MAX || l->gil_locked > 200 || l->gil_holder > 200)
		t->absurd = true;
}

static uint32_t highest(uint32_t a, uint32_t b, uint32_t c)
{
	uint32_t m = a > b ? a : b;

	return m > c ? m : c;
}

static void read_thread(struct table *t, const struct sections *s, struct py_layout *l)
{
	l->thread_next = field(t, s->thread, 2, 8, FIELD_MAX);
	l->thread_interp = field(t, s->thread, 3, 8, FIELD_MAX);
	l->thread_frame = field(t, s->thread, 4, 8, FIELD_MAX);
	l->thread_pthread = field(t, s->thread, 5, 8, FIELD_MAX);
	l->thread_native = field(t, s->thread, 6, 8, FIELD_MAX);
	l->thread_chunk = field(t, s->thread, 7, 8, FIELD_MAX);
	l->thread_top = l->thread_chunk + 8; /* not in the table: chunk, top, limit since 3.11 */
	l->thread_size = 8 + highest(l->thread_top, highest(l->thread_frame, l->thread_native, 0),
				     highest(l->thread_next, l->thread_interp, l->thread_pthread));
}

static void read_frame(struct table *t, const struct sections *s, struct py_layout *l)
{
	uint32_t locals;

	l->frame_previous = field(t, s->frame, 1, 8, FIELD_MAX);
	l->frame_code = field(t, s->frame, 2, 8, FIELD_MAX);
	l->frame_instr = field(t, s->frame, 3, 8, FIELD_MAX);
	locals = field(t, s->frame, 4, 8, FIELD_MAX);
	l->locals = locals / 8;
	l->frame_owner = field(t, s->frame, 5, 1, FIELD_MAX);
	l->frame_running = l->frame_entry = l->frame_stacktop = PY_ABSENT;
	/* Not in the table either: instr_ptr, stacktop (int), return_offset, owner in 3.13. From 3.14
	 * on it is a pointer that stays as it is while the frame runs, and so tells nothing. */
	if (l->minor == 13 && l->frame_owner == l->frame_instr + 14)
		l->frame_stacktop = l->frame_instr + 8;
	l->frame_size = highest(l->frame_owner + 1, l->frame_instr + 8,
				highest(l->frame_previous, l->frame_code, 0) + 8);
	/* Shims: C stack in 3.13; interpreter entry and C stack in 3.14. */
	l->owner_shim = 3;
	l->frame_code_mask = l->minor >= 14 ? ~(uint64_t)3 : UINT64_MAX; /* tagged references */
}

static void read_code(struct table *t, const struct sections *s, struct py_layout *l)
{
	l->code_filename = field(t, s->code, 1, 8, FIELD_MAX);
	l->code_name = field(t, s->code, 2, 8, FIELD_MAX);
	l->code_qualname = field(t, s->code, 3, 8, FIELD_MAX);
	l->code_lines = field(t, s->code, 4, 8, FIELD_MAX);
	l->code_first_line = field(t, s->code, 5, 4, FIELD_MAX);
	l->code_instructions = field(t, s->code, 9, 1, FIELD_MAX);
	/* Not in the table. firstlineno, nlocalsplus, framesize; and firsttraceable, extra, bytecode:
	 * so ordered in 3.12 and 3.13. A wrong guess would cost salvaged prefixes, nothing else. */
	l->code_frame_words = l->code_first_line + 8;
	l->code_traceable = l->code_instructions - 16;
	l->code_locals = l->code_stack = PY_ABSENT;
	l->code_size = l->code_instructions;
	if (l->code_instructions < 64 || l->code_frame_words + 4 > l->code_size ||
	    highest(l->code_filename, l->code_name, l->code_qualname) + 8 > l->code_size ||
	    l->code_lines + 8 > l->code_size)
		t->absurd = true;
}

int py_layout_parse(const uint8_t *table, size_t n, struct py_layout *ret, struct err *e)
{
	struct table t = { table, n, false };
	const struct sections *s = &table14;
	struct py_layout l = { 0 };
	uint64_t version;

	if (!py_layout_cookie(table, n))
		return err_set(e, -ENOTSUP, "no table of offsets in this Python");
	version = member(&t, 8, 0);
	if (version >> 24 != 3 || py_minor((uint32_t)version) < 13)
		return err_set(e, -ENOTSUP, "a table of offsets for an impossible version");
	if (member(&t, 16, 0))
		return err_set(e, -ENOTSUP,
			       "Python 3.%u is a free-threaded build: its stacks are not "
			       "supported",
			       py_minor((uint32_t)version));
	l.version = (uint32_t)version;
	l.minor = py_minor(l.version);
	if (l.minor == 13)
		s = &table13;
	l.frames = PY_FRAMES_DIRECT;
	l.lines = PY_LINES_LOCATIONS;
	l.runtime_interpreters = field(&t, s->runtime, 2, 8, INTERP_MAX);
	l.runtime_current = l.runtime_gil = l.runtime_collecting = PY_ABSENT;
	read_interp(&t, s, &l);
	read_thread(&t, s, &l);
	read_frame(&t, s, &l);
	read_code(&t, s, &l);
	l.object_type = field(&t, s->object, 1, 8, FIELD_MAX);
	l.object_size = field(&t, s->bytes, 1, 8, FIELD_MAX);
	l.type_name = field(&t, s->type, 1, 8, FIELD_MAX);
	l.bytes_data = field(&t, s->bytes, 2, 1, FIELD_MAX);
	l.text_state = field(&t, s->text, 1, 4, FIELD_MAX);
	l.text_length = field(&t, s->text, 2, 8, FIELD_MAX);
	l.text_ascii_size = (uint32_t)member(&t, s->text, 3);
	l.text_compact_size = l.text_ascii_size + 16; /* utf8_length and utf8 */
	if (t.absurd || l.text_ascii_size < 24 || l.text_ascii_size > 128)
		return err_set(e, -ENOTSUP,
			       "the table of offsets of this Python 3.%u makes no sense", l.minor);
	*ret = l;
	return 0;
}
