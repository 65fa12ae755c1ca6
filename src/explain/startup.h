/* SPDX-License-Identifier: MIT
 *
 * How long a program's start took, by its stacks.
 */
#ifndef SPOTTER_EXPLAIN_STARTUP_H
#define SPOTTER_EXPLAIN_STARTUP_H

#include "explain/scene.h"

/* When the critical thread was done with importing modules: the end of the last slice of the run's first
 * half in which that was most of what it did. 0: it took less than half a second, or is not known. */
int64_t startup_end(const struct scene *s);

#endif
