/* SPDX-License-Identifier: MIT
 *
 * Following a run that goes on: only what was written since the last look, however long the run is.
 */
#ifndef SPOTTER_RECORD_FOLLOW_H
#define SPOTTER_RECORD_FOLLOW_H

#include "record/reader.h"

/* Steps behind the row *after (0: from the first), in the order they were written; *after moves on. At most `most`
 * of them, so that a long run does not keep its caller; fn returns false to stop. How many, or -errno: -EBADMSG
 * where rows do not follow each other, as in a file whose pages lead in circles. A
 * file of before schema 1.2 has none. The processes of steps are in the window once record_refresh() was called. */
int record_new_steps(struct record *r, int64_t *after, int most,
		     bool (*fn)(const struct window_step *s, void *arg), void *arg);
/* SQLite takes no more memory than this in the whole process, whatever a file makes it do. */
void record_limit_memory(int64_t bytes);
/* Whether the run is still being written, by a recorder that lives. */
bool record_is_going(struct record *r);

#endif
