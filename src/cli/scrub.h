/* SPDX-License-Identifier: MIT
 *
 * Taking names out of what the kernel tells, so that a captured machine can be given to a stranger.
 * What a collector parses stays in its form; words that people chose are replaced, the same word by
 * the same replacement, so that paths still lead where they led. Nothing here does IO.
 */
#ifndef SPOTTER_CLI_SCRUB_H
#define SPOTTER_CLI_SCRUB_H

#include "base/vec.h"

#include <stdbool.h>
#include <stddef.h>

struct buf;

struct scrub {
	/* Words of the machine and its user; found as whole words, they become "x". */
	char host[65], user[64], home[256];
	VEC(struct scrub_word {
		char *from;
		char to[16];
	})
	words; /* replaced so far: folders, interfaces, processes */
};

void scrub_done(struct scrub *s);

/* Each appends the scrubbed text to out; out of memory shows there. */

/* "/user.slice/user-1000.slice/a.scope" -> "/g1/g2/g3" */
void scrub_cgroup_path(struct scrub *s, const char *path, size_t n, struct buf *out);
/* /proc/PID/cgroup: "4:memory:/docker/0123abcd" */
void scrub_cgroup(struct scrub *s, const char *text, size_t n, struct buf *out);
/* /proc/PID/mountinfo: folders people named, servers and options go; types and cgroups stay. */
void scrub_mountinfo(struct scrub *s, const char *text, size_t n, struct buf *out);
/* /proc/PID/stat: the name between the brackets. A few names everybody has stay. */
void scrub_stat(struct scrub *s, const char *text, size_t n, struct buf *out);
/* /proc/PID/status: only lines that are read, with Name scrubbed. */
void scrub_status(struct scrub *s, const char *text, size_t n, struct buf *out);
/* /proc/net/dev: names that may hold an address or were chosen. */
void scrub_net_dev(struct scrub *s, const char *text, size_t n, struct buf *out);
/* /proc/cpuinfo: only lines that tell the kind of CPU. */
void scrub_cpuinfo(const char *text, size_t n, struct buf *out);
/* smaps_rollup: the line of addresses. */
void scrub_smaps(const char *text, size_t n, struct buf *out);
/* Free text: host, user and home as whole words. */
void scrub_text(const struct scrub *s, const char *text, size_t n, struct buf *out);

#endif
