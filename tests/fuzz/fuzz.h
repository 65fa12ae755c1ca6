/* SPDX-License-Identifier: MIT
 *
 * What every fuzz target needs: its prototype, and must() for the properties it checks beyond "does
 * not crash".
 */
#ifndef SPOTTER_TESTS_FUZZ_H
#define SPOTTER_TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static inline void must(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "does not hold: %s\n", what);
	abort();
}

#endif
