/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/opt.h"

#include <errno.h>

struct options {
	bool quiet, hooks;
	const char *name, *color, *html;
	int64_t count, every;
	double hz, budget;
	uint64_t size;
	struct opt_list tags;
};

static const struct opt table[] = {
	OPT("quiet", 'q', OPT_FLAG, NULL, struct options, quiet, "say nothing"),
	OPT("no-hooks", 0, OPT_UNFLAG, NULL, struct options, hooks, "leave the program alone"),
	OPT("name", 'n', OPT_STRING, "NAME", struct options, name, "call the run NAME"),
	OPT("color", 0, OPT_STRING, "WHEN", struct options, color, "when to use colour",
	    .choices = "auto|always|never"),
	OPT("html", 'H', OPT_STRING, "FILE", struct options, html, "write a page",
	    .optional_arg = true),
	OPT("count", 'c', OPT_INT, "N", struct options, count, "how often", .min = 1, .max = 9),
	OPT("every", 'e', OPT_DURATION, "TIME", struct options, every, "time between lines",
	    .optional_arg = true, .min = 0.1, .max = 60),
	OPT("hz", 0, OPT_NUMBER, "HZ", struct options, hz, "samples a second", .min = 0.1,
	    .max = 100),
	OPT("budget", 0, OPT_RATIO, "SHARE", struct options, budget, "share of one core"),
	OPT("max-size", 0, OPT_SIZE, "SIZE", struct options, size, "largest file", .min = 1024,
	    .max = 1e12),
	OPT("tag", 't', OPT_LIST, "TAG", struct options, tags, "a word to find it by"),
	OPT("loop", 'l', OPT_STRING, "TIME", struct options, html, "again and again",
	    .optional_arg = true, .next_word = true),
	OPT("loop-ms", 0, OPT_INT, "MS", struct options, count, "the same, finer", .dashed = "lms"),
	OPT("secret", 0, OPT_FLAG, NULL, struct options, quiet, "not shown", .hidden = true),
	OPT_END,
};

struct parsed {
	struct options o;
	struct opt_rest rest;
	struct err e;
	int r;
	char *argv[32];
};

/* Words separated by blanks; the string is cut up in place. */
static void parse(struct parsed *p, char *words, bool stop_at_word)
{
	int n = 0;
	char *save = NULL;

	*p = (struct parsed){ .o = { .hooks = true, .hz = 10 } };
	for (char *w = strtok_r(words, " ", &save); w; w = strtok_r(NULL, " ", &save))
		p->argv[n++] = w;
	p->r = opt_parse(table, n, p->argv, stop_at_word, &p->o, &p->rest, &p->e);
}

static void every_kind(void **state)
{
	char words[] =
	    "-q --no-hooks --name first -nsecond --color=never --count 9 --every=5s --hz 2.5 "
	    "--budget 1% --max-size 256M --tag a -t b -tc --html=x";
	struct parsed p;

	(void)state;
	parse(&p, words, false);
	assert_int_equal(p.r, 0);
	assert_true(p.o.quiet);
	assert_false(p.o.hooks);
	assert_string_equal(p.o.name, "second");
	assert_string_equal(p.o.color, "never");
	assert_string_equal(p.o.html, "x");
	assert_int_equal(p.o.count, 9);
	assert_true(p.o.every == 5000000000ll);
	assert_true(near(p.o.hz, 2.5, 1e-12));
	assert_true(near(p.o.budget, 0.01, 1e-12));
	assert_int_equal(p.o.size, 256 << 20);
	assert_int_equal(p.o.tags.n, 3);
	assert_string_equal(p.o.tags.v[0], "a");
	assert_string_equal(p.o.tags.v[2], "c");
	assert_int_equal(p.rest.n, 0);
	assert_false(p.rest.dashes);
}

static void letters_together(void **state)
{
	char words[] = "-qn x -qc3";
	struct parsed p;

	(void)state;
	parse(&p, words, false);
	assert_int_equal(p.r, 0);
	assert_true(p.o.quiet);
	assert_string_equal(p.o.name, "x");
	assert_int_equal(p.o.count, 3);
}

