/* SPDX-License-Identifier: MIT
 *
 * The catalogue of what Spotter can name as the cause of a slow, hungry or dead run. Ids are public
 * and stable: they are in records, in JSON and in docs/causes/ID.md. A cause without a rule is known
 * by name only; nothing is ever said about it.
 */
#ifndef SPOTTER_EXPLAIN_CAUSE_H
#define SPOTTER_EXPLAIN_CAUSE_H

#include <stdbool.h>

struct cause {
	const char *id, *family;
	int level;        /* observation level 0..3 its rule needs */
	const char *text; /* one line, lower case */
};

extern const struct cause causes[]; /* by family, in the order of tests; ends with id NULL */

const struct cause *cause_find(const char *id); /* NULL: unknown */
/* Is there a rule for it in this version? */
bool cause_implemented(const struct cause *c);

#endif
