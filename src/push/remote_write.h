/* SPDX-License-Identifier: MIT
 *
 * Samples as the body of a request of Prometheus' remote_write 1.0: a message WriteRequest in snappy's block format.
 */
#ifndef SPOTTER_PUSH_REMOTE_WRITE_H
#define SPOTTER_PUSH_REMOTE_WRITE_H

#include "base/buf.h"
#include "model/series.h"

/* One request in the making; {0} is an empty one. */
struct remote_write {
	struct buf request;
	struct buf series, part; /* scratch */
};

void remote_write_done(struct remote_write *w);
/* A value that is not a number is not told. False: nothing was added. */
bool remote_write_add(struct remote_write *w, const struct series_sample *s);
/* Appends the request to `out` and begins the next one. */
void remote_write_end(struct remote_write *w, struct buf *out);

#endif
