/* SPDX-License-Identifier: MIT
 *
 * A streaming JSON writer into a buf. It places commas, escapes strings (invalid UTF-8 becomes
 * U+FFFD), and never writes NaN or infinity: an absent number is an absent key, so json_key_num()
 * with a value that is not finite writes nothing at all.
 */
#ifndef SPOTTER_BASE_JSON_H
#define SPOTTER_BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>

struct buf;

struct json {
	struct buf *out;
	bool pretty; /* two-space indent, for people */
	unsigned depth;
	bool comma, after_key;
};

void json_init(struct json *j, struct buf *out, bool pretty);

void json_begin(struct json *j, char bracket); /* '{' or '[' */
void json_end(struct json *j, char bracket);   /* '}' or ']' */
void json_key(struct json *j, const char *key);
void json_str(struct json *j, const char *s);
void json_strn(struct json *j, const char *s, unsigned long n);
/* Shortest text that reads back as the same double. */
void json_num(struct json *j, double v);
void json_int(struct json *j, int64_t v);
void json_bool(struct json *j, bool v);
/* A value that is JSON already. */
void json_raw(struct json *j, const char *text, unsigned long n);

void json_key_str(struct json *j, const char *key, const char *s); /* NULL: nothing */
void json_key_num(struct json *j, const char *key, double v);      /* not finite: nothing */
void json_key_int(struct json *j, const char *key, int64_t v);
void json_key_bool(struct json *j, const char *key, bool v);
void json_key_begin(struct json *j, const char *key, char bracket);

#endif
