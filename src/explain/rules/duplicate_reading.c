/* SPDX-License-Identifier: MIT
 *
 * duplicate_reading: several jobs read and prepare the same data side by side. What other programs read is not
 * recorded, so where those who load wait for storage it cannot be told; where they do not, nothing is lost.
 */
#include "explain/reading.h"

static enum answer check(const struct facts *f, struct opinion *o)
{
	enum answer r = reading_fetches(f, o);

	if (r == ANSWER_YES)
		return rule_cannot_tell(o, "which files other programs read is not recorded");
	return r;
}

const struct rule duplicate_reading_rule = { .cause = "duplicate_reading",
					     .needs_s = 5,
					     .check = check };
