/* SPDX-License-Identifier: MIT
 *
 * Whose a place of a book of stacks is, and of which function.
 */
#ifndef SPOTTER_EXPLAIN_PLACE_H
#define SPOTTER_EXPLAIN_PLACE_H

#include "model/stacks.h"

/* Of the interpreter, of installed packages, of no file at all: nothing the user wrote. */
bool place_is_library(const struct place *p);
/* Its file without the folders. */
const char *place_file_name(const struct place *p);
/* A native place of Python itself: "libpython3.11.so.1.0", "python3.11". */
bool place_is_interpreter(const struct place *p);
/* A number for its code: texts of a book are each once, so their addresses tell functions apart. For whole stacks; a comprehension
 * is a function of its own to it. */
uint64_t place_code(const struct place *p);
/* A number for its function as the user sees it, by file and name. Comprehensions and generator expressions of Python 3.11
 * ("pairs.<locals>.<listcomp>") belong to the function they stand in: 3.12 has none of their own, and before 3.11 their names do not
 * say where they stand. */
uint64_t place_function(const struct place *p);
/* The name of that function, safe to show. */
void place_function_name(const struct place *p, char *buf, size_t size);

#endif