static void optional_values(void **state)
{
	char bare[] = "--every --html word -e -H", given[] = "--every=2s -e3s -Hpage";
	struct parsed p;

	(void)state;
	parse(&p, bare, false);
	assert_int_equal(p.r, 0);
	assert_true(p.o.every == 0);
	assert_string_equal(p.o.html, "");
	assert_int_equal(p.rest.n, 1);
	parse(&p, given, false);
	assert_int_equal(p.r, 0);
	assert_true(p.o.every == 3000000000ll);
	assert_string_equal(p.o.html, "page");
}

/* As nvidia-smi has them: "-l", "-l 5", "-lms 500". */
static void values_in_the_next_word(void **state)
{
	char bare[] = "-l -q", word[] = "-l 5 more", attached[] = "-l7", named[] = "--loop 8",
	     last[] = "--loop", finer[] = "-lms 500 -q", equals[] = "-lms=20", none[] = "-lms";
	struct parsed p;

	(void)state;
	parse(&p, bare, false);
	assert_int_equal(p.r, 0);
	assert_string_equal(p.o.html, "");
	assert_true(p.o.quiet);
	parse(&p, word, false);
	assert_string_equal(p.o.html, "5");
	assert_int_equal(p.rest.n, 1);
	parse(&p, attached, false);
	assert_string_equal(p.o.html, "7");
	parse(&p, named, false);
	assert_string_equal(p.o.html, "8");
	parse(&p, last, false);
	assert_string_equal(p.o.html, "");
	parse(&p, finer, false);
	assert_int_equal(p.r, 0);
	assert_int_equal(p.o.count, 500);
	assert_true(p.o.quiet && !p.o.html);
	parse(&p, equals, false);
	assert_int_equal(p.o.count, 20);
	parse(&p, none, false);
	assert_int_equal(p.r, -EINVAL);
}

static void words_and_dashes(void **state)
{
	char mixed[] = "one -q two -- -q three --", stop[] = "-q cmd -n x -- y", lone[] = "- a";
	struct parsed p;

	(void)state;
	parse(&p, mixed, false);
	assert_int_equal(p.r, 0);
	assert_true(p.o.quiet && p.rest.dashes);
	assert_int_equal(p.rest.n, 5);
	assert_string_equal(p.rest.v[0], "one");
	assert_string_equal(p.rest.v[1], "two");
	assert_string_equal(p.rest.v[2], "-q");
	assert_string_equal(p.rest.v[3], "three");
	assert_string_equal(p.rest.v[4], "--");
	assert_null(p.rest.v[5]); /* it may be exec'ed as it is */
	parse(&p, stop, true);
	assert_int_equal(p.r, 0);
	assert_int_equal(p.rest.n, 5);
	assert_string_equal(p.rest.v[0], "cmd");
	assert_string_equal(p.rest.v[3], "--");
	assert_null(p.rest.v[5]);
	assert_null(p.o.name);
	assert_false(p.rest.dashes);
	parse(&p, lone, false);
	assert_int_equal(p.rest.n, 2);
	assert_string_equal(p.rest.v[0], "-");
}

