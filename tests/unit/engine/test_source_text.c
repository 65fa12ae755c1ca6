/* SPDX-License-Identifier: MIT
 *
 * Source lines: the right one, trimmed; none of a file that changed, is no file, or never answers.
 */
#include "../unit.h"

#include "base/clock.h"
#include "engine/source_text.h"
#include "explain/keeps/keeps.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64], file[96], fifo[96];

static int make_files(void **state)
{
	FILE *f;

	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/spotter-source-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(file, sizeof(file), "%s/train.py", folder);
	snprintf(fifo, sizeof(fifo), "%s/fifo.py", folder);
	f = fopen(file, "w");
	if (!f || mkfifo(fifo, 0600) < 0)
		return -1;
	fputs("import x\n\n\tloss = model(batch).item()  \r\nlast", f);
	return fclose(f);
}

static int drop_files(void **state)
{
	(void)state;
	unlink(file);
	unlink(fifo);
	return rmdir(folder);
}

/* The answer for one place, "" when there is none within a second (none at all: `never`). */
static void ask(int64_t started_ns, const char *path, int line, bool never, char *ret)
{
	struct source_text *s = source_text_start();
	int64_t until = clock_mono_ns() + (never ? 80 : 2000) * NS_PER_MS;
	uint32_t place = 0;

	assert_non_null(s);
	ret[0] = 0;
	source_text_ask(s, 7, getpid(), started_ns, path, line);
	while (!source_text_next(s, &place, ret) && clock_mono_ns() < until)
		usleep(1000);
	assert_int_equal(place, ret[0] ? 7 : 0);
	source_text_stop(s);
}

static void the_right_line(void **state)
{
	int64_t later = clock_wall_ns() + 60 * NS_PER_S;
	char text[SOURCE_LINE_MAX];

	(void)state;
	ask(later, file, 3, false, text);
	assert_string_equal(text, "loss = model(batch).item()");
	ask(later, file, 1, false, text);
	assert_string_equal(text, "import x");
	ask(later, file, 4, false, text);
	assert_string_equal(text, "last");
}

static void none_where_there_is_none(void **state)
{
	int64_t later = clock_wall_ns() + 60 * NS_PER_S;
	char text[SOURCE_LINE_MAX];

	(void)state;
	ask(later, file, 2, true, text); /* blank */
	assert_string_equal(text, "");
	ask(later, file, 5, true, text);
	assert_string_equal(text, "");
	ask(later, file, -3, true, text);
	assert_string_equal(text, "");
	ask(later, "<frozen importlib>", 1, true, text);
	assert_string_equal(text, "");
	ask(later, "/nowhere/at/all.py", 1, true, text);
	assert_string_equal(text, "");
	ask(later, fifo, 1, true, text);
	assert_string_equal(text, "");
	ask(later, folder, 1, true, text);
	assert_string_equal(text, "");
}

/* What runs is what it was when the process started. */
static void changed_since(void **state)
{
	char text[SOURCE_LINE_MAX];

	(void)state;
	ask(clock_wall_ns() - 3600 * NS_PER_S, file, 3, true, text);
	assert_string_equal(text, "");
}

static void many_questions(void **state)
{
	struct source_text *s = source_text_start();
	char text[SOURCE_LINE_MAX];
	uint32_t place;

	(void)state;
	for (uint32_t i = 0; i < 20000; i++)
		source_text_ask(s, i, getpid(), clock_wall_ns() + NS_PER_S, file, 1);
	(void)source_text_next(s, &place, text);
	source_text_stop(s); /* with most of them unanswered */
	source_text_stop(NULL);
	source_text_ask(NULL, 1, 1, 1, file, 1);
	assert_false(source_text_next(NULL, &place, text));
}

/* Asks for a line and waits for its text; by then the file was looked through. */
static void wait_for(struct source_text *s, const char *path, int line)
{
	int64_t until = clock_mono_ns() + 30 * NS_PER_S;
	char text[SOURCE_LINE_MAX];
	uint32_t place;

	source_text_ask(s, 1, getpid(), clock_wall_ns() + 60 * NS_PER_S, path, line);
	while (!source_text_next(s, &place, text)) {
		assert_true(clock_mono_ns() < until);
		usleep(1000);
	}
}

/* Lines that keep something: told once, and of the program's own files. */
static void lines_that_keep(void **state)
{
	static const char text[] = "kept = []\nfor x in y:\n    kept.append(f(x))\n";
	char own[128], packages[128], library[160], *of = NULL;
	struct source_text *s = source_text_start();
	struct keep k;
	FILE *f;

	(void)state;
	snprintf(own, sizeof(own), "%s/own.py", folder);
	snprintf(packages, sizeof(packages), "%s/site-packages", folder);
	snprintf(library, sizeof(library), "%s/own.py", packages);
	assert_int_equal(mkdir(packages, 0700), 0);
	for (int i = 0; i < 2; i++) {
		f = fopen(i ? own : library, "w");
		assert_non_null(f);
		fputs(text, f);
		assert_int_equal(fclose(f), 0);
	}
	wait_for(s, library, 1);
	assert_false(source_text_keep(s, &of, &k));
	wait_for(s, own, 1);
	assert_true(source_text_keep(s, &of, &k));
	assert_string_equal(of, own);
	assert_int_equal(k.line, 3);
	assert_string_equal(k.text, "kept.append(f(x))");
	free(of);
	assert_false(source_text_keep(s, &of, &k));
	wait_for(s, own, 2);
	assert_false(source_text_keep(s, &of, &k));
	assert_false(source_text_keep(NULL, &of, &k));
	source_text_stop(s);
	unlink(own);
	unlink(library);
	rmdir(packages);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_right_line),  cmocka_unit_test(none_where_there_is_none),
		cmocka_unit_test(changed_since),   cmocka_unit_test(many_questions),
		cmocka_unit_test(lines_that_keep),
	};

	return cmocka_run_group_tests(tests, make_files, drop_files);
}
