/* SPDX-License-Identifier: MIT
 *
 * Whatever the bytes: what is shown is valid UTF-8 without control characters, and fits.
 */
#include "base/buf.h"
#include "base/text.h"
#include "fuzz.h"

#include <string.h>

static void check_shown(const char *s, size_t n)
{
	for (size_t i = 0; i < n;) {
		size_t len = text_utf8(s + i, n - i);
		unsigned char c = (unsigned char)s[i];

		must(len >= 1 && len <= 4 && i + len <= n, "safe text is valid UTF-8");
		must(c >= 0x20 && c != 0x7f, "safe text has no control bytes");
		must(!(c == 0xc2 && (unsigned char)s[i + 1] < 0xa0), "safe text has no C1");
		i += len;
	}
}

static void check_copies(const char *text)
{
	char small[24], again[24];

	text_safe_copy(small, sizeof(small), text);
	must(strlen(small) < sizeof(small), "a safe copy fits");
	check_shown(small, strlen(small));
	text_safe_copy(again, sizeof(again), small);
	must(strcmp(small, again) == 0, "safe text stays as it is");
	must(text_copy(again, sizeof(again), text) == (strlen(text) < sizeof(again)),
	     "text_copy says whether all of it fitted");
	must(text_width(text) <= 2 * strlen(text), "no byte takes more than two columns");
	must(text_distance(small, small) == 0, "nothing differs from itself");
	must(text_distance(small, again) == text_distance(again, small), "distance is symmetric");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct buf out = { 0 }, text = { 0 };

	text_safe(&out, (const char *)data, n);
	must(buf_ok(&out) && out.len <= n, "safe text is never longer");
	check_shown(buf_text(&out), out.len);
	buf_put(&text, data, n);
	check_copies(buf_text(&text));
	buf_done(&text);
	buf_done(&out);
	return 0;
}
