/* SPDX-License-Identifier: MIT
 *
 * Numbers of NVIDIA's critical errors (XID) in words. Most come from the program that runs; some
 * mean that the GPU needs a reset or a new home.
 */
#ifndef SPOTTER_MODEL_XID_H
#define SPOTTER_MODEL_XID_H

#include <stdint.h>

enum xid_kind {
	XID_UNKNOWN,
	XID_PROGRAM,  /* what the program did */
	XID_NOTICE,   /* worth a look, and no reason to stop */
	XID_HARDWARE, /* the GPU, its memory or its links */
};
enum { XID_OFF_THE_BUS = 79 };

enum xid_kind xid_kind(int64_t code);
const char *xid_words(int64_t code); /* "fell off the bus"; NULL for one without a row */

#endif
