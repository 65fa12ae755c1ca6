/* SPDX-License-Identifier: MIT
 *
 * /proc/PID/mountinfo as fields; see mountinfo.c. Nothing is copied: the fields point into the text,
 * still escaped.
 */
#ifndef SPOTTER_COLLECT_MOUNTINFO_H
#define SPOTTER_COLLECT_MOUNTINFO_H

#include "base/scan.h"

struct mountinfo {
	int64_t id, parent;
	struct scan root;    /* folder of the file system that is mounted here */
	struct scan point;   /* where */
	struct scan type;    /* "ext4" */
	struct scan source;  /* "/dev/vda", "server:/export"; "none" */
	struct scan options; /* of the file system: "rw,cpu,cpuacct" */
};

/* The next mount of the text; false behind the last. Lines that make no sense are passed over. */
bool mountinfo_next(struct scan *s, struct mountinfo *ret);

/* Writes a field with its escapes (\040) undone; false when it does not fit or holds a NUL, then
 * dst is "". */
bool mountinfo_unescape(struct scan field, char *dst, size_t size);

/* The field is exactly this text (unescaped comparison: for types and options). */
bool mountinfo_is(struct scan field, const char *text);
/* The comma-separated field holds this word. */
bool mountinfo_has(struct scan field, const char *word);

/* The mount a walk to this absolute path ends in, as the kernel would go: a mount on top hides what
 * is beneath it, whatever the order of the lines. *ret_local is false when the way there leads
 * through a file system that may not answer (network, FUSE, autofs): then the path must not be
 * touched. False when the text has no root. */
bool mountinfo_find(const char *text, size_t n, const char *path, struct mountinfo *ret,
		    bool *ret_local);
/* A file system type that is known to answer from this machine alone. */
bool mountinfo_type_local(struct scan type);

#endif
