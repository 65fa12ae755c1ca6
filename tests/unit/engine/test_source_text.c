/* SPDX-License-Identifier: MIT
 *
 * Source lines: the right one, trimmed; none of a file that changed, is no file, or never answers.
 */
#include "../unit.h"

#include "base/clock.h"
#include "engine/source_text.h"
#include "explain/keeps/keeps.h"

#include <grp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[64], file[96], fifo[96];

/* What a process of another user's meets; mode 0: a link to `text`, in the folder of the test if that begins with a /. */
enum { USER = 65534 };
static const struct {
	const char *name;
	mode_t mode;
} folders[] = { { "closed", 0700 }, { "jail", 0755 }, { "jail/app", 0755 } };
static const struct {
	const char *name;
	mode_t mode;
	const char *text;
} files[] = {
	{ "secret.py", 0600, "secret = 1\n" },
	{ "own.py", 0644, "own = 1\n" },
	{ "notes", 0644, "no Python\n" },
	{ "closed/in.py", 0644, "closed = 1\n" },
	{ "jail/app/in.py", 0644, "jailed = 1\n" },
	{ "link.py", 0, "/secret.py" },
	{ "rel.py", 0, "secret.py" },
	{ "to_closed.py", 0, "/closed/in.py" },
	{ "notes.py", 0, "/notes" },
	{ "jail/app/out.py", 0, "../../own.py" },
};

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
static void wait_as(struct source_text *s, pid_t pid, int64_t started_ns, const char *path,
		    int line)
{
	int64_t until = clock_mono_ns() + 30 * NS_PER_S;
	char text[SOURCE_LINE_MAX];
	uint32_t place;

	source_text_ask(s, 1, pid, started_ns, path, line);
	while (!source_text_next(s, &place, text)) {
		assert_true(clock_mono_ns() < until);
		usleep(1000);
	}
}

static void wait_for(struct source_text *s, const char *path, int line)
{
	wait_as(s, getpid(), clock_wall_ns() + 60 * NS_PER_S, path, line);
}

static void write_file(const char *path, mode_t mode, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(path, mode), 0);
}

/* Lines that keep something: told once, and of the program's own files. */
static void lines_that_keep(void **state)
{
	static const char text[] = "kept = []\nfor x in y:\n    kept.append(f(x))\n";
	char own[128], packages[128], library[160], *of = NULL;
	struct source_text *s = source_text_start();
	struct source_note k;
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
	assert_false(source_text_note(s, &of, &k));
	wait_for(s, own, 1);
	assert_true(source_text_note(s, &of, &k));
	assert_string_equal(of, own);
	assert_int_equal(k.line, 3);
	assert_int_equal(k.kind, PLACE_KEEPS);
	assert_non_null(strstr(k.text, " kept.append(f(x))"));
	free(of);
	assert_false(source_text_note(s, &of, &k));
	wait_for(s, own, 2);
	assert_false(source_text_note(s, &of, &k));
	assert_false(source_text_note(NULL, &of, &k));
	source_text_stop(s);
	unlink(own);
	unlink(library);
	rmdir(packages);
}

/* Two containers each have a file of this name: both are looked through. */
static void the_same_name_twice(void **state)
{
	char own[128], *of = NULL;
	struct source_text *s = source_text_start();
	struct source_note k;

	(void)state;
	snprintf(own, sizeof(own), "%s/twice.py", folder);
	for (int i = 0; i < 2; i++) {
		char other[144];

		/* the first one is left under another name, so that its inode is not given anew */
		snprintf(other, sizeof(other), "%s.old", own);
		assert_true(i == 0 || rename(own, other) == 0);
		write_file(own, 0644,
			   i ? "b = []\nwhile f():\n    b.append(f(b))\n"
			     : "a = []\nfor x in y:\n    a.append(f(x))\n");
		/* started_ns: of another process */
		wait_as(s, getpid(), clock_wall_ns() + (60 + i) * NS_PER_S, own, 1);
		assert_true(source_text_note(s, &of, &k));
		assert_non_null(strstr(k.text, i ? "b.append(f(b))" : "a.append(f(x))"));
		free(of);
		assert_false(source_text_note(s, &of, &k));
		unlink(other);
	}
	source_text_stop(s);
	unlink(own);
}

/* A process of nobody's that waits in this folder; jail: which is its root. 0: there can be none here. */
static pid_t start_user(const char *cwd, const char *jail)
{
	int ready[2];
	char c = 0;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		close(ready[0]);
		if ((jail && chroot(jail) < 0) || chdir(cwd) < 0 || setgroups(0, NULL) < 0 ||
		    setresgid(USER, USER, USER) < 0 || setresuid(USER, USER, USER) < 0)
			_exit(1);
		/* behind them: to become another user forgets it */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)!write(ready[1], "r", 1);
		for (;;)
			pause();
	}
	close(ready[1]);
	if (read(ready[0], &c, 1) != 1) {
		waitpid(pid, NULL, 0);
		pid = 0;
	}
	close(ready[0]);
	return pid;
}

