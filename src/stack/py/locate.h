/* SPDX-License-Identifier: MIT
 *
 * Where the Python runtime of a process is and which version it has, from the process's own memory.
 */
#ifndef SPOTTER_STACK_PY_LOCATE_H
#define SPOTTER_STACK_PY_LOCATE_H

#include "stack/mem.h"
#include "stack/py/layout.h"

struct py_place {
	uint64_t runtime;   /* _PyRuntime */
	uint64_t code_type; /* PyCode_Type, 0: not known, learned from the first code object */
	struct py_layout layout;
};

/* `maps`: the text of /proc/PID/maps. 0; -ENOENT: no Python there; -ENOTSUP: one that we cannot
 * read, with words; or -errno of the read. */
int py_locate(struct mem *m, const char *maps, size_t maps_n, struct py_place *ret, struct err *e);

#endif
