/* SPDX-License-Identifier: MIT
 *
 * Numbers of NVIDIA's critical errors (XID) in words. Most come from the program that runs; some
 * mean that the GPU needs a reset or a new home.
 */
#ifndef SPOTTER_EXPLAIN_XID_H
#define SPOTTER_EXPLAIN_XID_H

enum xid_kind { XID_UNKNOWN, XID_PROGRAM, XID_NOTICE, XID_HARDWARE };
enum { XID_OFF_THE_BUS = 79 };

enum xid_kind xid_kind(int code);
const char *xid_text(int code); /* "fell off the bus"; "an error" for one without a row */

#endif
