/* SPDX-License-Identifier: MIT
 *
 * Statements of a loop that learns whose values nobody learns from: they are shown, written down, or not used at all.
 *
 *	for x, y in batches:
 *	    loss = train_step(x, y)
 *	    auc = rank_quality(recent)       <- watches: it is only printed
 *	    print(step, loss, auc)
 */
#ifndef SPOTTER_EXPLAIN_DOES_WATCH_H
#define SPOTTER_EXPLAIN_DOES_WATCH_H

#include "explain/keeps/source.h"

/* raw: the text as it was written, as long as s->clean. learns: by block, whether it is a loop in which something learns. ret: by
 * statement; false: too long, ret says nothing. */
bool watch_find(const struct py_source *s, const char *raw, const bool *learns, bool *ret);

#endif
