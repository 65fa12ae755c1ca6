/* SPDX-License-Identifier: MIT
 *
 * Where CPython keeps things: offsets in bytes within its structures, one table a minor version up
 * to 3.12, and from 3.13 on the table that the interpreter itself carries (_Py_DebugOffsets at the
 * front of _PyRuntime). Everything from outside is checked against bounds before it is used.
 */
#ifndef SPOTTER_STACK_PY_LAYOUT_H
#define SPOTTER_STACK_PY_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

#define PY_ABSENT UINT32_MAX /* this version has no such field */

/* PY_VERSION_HEX: 0x030b07f0 is 3.11.7 final. */
static inline unsigned py_minor(uint32_t version)
{
	return version >> 16 & 0xff;
}

enum py_frames {
	PY_FRAMES_HEAP,   /* to 3.10: objects, linked by f_back from tstate.frame */
	PY_FRAMES_CFRAME, /* 3.11, 3.12: in chunks, from tstate.cframe->current_frame */
	PY_FRAMES_DIRECT, /* 3.13 on: in chunks, from tstate.current_frame */
};

enum py_lines {
	PY_LINES_LNOTAB,    /* to 3.9 */
	PY_LINES_RANGES,    /* 3.10 */
	PY_LINES_LOCATIONS, /* 3.11 on (PEP 657) */
};

/* All offsets; a name says structure_field. */
struct py_layout {
	uint32_t version; /* 0: unknown beyond the minor */
	unsigned minor;
	enum py_frames frames;
	enum py_lines lines;

	uint32_t runtime_interpreters; /* _PyRuntime.interpreters.head */
	uint32_t
	    runtime_current;  /* gilstate.tstate_current, to 3.11: NULL when nobody holds the GIL */
	uint32_t runtime_gil; /* ceval.gil itself, to 3.11 */
	uint32_t runtime_collecting; /* gc.collecting in 3.8 */

	uint32_t interp_next, interp_id, interp_threads;
	uint32_t interp_gil; /* pointer to the GIL, from 3.12 */
	uint32_t interp_collecting;
	uint32_t gil_holder, gil_locked, gil_size;

	uint32_t thread_next, thread_interp;
	uint32_t thread_frame; /* tstate.frame, .cframe or .current_frame */
	uint32_t thread_pthread, thread_native;
	uint32_t thread_chunk, thread_top; /* datastack_chunk, datastack_top */
	uint32_t thread_size;              /* bytes that must be read to have all of the above */
	uint32_t cframe_frame;             /* _PyCFrame.current_frame */

	uint32_t frame_code, frame_previous;
	uint32_t frame_instr;    /* f_lasti (int) to 3.10, a pointer from 3.11 on */
	uint32_t frame_owner;    /* from 3.11 */
	uint32_t frame_stacktop; /* 3.11 to 3.13, int: -1 in a frame that runs or is in C code */
	uint32_t frame_entry;    /* 3.11, a byte: called by C code */
	uint32_t frame_running;  /* f_executing, f_state to 3.10 */
	uint32_t frame_size;     /* bytes that must be read */
	uint64_t frame_code_mask;
	uint8_t running_value; /* what frame_running holds in a frame that runs or calls */
	uint8_t owner_shim;    /* owners from this on have no Python code */
	uint32_t locals;       /* words of a frame before its locals */

	uint32_t code_filename, code_name, code_qualname, code_first_line, code_lines;
	uint32_t code_instructions;       /* start of the bytecode, from 3.11 */
	uint32_t code_frame_words;        /* co_framesize, from 3.12 */
	uint32_t code_locals, code_stack; /* 3.11, where co_framesize is not there yet */
	uint32_t code_traceable;          /* _co_firsttraceable: before it a frame has not begun */
	uint32_t code_size;               /* bytes that must be read */

	uint32_t object_type, object_size; /* ob_type, ob_size */
	uint32_t type_name;                /* tp_name */
	uint32_t bytes_data;
	uint32_t text_length, text_state, text_ascii_size, text_compact_size;
};

/* _PyStackChunk, 3.11 to 3.14. */
enum { PY_CHUNK_PREVIOUS = 0, PY_CHUNK_SIZE = 8, PY_CHUNK_TOP = 16, PY_CHUNK_DATA = 24 };

#define PY_TABLE_MAX 1024 /* bytes of _Py_DebugOffsets looked at */

/* The table of a minor version without one of its own (8..12). `machine`: EM_X86_64 or EM_AARCH64.
 * 0, or -ENOTSUP with words. */
int py_layout_known(unsigned minor, unsigned machine, struct py_layout *ret, struct err *e);
/* The same from the first bytes of _PyRuntime, 3.13 on. -ENOTSUP: free-threaded, too new, or values
 * that cannot be. */
int py_layout_parse(const uint8_t *table, size_t n, struct py_layout *ret, struct err *e);
/* Do the bytes begin such a table? */
bool py_layout_cookie(const uint8_t *table, size_t n);

#endif