static void end_user(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Asks for the first line of each; the last one can be read. Answers come in order: nothing came of the others. */
static void expect_last(pid_t pid, const char *const *names, size_t n, const char *text)
{
	struct source_text *s = source_text_start();
	int64_t until = clock_mono_ns() + 30 * NS_PER_S;
	char got[SOURCE_LINE_MAX];
	uint32_t place = 0;

	for (size_t i = 0; i < n; i++)
		source_text_ask(s, (uint32_t)i + 1, pid, clock_wall_ns() + 60 * NS_PER_S, names[i],
				1);
	while (!source_text_next(s, &place, got)) {
		assert_true(clock_mono_ns() < until);
		usleep(1000);
	}
	assert_string_equal(got, text);
	assert_int_equal(place, n);
	source_text_stop(s);
}

static void make_tree(void)
{
	char path[160];

	assert_int_equal(chdir(folder), 0);
	assert_int_equal(chmod(folder, 0755), 0);
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		assert_int_equal(mkdir(folders[i].name, 0700), 0);
		assert_int_equal(chmod(folders[i].name, folders[i].mode), 0);
	}
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		if (files[i].mode) {
			write_file(files[i].name, files[i].mode, files[i].text);
		} else {
			snprintf(path, sizeof(path), "%s%s", files[i].text[0] == '/' ? folder : "",
				 files[i].text);
			assert_int_equal(symlink(path, files[i].name), 0);
		}
	}
}

static void drop_tree(void)
{
	for (size_t i = sizeof(files) / sizeof(files[0]); i--;)
		unlink(files[i].name);
	for (size_t i = sizeof(folders) / sizeof(folders[0]); i--;)
		assert_int_equal(rmdir(folders[i].name), 0);
	assert_int_equal(chdir("/"), 0);
}

/* root tells of a user's process only what that user can read, whatever the program calls its code. */
static void with_the_rights_of_the_user(void **state)
{
	char secret[96], link[96], hidden[96], closed[96], notes[96], own[96];
	const char *const names[] = { secret,   link,        hidden,         closed, notes,
				      "rel.py", "secret.py", "closed/in.py", own };
	const char *const roots[] = { notes, link };
	int dumpable = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
	pid_t pid;

	(void)state;
	if (geteuid() != 0)
		skip();
	snprintf(secret, sizeof(secret), "%s/secret.py", folder);
	snprintf(link, sizeof(link), "%s/link.py", folder);
	snprintf(hidden, sizeof(hidden), "%s/closed/in.py", folder);
	snprintf(closed, sizeof(closed), "%s/to_closed.py", folder);
	snprintf(notes, sizeof(notes), "%s/notes.py", folder);
	snprintf(own, sizeof(own), "%s/own.py", folder);
	make_tree();
	pid = start_user(folder, NULL);
	if (!pid) {
		drop_tree();
		skip();
	}
	expect_last(pid, names, sizeof(names) / sizeof(names[0]), "own = 1");
	expect_last(pid, &names[sizeof(names) / sizeof(names[0]) - 1], 1, "own = 1");
	/* of root's own process all is told, but for what is no Python source */
	expect_last(getpid(), roots, 2, "secret = 1");
	/* and who asked is who it was */
	assert_int_equal(setfsuid((uid_t)-1), 0);
	assert_int_equal(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), dumpable);
	end_user(pid);
	drop_tree();
}

/* In a chroot relative names and links lead nowhere outside of it, as absolute ones do not. */
static void inside_of_its_root(void **state)
{
	static const char *const names[] = { "../../own.py", "out.py", "/jail/app/in.py", "in.py" };
	static const char *const same[] = { "/app/in.py" };
	char jail[96];
	pid_t pid;

	(void)state;
	if (geteuid() != 0)
		skip();
	snprintf(jail, sizeof(jail), "%s/jail", folder);
	make_tree();
	pid = start_user("/app", jail);
	if (pid) {
		expect_last(pid, names, sizeof(names) / sizeof(names[0]), "jailed = 1");
		expect_last(pid, same, 1, "jailed = 1");
		end_user(pid);
	}
	drop_tree();
	if (!pid)
		skip();
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_right_line),
		cmocka_unit_test(none_where_there_is_none),
		cmocka_unit_test(changed_since),
		cmocka_unit_test(many_questions),
		cmocka_unit_test(lines_that_keep),
		cmocka_unit_test(the_same_name_twice),
		cmocka_unit_test(with_the_rights_of_the_user),
		cmocka_unit_test(inside_of_its_root),
	};

	return cmocka_run_group_tests(tests, make_files, drop_files);
}
