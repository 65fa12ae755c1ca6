/* SPDX-License-Identifier: MIT
 *
 * The whole reader of foreign memory on an image of a process (see memory.h): first byte: how it
 * tears. Whatever is in there: no crash, a bounded number of reads, and frames only of known code.
 */
#include "base/err.h"
#include "fuzz.h"
#include "memory.h"
#include "stack/py/py.h"

#define READS_MAX 3000000u

static void check_stacks(const struct py_process *p, const struct py_stacks *s)
{
	for (size_t i = 0; i < s->threads.n; i++) {
		const struct py_thread *t = &s->threads.v[i];

		must((t->n > 0) == (t->status == PY_COMPLETE || t->status == PY_PARTIAL),
		     "frames and status agree");
		must(t->first + (size_t)t->n <= s->frames.n, "frames are there");
		for (uint32_t k = 0; k < t->n; k++) {
			const struct py_frame *f = &s->frames.v[t->first + k];
			struct py_function function;

			must(py_code(p, f->code, &function) != NULL, "a frame's code is known");
			must(strlen(function.name) <= 16400 && strlen(function.file) <= 16400,
			     "names are bounded");
			must(py_line(p, f->code, f->offset) >= 0, "lines are positive");
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static struct memory memory;
	struct py_process *p = NULL;
	struct py_stacks stacks = { 0 };
	struct err e = { 0 };
	struct mem m;

	if (n < 1)
		return 0;
	memory_parse(&memory, data + 1, n - 1);
	memory.tear = data[0];
	memory.reads = 0;
	mem_open_source(&m, memory_read, &memory);
	if (py_attach_memory(&p, &m, memory.maps, memory.maps_n, &e) == 0) {
		for (int i = 0; i < 3; i++)
			if (py_sample(p, &stacks) == 0)
				check_stacks(p, &stacks);
		py_detach(p);
	}
	must(memory.reads < READS_MAX, "reads are bounded");
	py_stacks_done(&stacks);
	return 0;
}
