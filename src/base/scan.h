/* SPDX-License-Identifier: MIT
 *
 * A cursor over text that somebody else wrote. Every step either succeeds and advances, or fails
 * and leaves the cursor where it was; nothing reads past `end`. Parsers built on it are pure, so
 * they are fuzzed directly. Numbers saturate never: an overflow is a failure.
 */
#ifndef SPOTTER_BASE_SCAN_H
#define SPOTTER_BASE_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct scan {
	const char *p, *end;
};

static inline struct scan scan_of(const char *text, size_t n)
{
	return (struct scan){ .p = text, .end = text + n };
}

static inline bool scan_end(const struct scan *s)
{
	return s->p >= s->end;
}

/* Skips blanks and tabs (never a newline); always succeeds. */
void scan_blank(struct scan *s);
/* Exactly this text comes next. */
bool scan_lit(struct scan *s, const char *lit);
/* Leading blanks are skipped before numbers and words. */
bool scan_u64(struct scan *s, uint64_t *ret);
bool scan_i64(struct scan *s, int64_t *ret);
bool scan_hex(struct scan *s, uint64_t *ret);
/* "12.34" as an integer scaled by 10^digits: with digits 2 that is 1234; further digits are cut. */
bool scan_fixed(struct scan *s, unsigned digits, int64_t *ret);
/* A run of non-space bytes; *ret_p points into the text. */
bool scan_word(struct scan *s, const char **ret_p, size_t *ret_n);
/* Skips n blank-separated words on this line. */
bool scan_skip(struct scan *s, unsigned n);
/* Goes behind the first c on this line. */
bool scan_after(struct scan *s, char c);
/* Goes behind the next newline, or to the end; false when at the end already. */
bool scan_next_line(struct scan *s);
/* Takes the rest of this line (without newline) as a scan of its own and moves to the next. */
bool scan_line(struct scan *s, struct scan *ret_line);

/* Finds "key" at a line start followed by a blank or ':' and puts a scan behind it (meminfo,
 * vmstat, status, cgroup files). Order-blind; false when the key is not there. */
bool scan_key(struct scan text, const char *key, struct scan *ret);
/* The number behind that key, or false. */
bool scan_key_u64(struct scan text, const char *key, uint64_t *ret);

#endif
