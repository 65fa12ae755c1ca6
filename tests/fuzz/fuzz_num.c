/* SPDX-License-Identifier: MIT
 *
 * Numbers people type: parsers take any text, and what they accept is in range; formatters take any
 * double, and fit.
 */
#include "base/buf.h"
#include "base/num.h"
#include "fuzz.h"

#include <math.h>
#include <string.h>

static void parse(const char *text)
{
	uint64_t size = 1;
	int64_t ns = 1, i = 1;
	double d = 1;

	if (num_parse_size(text, &size))
		must(size <= 9000000000000000ull, "a size is sane");
	if (num_parse_duration(text, &ns))
		must(ns >= 0 && ns <= 900000000000000000ll, "a time is sane");
	if (num_parse_ratio(text, &d))
		must(isfinite(d) && d >= 0, "a ratio is a number");
	if (num_parse_double(text, &d))
		must(isfinite(d), "a number is a number");
	if (num_parse_i64(text, &i)) {
		char again[32];
		int64_t same;

		snprintf(again, sizeof(again), "%lld", (long long)i);
		must(num_parse_i64(again, &same) && same == i, "an integer reads back");
	}
}

static void format(double v)
{
	static const char *(*const all[])(
	    double, char *, size_t) = { num_bytes, num_seconds, num_percent, num_cores, num_count };

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		char shown[32];

		must(all[i](v, shown, sizeof(shown)) == shown, "a formatter returns its buffer");
		must(strnlen(shown, sizeof(shown)) < sizeof(shown), "it is terminated");
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct buf text = { 0 };
	double v;

	buf_put(&text, data, n);
	parse(buf_text(&text));
	if (n >= sizeof(v)) {
		memcpy(&v, data, sizeof(v));
		format(v);
	}
	buf_done(&text);
	return 0;
}
