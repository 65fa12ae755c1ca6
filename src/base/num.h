/* SPDX-License-Identifier: MIT
 *
 * Numbers for people and from people; locale-free both ways.
 */
#ifndef SPOTTER_BASE_NUM_H
#define SPOTTER_BASE_NUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All write into buf and return it. */
const char *num_bytes(double bytes, char *buf, size_t size); /* "1.4 GB", powers of 1000 */
const char *num_seconds(double s, char *buf, size_t size);   /* "850 ms", "12.3 s", "4 min 10 s" */
const char *num_percent(double ratio, char *buf,
			size_t size);                        /* 0.803 -> "80 %", 0.004 -> "0.4 %" */
const char *num_cores(double cores, char *buf, size_t size); /* 6.42 -> "6.42", 8.0 -> "8" */
const char *num_count(double n, char *buf, size_t size);     /* 12345 -> "12,345" */

/* "256M", "1.5G", "4096": bytes, powers of 1024 (K M G T, optional iB/B). False when malformed,
 * negative or absurd. */
bool num_parse_size(const char *text, uint64_t *ret);
/* "60s", "5m", "2h", "250ms", "10" (seconds): nanoseconds. */
bool num_parse_duration(const char *text, int64_t *ret_ns);
/* "1%", "0.5 %", "0.01": a ratio. */
bool num_parse_ratio(const char *text, double *ret);
bool num_parse_double(const char *text, double *ret);
bool num_parse_i64(const char *text, int64_t *ret);

#endif
