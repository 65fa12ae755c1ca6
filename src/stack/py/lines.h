/* SPDX-License-Identifier: MIT
 *
 * From an offset in the bytecode to a line of the source. Pure; the tables are hostile.
 */
#ifndef SPOTTER_STACK_PY_LINES_H
#define SPOTTER_STACK_PY_LINES_H

#include "stack/py/layout.h"

/* The line of the instruction at `offset` bytes from the start of the code; 0: it has none, or the
 * table does not reach so far. Negative offsets (nothing has run yet) give the first line. */
int32_t py_line_of(enum py_lines kind, const uint8_t *table, size_t n, int32_t first_line,
		   int32_t offset);

#endif
