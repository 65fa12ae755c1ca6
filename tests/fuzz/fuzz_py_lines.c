/* SPDX-License-Identifier: MIT
 *
 * Line tables: first byte the kind, then two of the offset, then the table. And the same bytes as text
 * of each width: always valid UTF-8.
 */
#include "base/buf.h"
#include "base/text.h"
#include "fuzz.h"
#include "stack/py/lines.h"
#include "stack/py/unicode.h"

#include <string.h>

static void check_text(const uint8_t *data, size_t n, unsigned width)
{
	struct buf out;
	size_t at = 0;

	buf_init(&out, 1 << 20);
	py_unicode_put(&out, data, n / width, width);
	while (at < out.len) {
		size_t step = text_utf8(out.data + at, out.len - at);

		must(step > 0 && out.data[at], "UTF-8 without NUL");
		at += step;
	}
	buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	int16_t offset;

	if (n < 3)
		return 0;
	memcpy(&offset, data + 1, 2);
	must(py_line_of((enum py_lines)(data[0] % 3), data + 3, n - 3, 100, offset) >= 0,
	     "a line or none");
	check_text(data, n, 1);
	check_text(data, n, 2);
	check_text(data, n, 4);
	return 0;
}
