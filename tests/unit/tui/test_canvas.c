/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "base/auto.h"
#include "base/buf.h"
#include "tui/graph.h"
#include "tui/paint.h"

#include <math.h>

static struct canvas make(int rows, int cols)
{
	struct canvas c = { 0 };

	assert_int_equal(canvas_size(&c, rows, cols), 0);
	return c;
}

static void shows(const struct canvas *c, const char *want)
{
	auto_done(buf) struct buf out = { 0 };

	canvas_dump(c, COLOR_NONE, &out);
	assert_string_equal(buf_text(&out), want);
}

/* Nothing a process is called is a command to the terminal. */
static void hostile_text(void **state)
{
	struct canvas c = make(1, 40);

	(void)state;
	canvas_text(&c, 0, 0, 40, 0,
		    "a\033[2Jb\x9b"
		    "c\xc2\x9b"
		    "d\xe2\x80\xae"
		    "e\r\n\x07\xff");
	for (int k = 0; k < 40; k++) {
		uint32_t cp = canvas_at(&c, 0, k)->cp;

		assert_true(cp >= ' ' && cp != 0x7f && !(cp >= 0x80 && cp < 0xa0) && cp != 0x202e);
	}
	shows(&c, "a?[2Jb?c?d?e????\n");
	canvas_done(&c);
}

static void wide_text(void **state)
{
	struct canvas c = make(1, 6);

	(void)state;
	/* Two columns each, and no half of one at the edge. */
	assert_int_equal(canvas_text(&c, 0, 0, 5, 0, "\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2"), 4);
	shows(&c, "\xe6\xbc\xa2\xe5\xad\x97\n");
	assert_int_equal(canvas_at(&c, 0, 1)->width, 0);
	/* A half that is overwritten takes the other with it. */
	canvas_glyph(&c, 0, 1, 0, 'x');
	shows(&c, " x\xe5\xad\x97\n");
	/* Marks on top of others are left out: e with an acute. */
	canvas_clear(&c);
	assert_int_equal(canvas_text(&c, 0, 0, 6, 0, "e\xcc\x81x"), 2);
	shows(&c, "ex\n");
	canvas_done(&c);
}

static void outside(void **state)
{
	struct canvas c = make(2, 4);

	(void)state;
	canvas_glyph(&c, -1, 0, 0, 'x');
	canvas_glyph(&c, 0, 99, 0, 'x');
	canvas_text(&c, 0, -2, 9, 0, "abcdefghi");
	canvas_fill(&c, (struct area){ 1, 2, 50, 50 }, 0, '#');
	canvas_fill(&c, (struct area){ -5, -5, 2, 2 }, 0, '#');
	canvas_box(&c, (struct area){ 0, 0, 0, 0 }, "title");
	canvas_clear(&c);
	canvas_text(&c, 1, 2, 9, 0, "abc");
	shows(&c, "\n  ab\n");
	canvas_done(&c);
}

static void ascii_only(void **state)
{
	struct canvas c = make(1, 12);

	(void)state;
	c.ascii = true;
	canvas_text(&c, 0, 0, 12, 0, "\xe6\xbc\xa2 \xe2\x94\x80\xe2\x96\x88\xe2\xa3\xbf x");
	shows(&c, "? -## x\n");
	canvas_done(&c);
}

static void wraps(void **state)
{
	struct canvas c = make(3, 10);

	(void)state;
	assert_int_equal(
	    canvas_wrap(&c, (struct area){ 0, 0, 2, 10 }, 0, "one two three four five"), 2);
	shows(&c, "one two\nthree f...\n\n" + 0);
	canvas_done(&c);
}

