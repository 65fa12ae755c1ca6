/* SPDX-License-Identifier: MIT
 *
 * What a text is taken for, held against what it is.
 */
#ifndef SPOTTER_TESTS_UNIT_EXPLAIN_DOES_MADE_H
#define SPOTTER_TESTS_UNIT_EXPLAIN_DOES_MADE_H

#include "../unit.h"

#include "explain/does/does.h"

/* Ranges as "evaluate 1-4|load 6-9". */
static inline void expect(const char *text, const char *wanted)
{
	struct does d[DOES_OF_FILE];
	size_t n = does_scan(text, strlen(text), d), at = 0;
	char got[400] = "";

	for (size_t i = 0; i < n && at < sizeof(got); i++) {
		at += (size_t)snprintf(got + at, sizeof(got) - at, "%s", i ? "|" : "");
		does_write(&d[i], got + at, sizeof(got) - at);
		at = strlen(got);
	}
	assert_string_equal(got, wanted);
}

#endif
