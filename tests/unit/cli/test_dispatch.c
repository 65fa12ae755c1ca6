/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "base/auto.h"
#include "commands.h"

#include <fcntl.h>
#include <unistd.h>

struct seen seen;

/* Runs one command line; what it says on stderr goes into `said`. */
static int run(struct cli *cli, char *said, size_t size, const char *line)
{
	char words[256];
	char *argv[16], *save = NULL;
	int argc = 0, status, pipes[2], keep = dup(2);
	ssize_t n;

	snprintf(words, sizeof(words), "%s", line);
	for (char *w = strtok_r(words, " ", &save); w; w = strtok_r(NULL, " ", &save))
		argv[argc++] = w;
	*cli = (struct cli){ .commands = test_commands };
	assert_int_equal(pipe(pipes), 0);
	dup2(pipes[1], 2);
	close(pipes[1]);
	status = cli_main(cli, argc, argv);
	dup2(keep, 2);
	close(keep);
	n = read(pipes[0], said, size - 1);
	said[n > 0 ? n : 0] = '\0';
	close(pipes[0]);
	return status;
}

static void check(const char *line, int status, const char *says)
{
	struct cli cli;
	char said[2048];
	int got = run(&cli, said, sizeof(said), line);

	buf_done(&cli.out);
	if (got != status || !strstr(said, says))
		fail_msg("'%s' ended with %d (want %d) and said: %s", line, got, status, said);
}

static void wrong_usage(void **state)
{
	(void)state;
	seen.runs = 0;
	check("", 2, "no command given");
	check("coook", 2, "unknown command 'coook'\n  did you mean 'spotter cook'?");
	check("wsh", 2, "'spotter help' lists the commands"); /* hidden ones are not offered */
	check("xylophone", 2, "'spotter help' lists the commands");
	check("--nope", 2, "unknown option '--nope'");
	check("cook --suace red", 2, "did you mean '--sauce'?");
	check("cook --sauce blue", 2, "expected one of red|green");
	check("cook --minutes 61", 2, "must be between 1 and 60");
	check("cook --minutes", 2, "needs a value");
	check("cook a b", 2, "unexpected 'b'");
	check("cook a b", 2, "usage: spotter cook [OPTION...] [RUN]");
	check("eat", 125, "'eat' needs [--] CMD");
	check("eat --nope x", 125, "unknown option");
	check("cook --color sometimes", 2, "expected one of auto|always|never");
	assert_int_equal(seen.runs, 0);
}

static void options_arrive(void **state)
{
	(void)state;
	check("cook --sauce green x -o FILE --json", 0, "");
	assert_string_equal(seen.sauce, "green");
	assert_int_equal(seen.cook.minutes, 10); /* the default */
	assert_true(seen.cook.common.json);
	assert_int_equal(seen.n_words, 1);
	assert_string_equal(seen.words[0], "x");
	check("eat --color never prog --help -x", 0, "");
	assert_int_equal(seen.n_words, 3);
	assert_string_equal(seen.words[1], "--help");
	check("eat -- --help", 0, "");
	assert_string_equal(seen.words[0], "--help");
	check("cook --salt", 0, "");
	assert_true(seen.cook.quick);
	check("wash", 0, "");
}

static void help_wins(void **state)
{
	static const char *const lines[] = { "cook --help", "cook -h", "cook --nope --help",
					     "cook a b c --help", "eat --help" };

	(void)state;
	seen.runs = 0;
	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		struct cli cli;
		char said[512];

		assert_int_equal(run(&cli, said, sizeof(said), lines[i]), 0);
		assert_string_equal(said, "");
		assert_non_null(strstr(buf_text(&cli.out), "\nUsage\n"));
		buf_done(&cli.out);
	}
	assert_int_equal(seen.runs, 0);
}

static void names_cannot_inject(void **state)
{
	struct cli cli;
	char said[512];

	(void)state;
	assert_int_equal(run(&cli, said, sizeof(said), "\033[2Jevil"), 2);
	assert_null(strchr(said, '\033'));
	buf_done(&cli.out);
}

static void set(const char *name, const char *value)
{
	if (value)
		setenv(name, value, 1);
	else
		unsetenv(name);
}

static void color_rules(void **state)
{
	/* flag, NO_COLOR, CLICOLOR_FORCE, TERM -> colour in a pipe */
	static const struct {
		const char *flag, *no, *force, *term;
		bool want;
	} rows[] = {
		{ NULL, NULL, NULL, "xterm", false },   { "always", NULL, NULL, "dumb", true },
		{ "always", "1", NULL, "xterm", true }, { "never", NULL, "1", "xterm", false },
		{ "auto", NULL, "1", "xterm", true },   { NULL, NULL, "1", "dumb", true },
		{ NULL, NULL, "0", "xterm", false },    { NULL, "1", "1", "xterm", false },
		{ NULL, "", "1", "xterm", true },       { NULL, NULL, "", "xterm", false },
	};
	auto_close int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		set("NO_COLOR", rows[i].no);
		set("CLICOLOR_FORCE", rows[i].force);
		set("FORCE_COLOR", NULL);
		set("TERM", rows[i].term);
		assert_int_equal(cli_color(rows[i].flag, fd), rows[i].want);
	}
	set("NO_COLOR", NULL);
	set("CLICOLOR_FORCE", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wrong_usage), cmocka_unit_test(options_arrive),
		cmocka_unit_test(help_wins),   cmocka_unit_test(names_cannot_inject),
		cmocka_unit_test(color_rules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