static void graphs(void **state)
{
	struct canvas c = make(1, 4);
	const float v[] = { NAN, 0, 1, 2, 4, 4, 3, 9 };

	(void)state;
	graph_area(&c, (struct area){ 0, 0, 1, 4 }, 0, v, 8, 4, -1);
	/* dots from below: not known and nothing, 1 and 2, 4 and 4, 3 and as many as fit */
	shows(&c, "\xe2\xa2\x80\xe2\xa3\xa0\xe2\xa3\xbf\xe2\xa3\xbe\n");
	canvas_clear(&c);
	graph_meter(&c, 0, 0, 4, 0, 0.625);
	shows(&c, "\xe2\x94\x81\xe2\x94\x81\xe2\x95\xb8\xc2\xb7\n");
	canvas_clear(&c);
	graph_parts(&c, 0, 0, 4, (struct part[]){ { 0.5, 0 }, { 0.25, 1 } }, 2);
	shows(&c, "\xe2\x96\x88\xe2\x96\x88\xe2\x96\x88\xc2\xb7\n");
	assert_true(graph_round_up(3) == 5 && graph_round_up(1000) == 1000 &&
		    graph_round_up(0) == 1);
	canvas_done(&c);
}

static void paints_what_changed(void **state)
{
	struct canvas a = make(2, 5), b = make(2, 5);
	auto_done(buf) struct buf out = { 0 };

	(void)state;
	canvas_text(&b, 0, 1, 4, 0, "hi");
	paint(NULL, &b, COLOR_NONE, &out);
	assert_string_equal(buf_text(&out), "\033[0m\033[2J\033[1;2H\033[0mhi");
	/* The same again: nothing at all. */
	buf_reset(&out);
	paint(&b, &b, COLOR_NONE, &out);
	assert_int_equal(out.len, 0);
	canvas_copy(&a, &b);
	canvas_text(&b, 0, 2, 4, TONE_BAD, "o");
	canvas_text(&b, 1, 4, 4, TONE_BAD | LOOK_REVERSE, "!");
	buf_reset(&out);
	paint(&a, &b, COLOR_256, &out);
	assert_string_equal(buf_text(&out),
			    "\033[1;3H\033[0;38;5;166mo\033[2;5H\033[0;7;38;5;166m!\033[0m");
	canvas_done(&a);
	canvas_done(&b);
}

/* Terminals differ in how wide they think a character is: behind one, the place is said again. */
static void paints_where_it_is(void **state)
{
	struct canvas c = make(1, 5);
	auto_done(buf) struct buf out = { 0 };

	(void)state;
	canvas_text(&c, 0, 0, 5, 0, "\xe6\xbc\xa2x");
	paint(NULL, &c, COLOR_NONE, &out);
	assert_non_null(strstr(buf_text(&out), "\xe6\xbc\xa2\033[1;3Hx"));
	canvas_done(&c);
}

static void colors(void **state)
{
	char s[64];

	(void)state;
	assert_string_equal(palette_sgr(TONE_WARN, COLOR_NONE, s, sizeof(s)), "0;1");
	assert_string_equal(palette_sgr(TONE_WARN, COLOR_16, s, sizeof(s)), "0;33");
	assert_string_equal(palette_sgr(TONE_WARN, COLOR_256, s, sizeof(s)), "0;38;5;178");
	assert_string_equal(palette_sgr(TONE_WARN, COLOR_TRUE, s, sizeof(s)), "0;38;2;230;159;0");
	assert_string_equal(palette_sgr(TONE_DIM, COLOR_16, s, sizeof(s)), "0;90");
	assert_string_equal(palette_sgr(TONE_PLAIN | LOOK_BOLD, COLOR_TRUE, s, sizeof(s)), "0;1");
	assert_int_equal(palette_mode(false, "truecolor", 256), COLOR_NONE);
	assert_int_equal(palette_mode(true, "truecolor", 8), COLOR_TRUE);
	assert_int_equal(palette_mode(true, NULL, 256), COLOR_256);
	assert_int_equal(palette_mode(true, "", 8), COLOR_16);
	assert_int_equal(palette_mode(true, NULL, -1), COLOR_NONE); /* a terminal without */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hostile_text),
		cmocka_unit_test(wide_text),
		cmocka_unit_test(outside),
		cmocka_unit_test(ascii_only),
		cmocka_unit_test(wraps),
		cmocka_unit_test(graphs),
		cmocka_unit_test(paints_what_changed),
		cmocka_unit_test(paints_where_it_is),
		cmocka_unit_test(colors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
