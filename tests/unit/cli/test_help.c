/* SPDX-License-Identifier: MIT
 *
 * Help, man page and completions are made from one table: each must name everything that is not
 * hidden, and nothing that is.
 */
#include "../unit.h"

#include "base/auto.h"
#include "commands.h"

struct seen seen;

static const struct cli cli = { .commands = test_commands };

/* Words only: wrapping differs between the pages. roff escapes are undone. */
static void squeeze(struct buf *b)
{
	size_t at = 0;

	for (size_t i = 0; i < b->len; i++) {
		char c = b->data[i] == '\n' ? ' ' : b->data[i];

		if (c == '\\' && (b->data[i + 1] == '-' || b->data[i + 1] == '&'))
			continue;
		if (c == ' ' && at && b->data[at - 1] == ' ')
			continue;
		b->data[at++] = c;
	}
	b->len = at;
	b->data[at] = '\0';
}

static void assert_has(const struct buf *b, const char *text)
{
	if (!strstr(buf_text(b), text))
		fail_msg("'%s' is not in: %s", text, buf_text(b));
}

static void help_has_everything(void **state)
{
	auto_done(buf) struct buf help = { 0 }, plain = { 0 };

	(void)state;
	help_page(&cook_command, false, &help);
	for (char *line = help.data; *line;) {
		size_t n = strcspn(line, "\n");

		assert_true(n <= 80);
		line += n + (line[n] == '\n');
	}
	assert_has(&help, "\n  verbatim   line\n  .second\n");
	assert_true(strstr(help.data, "Examples") < strstr(help.data, "Usage"));
	squeeze(&help);
	for (const struct opt *o = cook_opts; o->kind != OPT_NONE; o++) {
		if (o->hidden)
			continue;
		assert_has(&help, o->name);
		assert_has(&help, o->help);
	}
	assert_null(strstr(help.data, "salt"));
	assert_null(strchr(help.data, '\033'));
	help_page(&cook_command, true, &plain);
	assert_non_null(strchr(plain.data, '\033'));
}

static void man_has_the_same(void **state)
{
	auto_done(buf) struct buf man = { 0 };

	(void)state;
	man_page(&cook_command, &man);
	assert_has(&man, ".TH SPOTTER\\-COOK 1 ");
	assert_has(&man, "\n\\&.SH is text\n"); /* no line of text may be taken as a request */
	assert_has(&man, "\\(aqLast\\(aq one.");
	assert_has(&man, "\\eback");
	squeeze(&man);
	assert_has(&man, "make a meal - well done");
	for (const struct opt *o = cook_opts; o->kind != OPT_NONE; o++) {
		if (!o->hidden)
			assert_has(&man, o->name);
		if (!o->hidden && !strchr(o->help, '\''))
			assert_has(&man, o->help);
	}
	assert_null(strstr(man.data, "salt"));
}

static void overview_lists_commands(void **state)
{
	auto_done(buf) struct buf help = { 0 }, man = { 0 };

	(void)state;
	help_overview(&cli, &help);
	man_overview(&cli, &man);
	assert_has(&help, "\nKitchen\n  cook         make a meal - well done\n");
	assert_has(&help, "\nTable\n  eat ");
	assert_has(&man, "\\fBspotter\\-cook\\fR(1)");
	assert_null(strstr(help.data, "wash"));
	assert_null(strstr(man.data, "wash"));
}

static void completions_have_everything(void **state)
{
	void (*const shells[])(const struct cli *, struct buf *) = { complete_bash, complete_zsh,
								     complete_fish };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(shells); i++) {
		auto_done(buf) struct buf out = { 0 };

		shells[i](&cli, &out);
		for (const struct opt *o = cook_opts; o->kind != OPT_NONE; o++)
			if (!o->hidden)
				assert_has(&out, o->name);
		assert_has(&out, "red green");
		assert_null(strstr(out.data, "salt"));
		assert_null(strstr(out.data, "wash"));
	}
}

static void wrapping(void **state)
{
	auto_done(buf) struct buf out = { 0 };

	(void)state;
	help_wrap("one two three\nfour averyveryverylongwordindeed x", 2, 12, &out);
	assert_string_equal(buf_text(&out),
			    "  one two\n  three four\n  averyveryverylongwordindeed\n"
			    "  x\n");
	buf_reset(&out);
	help_wrap("", 2, 12, &out);
	assert_string_equal(buf_text(&out), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(help_has_everything),
		cmocka_unit_test(man_has_the_same),
		cmocka_unit_test(overview_lists_commands),
		cmocka_unit_test(completions_have_everything),
		cmocka_unit_test(wrapping),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
