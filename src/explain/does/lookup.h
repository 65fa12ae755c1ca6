/* SPDX-License-Identifier: MIT
 *
 * A stretch of something as the key of a table:
 *
 *	piece = table.get(body[end - width:end])
 *
 * Lists and arrays cannot be one, so it is text that is taken apart, from here to there: what tokenizers do that have no words
 * to begin with.
 */
#ifndef SPOTTER_EXPLAIN_DOES_LOOKUP_H
#define SPOTTER_EXPLAIN_DOES_LOOKUP_H

#include "explain/keeps/words.h"

bool lookup_of_stretch(struct span statement);

#endif
