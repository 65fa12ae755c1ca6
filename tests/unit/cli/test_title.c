/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "base/clock.h"
#include "cli/title.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

struct terminal {
	int master, slave;
	char path[64];
};

static void open_terminal(struct terminal *t)
{
	t->master = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
	assert_true(t->master >= 0);
	assert_int_equal(grantpt(t->master), 0);
	assert_int_equal(unlockpt(t->master), 0);
	assert_int_equal(ptsname_r(t->master, t->path, sizeof(t->path)), 0);
	t->slave = open(t->path, O_RDWR | O_NOCTTY);
	assert_true(t->slave >= 0);
}

static void close_terminal(struct terminal *t)
{
	close(t->slave);
	close(t->master);
}

/* All that is there now. */
static const char *seen(struct terminal *t, char *text, size_t size)
{
	size_t n = 0;
	ssize_t got;

	while (n < size - 1 && (got = read(t->master, text + n, size - 1 - n)) > 0)
		n += (size_t)got;
	text[n] = '\0';
	return text;
}

static void set_and_put_back(void **state)
{
	struct terminal term;
	struct title t;
	char text[1024];

	(void)state;
	open_terminal(&term);
	title_open(&t, term.path);
	assert_true(t.fd >= 0);
	title_set(&t, "step 1");
	assert_string_equal(seen(&term, text, sizeof(text)), "\033[22;2t\033]2;step 1\033\\");
	title_set(&t, "step 2");
	assert_string_equal(seen(&term, text, sizeof(text)), "\033]2;step 2\033\\");
	title_close(&t);
	assert_string_equal(seen(&term, text, sizeof(text)), "\033[23;2t");
	title_restore(term.path);
	assert_string_equal(seen(&term, text, sizeof(text)), "\033[23;2t");
	close_terminal(&term);
}

static void hostile_names_stay_inside(void **state)
{
	struct terminal term;
	struct title t;
	char text[1024], name[600];

	(void)state;
	open_terminal(&term);
	title_open(&t, term.path);
	title_set(&t, "a\033\\\033[2J\007\n\xc2\x9c\xff z");
	seen(&term, text, sizeof(text));
	assert_ptr_equal(strstr(text + 7 + 4, "\033"), text + strlen(text) - 2);
	assert_null(strchr(text, '\007'));
	assert_null(strstr(text, "\xc2\x9c"));
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	title_set(&t, name);
	assert_true(strlen(seen(&term, text, sizeof(text))) < TITLE_MAX + 8);
	title_close(&t);
	close_terminal(&term);
}

static void a_stopped_terminal_gets_nothing(void **state)
{
	struct terminal term;
	struct title t;
	char text[1024];
	int64_t begun;

	(void)state;
	open_terminal(&term);
	title_open(&t, term.path);
	assert_int_equal(tcflow(term.slave, TCOOFF), 0);
	begun = clock_mono_ns();
	for (int i = 0; i < 100; i++)
		title_set(&t, "never");
	title_close(&t);
	/* bounded by what the last try may wait; generous for a slow machine */
	assert_true(clock_mono_ns() - begun < 20 * NS_PER_S);
	assert_string_equal(seen(&term, text, sizeof(text)), "");
	assert_int_equal(tcflow(term.slave, TCOON), 0);
	assert_string_equal(seen(&term, text, sizeof(text)), "");
	close_terminal(&term);
}

/* Whatever room a full terminal has: what it got, once it is read, is whole sequences. */
static void a_full_terminal_gets_whole_ones(void **state)
{
	static char all[1 << 20];
	struct terminal term;
	struct title t;
	size_t n = 0, sequences = 0;
	ssize_t got;

	(void)state;
	open_terminal(&term);
	title_open(&t, term.path);
	for (int i = 0; i < 2000; i++)
		title_set(&t, "a title of some length, so that it does not always fit as a whole");
	for (int i = 0; i < 3; i++) {
		while (n < sizeof(all) - 1 &&
		       (got = read(term.master, all + n, sizeof(all) - 1 - n)) > 0)
			n += (size_t)got;
		title_set(&t, "end");
	}
	while (n < sizeof(all) - 1 && (got = read(term.master, all + n, sizeof(all) - 1 - n)) > 0)
		n += (size_t)got;
	all[n] = '\0';
	assert_true(n > 10000);
	for (const char *p = all + strlen("\033[22;2t"); *p; sequences++) {
		const char *end;

		assert_int_equal(strncmp(p, "\033]2;", 4), 0);
		end = strstr(p + 4, "\033");
		assert_non_null(end);
		assert_int_equal(end[1], '\\');
		p = end + 2;
	}
	assert_true(sequences > 100);
	title_close(&t);
	close_terminal(&term);
}

static void not_every_terminal(void **state)
{
	struct terminal term;
	struct title t;
	char path[64];

	(void)state;
	open_terminal(&term);
	setenv("TERM", "xterm", 1);
	assert_true(title_terminal(term.slave, path, sizeof(path)));
	assert_string_equal(path, term.path);
	setenv("TERM", "dumb", 1);
	assert_false(title_terminal(term.slave, path, sizeof(path)));
	setenv("TERM", "linux", 1);
	assert_false(title_terminal(term.slave, path, sizeof(path)));
	unsetenv("TERM");
	assert_false(title_terminal(term.slave, path, sizeof(path)));
	close_terminal(&term);
	title_open(&t, "/dev/null");
	assert_int_equal(t.fd, -1);
	title_open(&t, "/nonexistent/tty");
	title_set(&t, "x");
	title_close(&t);
}

static void says_what_is_known(void **state)
{
	struct glance before = { 0 }, now = { 0 };
	char text[TITLE_MAX];

	(void)state;
	title_text("train.py", 130 * NS_PER_S, &before, &now, text, sizeof(text));
	assert_string_equal(text, "train.py, 2 min 10 s");
	before = (struct glance){ .t_ns = NS_PER_S,
				  .has_cpu = true,
				  .cpu_ns = 5 * NS_PER_S,
				  .steps = 7,
				  .number = 410,
				  .step_ns = NS_PER_S,
				  .who = 20 };
	now = (struct glance){ .t_ns = 2 * NS_PER_S,
			       .has_cpu = true,
			       .cpu_ns = 8 * NS_PER_S,
			       .steps = 9,
			       .number = 412,
			       .step_ns = NS_PER_S + 620 * NS_PER_MS,
			       .loss = 0.42,
			       .who = 20 };
	title_text("train.py", 130 * NS_PER_S, &before, &now, text, sizeof(text));
	assert_string_equal(text,
			    "train.py, 2 min 10 s, step 412, 310 ms a step, loss 0.42, 3 cores");
	/* another process: the counts do not belong together */
	now.who = 21;
	now.loss = NAN;
	now.cpu_ns = 1;
	title_text("train.py", 130 * NS_PER_S, &before, &now, text, sizeof(text));
	assert_string_equal(text, "train.py, 2 min 10 s, step 412");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(set_and_put_back),
		cmocka_unit_test(hostile_names_stay_inside),
		cmocka_unit_test(a_stopped_terminal_gets_nothing),
		cmocka_unit_test(a_full_terminal_gets_whole_ones),
		cmocka_unit_test(not_every_terminal),
		cmocka_unit_test(says_what_is_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
