/* SPDX-License-Identifier: MIT
 *
 * The tables of a run file. Changes are additive: a reader accepts every older version, and a newer
 * one as long as the major number is one it knows.
 *
 * Everything but `block`, `rollup` and `stack_slice` is plain rows. Times ending in _ns are nanoseconds
 * of the machine's monotonic clock; the views, and the virtual tables `samples`, `rollups` and
 * `stack_samples`, show them as `t`: seconds since the run started.
 */
#ifndef SPOTTER_RECORD_SCHEMA_H
#define SPOTTER_RECORD_SCHEMA_H

enum {
	SCHEMA_APPLICATION_ID = 0x53504f54, /* "SPOT" */
	SCHEMA_MAJOR = 1,
	SCHEMA_MINOR = 2,
	SCHEMA_VERSION = SCHEMA_MAJOR * 1000 + SCHEMA_MINOR, /* PRAGMA user_version */
};

/* Set before anything is in the file. */
extern const char schema_pragmas[];
extern const char schema_tables[];
/* What a file must have to be read: NULL-terminated names of plain tables. */
extern const char *const schema_required[];

#endif
