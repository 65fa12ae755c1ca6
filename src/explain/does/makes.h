/* SPDX-License-Identifier: MIT
 *
 * Lines at which workers, threads and devices come from: no stack shows them, and they are what is to be changed.
 */
#ifndef SPOTTER_EXPLAIN_DOES_MAKES_H
#define SPOTTER_EXPLAIN_DOES_MAKES_H

#include "explain/does/does.h"
#include "explain/keeps/words.h"

#include <stdbool.h>

/* DOES_LOADER, DOES_POOL, ... or DOES_WHATS; raw: the statement with its strings; crews: the file has processes or threads. */
enum does_what makes_what(struct span s, struct span raw, bool crews);

#endif
