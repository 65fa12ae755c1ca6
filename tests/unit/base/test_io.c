/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "base/auto.h"
#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

struct place {
	char path[64];
	int root;
};

static int set_up(void **state)
{
	static struct place place;
	const char *tmp = getenv("TMPDIR");

	snprintf(place.path, sizeof(place.path), "%.40s/spotter-io-XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(place.path))
		return -1;
	place.root = open(place.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*state = &place;
	return place.root < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
	struct place *p = *state;
	struct io_dir d;
	const char *name;

	io_dir_begin(&d, p->root);
	while ((name = io_dir_next(&d)))
		if (unlinkat(p->root, name, 0) < 0)
			unlinkat(p->root, name, AT_REMOVEDIR);
	io_dir_close(&d);
	return rmdir(p->path);
}

static void put_file(const struct place *p, const char *name, const void *data, size_t n)
{
	auto_close int fd = openat(p->root, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(io_write_all(fd, data, n), 0);
}

static void put_text(const struct place *p, const char *name, const char *text)
{
	put_file(p, name, text, strlen(text));
}

static void small_files(void **state)
{
	const struct place *p = *state;
	char text[16];

	put_text(p, "a", "hello\n");
	assert_int_equal(io_read(p->root, "a", text, sizeof(text)), 6);
	assert_string_equal(text, "hello\n");
	assert_int_equal(io_read(p->root, "a", text, 4), 3);
	assert_string_equal(text, "hel");
	put_text(p, "a", "");
	assert_int_equal(io_read(p->root, "a", text, sizeof(text)), 0);
	assert_string_equal(text, "");
	assert_int_equal(io_read(p->root, "none", text, sizeof(text)), -ENOENT);
	assert_int_equal(io_read(p->root, ".", text, sizeof(text)), -EISDIR);
	assert_int_equal(io_pread(-1, text, sizeof(text)), -EBADF);
}

/* /proc hands a long file out in pieces of a page: all of it must come, each time from the start. */
static void long_proc_files_come_whole(void **state)
{
	auto_close int fd = io_open(AT_FDCWD, "/proc/self/smaps");
	static char whole[1 << 20], again[1 << 20];
	ssize_t n;

	(void)state;
	assert_true(fd >= 0);
	n = io_pread(fd, whole, sizeof(whole));
	assert_true(n > 8192);
	assert_non_null(strstr(whole, "[stack]"));
	assert_true(io_pread(fd, again, sizeof(again)) > 8192);
	assert_memory_equal(whole, again, 60);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
}

static void slurp_to_the_limit(void **state)
{
	const struct place *p = *state;
	static const size_t sizes[] = { 0, 1, 10, 4094, 4095, 4096, 4097, 100000 };
	static char data[100000];

	memset(data, 'd', sizeof(data));
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		size_t n = 7, size = sizes[i];
		int r = 7;
		auto_free char *got = NULL, *cut = NULL;

		put_file(p, "s", data, size);
		got = io_slurp(p->root, "s", size, &n, &r);
		assert_non_null(got);
		assert_int_equal(r, 0);
		assert_int_equal(n, size);
		assert_memory_equal(got, data, size);
		assert_int_equal(got[n], 0);
		if (!size)
			continue;
		cut = io_slurp(p->root, "s", size - 1, &n, &r);
		assert_null(cut);
		assert_int_equal(r, -EFBIG);
	}
}

static void slurp_fails(void **state)
{
	const struct place *p = *state;
	size_t n = 7;
	int r = 0;

	assert_null(io_slurp(p->root, "none", 100, &n, &r));
	assert_int_equal(r, -ENOENT);
	assert_null(io_slurp(p->root, ".", 100, &n, &r));
	assert_int_equal(r, -EISDIR);
	assert_int_equal(n, 7);
}

static void one_number(void **state)
{
	static const struct {
		const char *text;
		int r;
		uint64_t want;
	} rows[] = {
		{ "42\n", 0, 42 },
		{ "18446744073709551615\n", 0, UINT64_MAX },
		{ "18446744073709551616\n", -EINVAL, 7 },
		{ "max\n", -ERANGE, 7 },
		{ "-1\n", -EINVAL, 7 },
		{ "\n", -EINVAL, 7 },
		{ "", -EINVAL, 7 },
	};
	const struct place *p = *state;
	uint64_t v;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		v = 7;
		put_text(p, "n", rows[i].text);
		assert_int_equal(io_read_u64(p->root, "n", &v), rows[i].r);
		assert_true(v == rows[i].want);
	}
	assert_int_equal(io_read_u64(p->root, "none", &v), -ENOENT);
}

static void links(void **state)
{
	const struct place *p = *state;
	char target[16];

	assert_int_equal(symlinkat("target/of", p->root, "l"), 0);
	assert_int_equal(io_readlink(p->root, "l", target, sizeof(target)), 9);
	assert_string_equal(target, "target/of");
	assert_int_equal(io_readlink(p->root, "l", target, 4), 3);
	assert_string_equal(target, "tar");
	assert_int_equal(io_readlink(p->root, "none", target, sizeof(target)), -ENOENT);
}

/* More entries than one getdents64 gives; and again on the kept descriptor. */
static void directories(void **state)
{
	const struct place *p = *state;
	struct io_dir d;
	char name[160];
	int64_t sum, v;
	const char *next;

	for (int i = 1; i <= 300; i++) {
		snprintf(name, sizeof(name), "%d", i);
		put_text(p, name, "");
		snprintf(name, sizeof(name), "%0100dx", i);
		put_text(p, name, "");
	}
	put_text(p, "007", "");
	put_text(p, "-5", "");
	put_text(p, "0", "");
	put_text(p, "12345678901", "");
	assert_int_equal(io_dir_open(&d, p->root, "."), 0);
	for (int round = 0; round < 2; round++) {
		int n = 0;

		for (sum = 0; (v = io_dir_next_number(&d)); n++)
			sum += v;
		assert_int_equal(n, 300);
		assert_int_equal(sum, 300 * 301 / 2);
		io_dir_begin(&d, d.fd);
	}
	for (v = 0; (next = io_dir_next(&d)); v++)
		assert_true(strcmp(next, ".") != 0 && strcmp(next, "..") != 0);
	assert_true(v >= 604);
	assert_null(io_dir_next(&d));
	io_dir_close(&d);
	io_dir_close(&d);
	assert_int_equal(io_dir_open(&d, p->root, "none"), -ENOENT);
	assert_int_equal(io_dir_open(&d, p->root, "0"), -ENOTDIR);
}

struct drain {
	int fd;
	size_t n;
};

static void *drain(void *arg)
{
	struct drain *d = arg;
	char some[777];
	ssize_t got;

	while ((got = read(d->fd, some, sizeof(some))) > 0)
		d->n += (size_t)got;
	return NULL;
}

static void writes_all_of_it(void **state)
{
	static char data[300000];
	struct drain d = { 0 };
	pthread_t thread;
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	d.fd = ends[0];
	assert_int_equal(pthread_create(&thread, NULL, drain, &d), 0);
	assert_int_equal(io_write_all(ends[1], data, sizeof(data)), 0);
	close(ends[1]);
	pthread_join(thread, NULL);
	close(ends[0]);
	assert_int_equal(d.n, sizeof(data));
	assert_int_equal(io_write_all(-1, data, 1), -EBADF);
	assert_int_equal(io_write_all(-1, data, 0), 0);
}

static void full_disk_is_an_error(void **state)
{
	auto_close int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);

	(void)state;
	if (fd < 0)
		skip();
	assert_int_equal(io_write_all(fd, "x", 1), -ENOSPC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(small_files, set_up, tear_down),
		cmocka_unit_test(long_proc_files_come_whole),
		cmocka_unit_test_setup_teardown(slurp_to_the_limit, set_up, tear_down),
		cmocka_unit_test_setup_teardown(slurp_fails, set_up, tear_down),
		cmocka_unit_test_setup_teardown(one_number, set_up, tear_down),
		cmocka_unit_test_setup_teardown(links, set_up, tear_down),
		cmocka_unit_test_setup_teardown(directories, set_up, tear_down),
		cmocka_unit_test(writes_all_of_it),
		cmocka_unit_test(full_disk_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
