/* SPDX-License-Identifier: MIT
 *
 * Statements of a loop that learns which make what is learnt from in its next turn: loading ahead, by hand.
 *
 *	upcoming = reader.next()
 *	while more():
 *	    x, y = upcoming               <- takes it
 *	    loss = fit(x, y)
 *	    upcoming = reader.next()      <- ahead: of nothing that this turn has computed
 */
#ifndef SPOTTER_EXPLAIN_DOES_AHEAD_H
#define SPOTTER_EXPLAIN_DOES_AHEAD_H

#include "explain/keeps/source.h"

/* Is this statement one? learns: by block, those loops that do. */
bool ahead_made(const struct py_source *s, const bool *learns, size_t at);

#endif
