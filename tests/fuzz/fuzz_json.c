/* SPDX-License-Identifier: MIT
 *
 * The bytes drive the writer: whatever calls are made with whatever strings and numbers, the result
 * is one well-formed JSON value (checked by a small strict reader here) in valid UTF-8.
 */
#include "base/buf.h"
#include "base/json.h"
#include "base/scan.h"
#include "base/text.h"
#include "fuzz.h"

#include <math.h>
#include <string.h>

#define DEPTH_MAX 16
#define ABSENT    "longer than any string written here" /* so it cannot come from the input */

struct script {
	const uint8_t *p, *end;
	char open[DEPTH_MAX];
	unsigned depth;
};

static uint8_t take(struct script *s)
{
	return s->p < s->end ? *s->p++ : 0;
}

static double take_double(struct script *s)
{
	double v;
	uint8_t raw[sizeof(v)];

	for (size_t i = 0; i < sizeof(raw); i++)
		raw[i] = take(s);
	memcpy(&v, raw, sizeof(v));
	return v;
}

/* At most 15 of the bytes that follow, as a string of that length. */
static void put_text(struct json *j, struct script *s)
{
	size_t n = take(s) & 15, left = (size_t)(s->end - s->p);

	n = n < left ? n : left;
	json_strn(j, (const char *)s->p, n);
	s->p += n;
}

static void value(struct json *j, struct script *s)
{
	uint8_t op = take(s);
	char bracket = op & 8 ? '{' : '[';

	if ((op & 7) < 3 && s->depth < DEPTH_MAX) {
		json_begin(j, bracket);
		s->open[s->depth++] = bracket;
	} else if ((op & 7) == 3) {
		put_text(j, s);
	} else if ((op & 7) == 4) {
		json_num(j, take_double(s));
	} else if ((op & 7) == 5) {
		json_int(j, (int64_t)(take(s) | (uint64_t)take(s) << 56));
	} else {
		json_bool(j, op & 8);
	}
}

static void write_some(struct json *j, struct script *s)
{
	json_begin(j, '[');
	s->open[s->depth++] = '[';
	while (s->p < s->end) {
		if (take(s) % 5 == 0 && s->depth > 1) {
			s->depth--;
			json_end(j, s->open[s->depth] == '{' ? '}' : ']');
			continue;
		}
		if (s->open[s->depth - 1] == '{') {
			char key[3] = { (char)take(s), (char)take(s), '\0' };

			json_key_num(j, ABSENT, NAN);
			json_key_str(j, ABSENT, NULL);
			json_key(j, key);
		}
		value(j, s);
	}
	while (s->depth) {
		s->depth--;
		json_end(j, s->open[s->depth] == '{' ? '}' : ']');
	}
}

static void skip_space(struct scan *s)
{
	while (!scan_end(s) && (*s->p == ' ' || *s->p == '\n'))
		s->p++;
}

static void read_string(struct scan *s)
{
	must(scan_lit(s, "\""), "a string begins with a quote");
	while (!scan_end(s) && *s->p != '"') {
		size_t len = text_utf8(s->p, (size_t)(s->end - s->p));

		must(len && (unsigned char)*s->p >= 0x20, "a string has no control bytes");
		if (*s->p != '\\') {
			s->p += len;
			continue;
		}
		s->p++;
		must(!scan_end(s) && strchr("\"\\/bfnrtu", *s->p), "an escape is a known one");
		if (*s->p++ != 'u')
			continue;
		for (int i = 0; i < 4; i++, s->p++)
			must(!scan_end(s) && strchr("0123456789abcdef", *s->p), "four digits");
	}
	must(scan_lit(s, "\""), "a string ends with a quote");
}

static size_t read_digits(struct scan *s)
{
	size_t n = 0;

	for (; !scan_end(s) && *s->p >= '0' && *s->p <= '9'; s->p++)
		n++;
	return n;
}

static void read_number(struct scan *s)
{
	bool zero;

	(void)scan_lit(s, "-");
	zero = !scan_end(s) && *s->p == '0';
	must((read_digits(s) == 1) >= zero, "a number has no leading zero");
	must(s->p[-1] >= '0' && s->p[-1] <= '9', "a number begins with digits");
	if (scan_lit(s, "."))
		must(read_digits(s) > 0, "digits follow the point");
	if (!scan_lit(s, "e"))
		return;
	(void)(scan_lit(s, "+") || scan_lit(s, "-"));
	must(read_digits(s) > 0, "digits follow the e");
}

static void read_value(struct scan *s, unsigned depth);

static void read_members(struct scan *s, char open, unsigned depth)
{
	const char *close = open == '{' ? "}" : "]";

	skip_space(s);
	if (scan_lit(s, close))
		return;
	do {
		skip_space(s);
		if (open == '{') {
			read_string(s);
			must(scan_lit(s, ":"), "a colon follows the key");
			skip_space(s);
		}
		read_value(s, depth + 1);
		skip_space(s);
	} while (scan_lit(s, ","));
	must(scan_lit(s, close), "what was opened is closed");
}

static void read_value(struct scan *s, unsigned depth)
{
	must(!scan_end(s) && depth <= DEPTH_MAX, "a value is there");
	if (scan_lit(s, "{"))
		read_members(s, '{', depth);
	else if (scan_lit(s, "["))
		read_members(s, '[', depth);
	else if (*s->p == '"')
		read_string(s);
	else if (!scan_lit(s, "true") && !scan_lit(s, "false") && !scan_lit(s, "null"))
		read_number(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct script script = { .p = data, .end = data + n };
	struct buf out = { 0 };
	struct json j;
	struct scan s;

	json_init(&j, &out, n & 1);
	write_some(&j, &script);
	must(buf_ok(&out), "there was room");
	must(!strstr(buf_text(&out), ABSENT), "an absent value is an absent key");
	s = scan_of(out.data, out.len);
	read_value(&s, 0);
	must(scan_end(&s), "one value and nothing behind it");
	buf_done(&out);
	return 0;
}