static void bad_usage(void **state)
{
	static const struct {
		const char *words, *text, *hint;
	} rows[] = {
		{ "--nmae x", "unknown option '--nmae'", "did you mean '--name'?" },
		{ "--colour=no", "unknown option '--colour=no'", "did you mean '--color'?" },
		{ "--frob", "unknown option '--frob'", "" },
		{ "--secre", "unknown option '--secre'", "" },
		{ "-x", "unknown option '-x'", "" },
		{ "-qx", "unknown option '-qx'", NULL },
		{ "--", "", "" },
		{ "--name", "option '--name' needs a value: --name NAME", "" },
		{ "-n", "option '-n' needs a value: -n NAME", "" },
		{ "--quiet=yes", "option '--quiet' takes no value", "" },
		{ "--count x", "'--count x': expected a whole number", "" },
		{ "--count 0", "'--count 0': must be between 1 and 9", "" },
		{ "--count=10", "'--count 10': must be between 1 and 9", "" },
		{ "--hz fast", "'--hz fast': expected a number", "" },
		{ "--hz 101", "'--hz 101': must be between 0.1 and 100", "" },
		{ "--budget lots", "'--budget lots': expected a share such as 1%", "" },
		{ "--max-size big", "'--max-size big': expected a size such as 256M", "" },
		{ "--every=soon", "'--every soon': expected a time such as 60s or 5m", "" },
		{ "--every=61s", "'--every 61s': must be between 100 ms and 60.0 s", "" },
		{ "--color=red", "'--color red': expected one of auto|always|never", "" },
		{ "--color=auto|always", NULL, "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char words[64];
		struct parsed p;

		snprintf(words, sizeof(words), "%s", rows[i].words);
		parse(&p, words, false);
		assert_int_equal(p.r, rows[i].text && !*rows[i].text ? 0 : -EINVAL);
		assert_int_equal(p.e.code, p.r);
		if (rows[i].text)
			assert_string_equal(p.e.text, rows[i].text);
		if (rows[i].hint)
			assert_string_equal(p.e.hint, rows[i].hint);
		assert_true(p.o.count == 0 && p.o.every == 0 && near(p.o.hz, 10, 1e-12));
	}
}

/* What a user typed comes back in a message: it must not reach the terminal as it is. */
static void hostile_words(void **state)
{
	char words[] = "--\x1b[2J\n", value[] = "--count \x1b[31m";
	struct parsed p;

	(void)state;
	parse(&p, words, false);
	assert_int_equal(p.r, -EINVAL);
	assert_string_equal(p.e.text, "unknown option '--?[2J?'");
	parse(&p, value, false);
	assert_string_equal(p.e.text, "'--count ?[31m': expected a whole number");
}

static void list_is_bounded(void **state)
{
	struct options o = { 0 };
	char *argv[64], tag[] = "-ta";
	struct opt_rest rest;
	struct err e = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(argv); i++)
		argv[i] = tag;
	assert_int_equal(opt_parse(table, 16, argv, false, &o, &rest, &e), 0);
	assert_int_equal(o.tags.n, 16);
	o = (struct options){ 0 };
	argv[0] = tag; /* parsing put a NULL there */
	assert_int_equal(opt_parse(table, 17, argv, false, &o, &rest, &e), -EINVAL);
	assert_string_equal(e.text, "'--tag a': given too often");
}

static void no_words_and_no_error_struct(void **state)
{
	struct options o = { 0 };
	struct opt_rest rest;
	char bad[] = "--bad", *argv[] = { bad, NULL };

	(void)state;
	assert_int_equal(opt_parse(table, 0, argv + 1, false, &o, &rest, NULL), 0);
	assert_int_equal(rest.n, 0);
	assert_int_equal(opt_parse(table, 1, argv, false, &o, &rest, NULL), -EINVAL);
}

static void choices(void **state)
{
	(void)state;
	assert_true(opt_is_choice("a|bc|d", "a"));
	assert_true(opt_is_choice("a|bc|d", "bc"));
	assert_true(opt_is_choice("a|bc|d", "d"));
	assert_false(opt_is_choice("a|bc|d", "b"));
	assert_false(opt_is_choice("a|bc|d", "bcd"));
	assert_false(opt_is_choice("a|bc|d", ""));
	assert_false(opt_is_choice("a|bc|d", "a|bc"));
}

static void help(void **state)
{
	auto_done(buf) struct buf b = { 0 };
	size_t column = 0;

	(void)state;
	opt_help(table, &b);
	assert_non_null(strstr(buf_text(&b), "  -n, --name NAME            call the run NAME\n"));
	assert_non_null(
	    strstr(buf_text(&b), "      --no-hooks             leave the program alone\n"));
	assert_non_null(strstr(buf_text(&b), "--every[=TIME]"));
	assert_null(strstr(buf_text(&b), "secret"));
	for (const char *p = buf_text(&b); *p; p++) {
		column = *p == '\n' ? 0 : column + 1;
		assert_true(column <= 80);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind),
		cmocka_unit_test(letters_together),
		cmocka_unit_test(optional_values),
		cmocka_unit_test(values_in_the_next_word),
		cmocka_unit_test(words_and_dashes),
		cmocka_unit_test(bad_usage),
		cmocka_unit_test(hostile_words),
		cmocka_unit_test(list_is_bounded),
		cmocka_unit_test(no_words_and_no_error_struct),
		cmocka_unit_test(choices),
		cmocka_unit_test(help),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
