/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "explain/page.h"

#include "base/buf.h"
#include "base/text.h"

static char *write_page(struct page *p, unsigned max_lines, bool color)
{
	static char text[8192];
	struct buf out;

	buf_init(&out, 0);
	page_write(p, max_lines, color, &out);
	snprintf(text, sizeof(text), "%s", buf_text(&out));
	buf_done(&out);
	page_done(p);
	return text;
}

static void wraps(void **state)
{
	struct page p = { .width = 40 };

	(void)state;
	page_add(&p, 1, PAGE_PLAIN, "Label", "%s", "one two three four five six seven eight nine");
	page_add(&p, 1, PAGE_PLAIN, "", "%s", "");
	assert_string_equal(write_page(&p, 0, false), "Label   one two three four five six\n"
						      "        seven eight nine\n"
						      "        \n");
}

/* A number is not torn from its unit; a word longer than a row is cut; nothing is lost. */
static void breaks(void **state)
{
	struct page p = { .width = 40 };

	(void)state;
	page_add(&p, 1, PAGE_PLAIN, "A", "%s", "top calls what this job has used 642 % now");
	page_add(&p, 1, PAGE_PLAIN, "B", "%s", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxyy z");
	assert_string_equal(write_page(&p, 0, false), "A       top calls what this job has used\n"
						      "        642 % now\n"
						      "B       xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n"
						      "        xxxxxxxxyy z\n");
}

static void every_width(void **state)
{
	static const char words[] =
	    "a \xc3\xa9\xc3\xa9\xc3\xa9 bb \xe4\xb8\xad\xe6\x96\x87 12 % of 3.4 GB, "
	    "wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww end";

	(void)state;
	for (unsigned width = 1; width < 120; width++) {
		struct page p = { .width = width };
		char *text, *line, *save = NULL;
		size_t letters = 0;

		page_add(&p, 1, PAGE_PLAIN, "L", "%s", words);
		text = write_page(&p, 0, false);
		for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
			assert_true(text_width(line) <= (width < 40 ? 40 : width));
			for (char *c = line; *c; c++)
				letters += *c == 'w';
		}
		assert_int_equal(letters, 57);
	}
}

static void lightest_go_first(void **state)
{
	struct page p = { .width = 80 };

	(void)state;
	page_add(&p, 9, PAGE_PLAIN, "", "nine");
	page_add(&p, 1, PAGE_PLAIN, "", "one");
	page_add(&p, 5, PAGE_PLAIN, "", "five");
	page_add(&p, 1, PAGE_PLAIN, "", "one too");
	assert_string_equal(write_page(&p, 3, false), "        nine\n        one\n        five\n");
	/* what is left still has to fit */
	page_add(&p, 9, PAGE_PLAIN, "", "%0200d %d", 1, 2);
	assert_int_equal(strlen(write_page(&p, 2, false)), 2 * 81);
}

static void color_and_safety(void **state)
{
	struct page p = { .width = 80 };

	(void)state;
	page_add(&p, 1, PAGE_WARN, "X", "a\033[31mb\nc");
	assert_string_equal(write_page(&p, 0, false), "X       a?[31mb?c\n");
	page_add(&p, 1, PAGE_WARN, "X", "a");
	assert_string_equal(write_page(&p, 0, true), "\033[2mX       \033[0m\033[1;33ma\033[0m\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wraps),
		cmocka_unit_test(breaks),
		cmocka_unit_test(every_width),
		cmocka_unit_test(lightest_go_first),
		cmocka_unit_test(color_and_safety),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
