/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "base/err.h"
#include "base/io.h"
#include "cli/outfile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int enter(void **state)
{
	static char dir[] = "/tmp/spotter-outfile-XXXXXX";

	*state = mkdtemp(dir);
	return *state ? chdir(dir) : -1;
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_int_equal(io_write_all(fd, text, strlen(text)), 0);
	close(fd);
}

static void assert_file(const char *path, const char *text)
{
	char got[64];

	assert_true(io_read(AT_FDCWD, path, got, sizeof(got)) >= 0);
	assert_string_equal(got, text);
}

static int count_files(void)
{
	DIR *d = opendir(".");
	int n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n - 2;
}

static void appears_at_commit(void **state)
{
	struct outfile o;
	struct err e = { 0 };
	struct stat st;

	(void)state;
	umask(022);
	assert_int_equal(outfile_open(&o, "a", false, &e), 0);
	assert_int_equal(io_write_all(o.fd, "hello", 5), 0);
	assert_int_equal(access("a", F_OK), -1);
	assert_int_equal(outfile_commit(&o, &e), 0);
	outfile_done(&o);
	assert_file("a", "hello");
	assert_int_equal(stat("a", &st), 0);
	assert_int_equal(st.st_mode & 0777, 0644);
	assert_int_equal(count_files(), 1);
	unlink("a");
}

static void given_up_leaves_nothing(void **state)
{
	struct outfile o;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(outfile_open(&o, "./a", false, &e), 0);
	assert_int_equal(io_write_all(o.fd, "hello", 5), 0);
	outfile_done(&o);
	assert_int_equal(count_files(), 0);
}

static void refuses_what_is_there(void **state)
{
	struct outfile o;
	struct err e = { 0 };

	(void)state;
	write_file("a", "old");
	assert_int_equal(outfile_open(&o, "a", false, &e), -EEXIST);
	assert_non_null(strstr(e.hint, "--force"));
	outfile_done(&o);
	assert_file("a", "old");
	e = (struct err){ 0 };
	assert_int_equal(outfile_open(&o, "a", true, &e), 0);
	assert_int_equal(io_write_all(o.fd, "new", 3), 0);
	assert_file("a", "old");
	assert_int_equal(outfile_commit(&o, &e), 0);
	outfile_done(&o);
	assert_file("a", "new");
	assert_int_equal(count_files(), 1);
	unlink("a");
}

/* One that appears while the export runs is not overwritten either. */
static void refuses_a_late_comer(void **state)
{
	struct outfile o;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(outfile_open(&o, "a", false, &e), 0);
	write_file("a", "theirs");
	assert_int_equal(outfile_commit(&o, &e), -EEXIST);
	outfile_done(&o);
	assert_file("a", "theirs");
	assert_int_equal(count_files(), 1);
	unlink("a");
}

static void places_that_cannot_be(void **state)
{
	static const struct {
		const char *path;
		int code;
	} rows[] = { { "", -EINVAL }, { ".", -EISDIR }, { "no/such/folder/a", -ENOENT } };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct outfile o;
		struct err e = { 0 };

		assert_int_equal(outfile_open(&o, rows[i].path, true, &e), rows[i].code);
		assert_true(e.text[0]);
		outfile_done(&o);
	}
}

static void devices_are_written_in_place(void **state)
{
	struct outfile o;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(outfile_open(&o, "/dev/null", false, &e), 0);
	assert_int_equal(io_write_all(o.fd, "x", 1), 0);
	assert_int_equal(outfile_commit(&o, &e), 0);
	outfile_done(&o);
}

static int leave(void **state)
{
	return chdir("/") == 0 ? rmdir(*state) : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(appears_at_commit),
		cmocka_unit_test(given_up_leaves_nothing),
		cmocka_unit_test(refuses_what_is_there),
		cmocka_unit_test(refuses_a_late_comer),
		cmocka_unit_test(places_that_cannot_be),
		cmocka_unit_test(devices_are_written_in_place),
	};

	return cmocka_run_group_tests(tests, enter, leave);
}
