/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "push/spool.h"
#include "push/spool_part.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BOUND = 1 << 20 };

struct world {
	char root[512], folder[600];
};

static int make_world(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	const char *tmp = getenv("TMPDIR");

	assert_non_null(w);
	snprintf(w->root, sizeof(w->root), "%.480s/push-XXXXXX", tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(w->root));
	snprintf(w->folder, sizeof(w->folder), "%s/a/b", w->root);
	*state = w;
	return 0;
}

static void remove_all(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *e;

	while (d && (e = readdir(d))) {
		char inner[2048];

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		snprintf(inner, sizeof(inner), "%s/%.255s", path, e->d_name);
		remove_all(inner);
	}
	if (d)
		closedir(d);
	if (rmdir(path) < 0)
		unlink(path);
}

static int end_world(void **state)
{
	struct world *w = *state;

	remove_all(w->root);
	free(w);
	return 0;
}

static struct spool *open_in(const char *folder)
{
	struct err e = { 0 };
	struct spool *q = NULL;

	if (spool_open(folder, BOUND, &q, &e) < 0)
		fail_msg("%s", e.text);
	return q;
}

static void put(struct spool *q, const char *text, uint32_t samples)
{
	assert_int_equal(spool_put(q, text, strlen(text), samples), 0);
}

static void expect(struct spool *q, const char *text, uint32_t samples)
{
	auto_done(buf) struct buf out = { 0 };
	uint32_t got = 0;

	assert_int_equal(spool_head(q, &out, &got), 0);
	assert_string_equal(buf_text(&out), text);
	assert_int_equal(got, samples);
	spool_pop(q);
}

static void expect_none(struct spool *q)
{
	auto_done(buf) struct buf out = { 0 };
	uint32_t got;

	assert_int_equal(spool_head(q, &out, &got), -ENOENT);
}

static struct spool_stats stats_of(const struct spool *q)
{
	struct spool_stats s;

	spool_stats(q, &s);
	return s;
}

/* The files with records in them, as "0000000000000001.queue"; how many. */
static unsigned files_in(const char *folder, char *first, size_t size)
{
	DIR *d = opendir(folder);
	struct dirent *e;
	unsigned n = 0;

	assert_non_null(d);
	while ((e = readdir(d))) {
		if (!strstr(e->d_name, ".queue"))
			continue;
		if (!n++ && first)
			snprintf(first, size, "%s/%.64s", folder, e->d_name);
	}
	closedir(d);
	return n;
}

static void in_order(void **state)
{
	struct world *w = *state;
	const char *const places[] = { w->folder, NULL };

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		struct spool *q = open_in(places[i]);

		expect_none(q);
		put(q, "one", 1);
		put(q, "two", 2);
		assert_int_equal(stats_of(q).records, 2);
		assert_int_equal(stats_of(q).samples, 3);
		expect(q, "one", 1);
		put(q, "three", 3);
		expect(q, "two", 2);
		expect(q, "three", 3);
		expect_none(q);
		assert_int_equal(stats_of(q).bytes, 0);
		put(q, "four", 4);
		expect(q, "four", 4);
		spool_close(q);
	}
	assert_int_equal(files_in(w->folder, NULL, 0), 0);
}

static void looked_at_is_not_gone(void **state)
{
	auto_done(buf) struct buf out = { 0 };
	struct spool *q = open_in(NULL);
	uint32_t samples;

	(void)state;
	put(q, "one", 1);
	assert_int_equal(spool_head(q, &out, &samples), 0);
	assert_int_equal(spool_head(q, &out, &samples), 0);
	expect(q, "one", 1);
	spool_pop(q); /* nothing was looked at */
	expect_none(q);
	spool_close(q);
}

static void survives(void **state)
{
	struct world *w = *state;
	struct spool *q = open_in(w->folder);
	struct stat st;

	put(q, "one", 1);
	put(q, "two", 2);
	put(q, "three", 3);
	expect(q, "one", 1);
	spool_close(q);
	assert_int_equal(stat(w->folder, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	q = open_in(w->folder);
	assert_int_equal(stats_of(q).samples, 5);
	expect(q, "two", 2);
	put(q, "four", 4);
	spool_close(q);
	q = open_in(w->folder);
	expect(q, "three", 3);
	expect(q, "four", 4);
	expect_none(q);
	assert_int_equal(stats_of(q).damaged, 0);
	spool_close(q);
	/* Numbers of files are never used twice: what is noted as sent can never be another's. */
	q = open_in(w->folder);
	put(q, "five", 5);
	spool_close(q);
	q = open_in(w->folder);
	expect(q, "five", 5);
	spool_close(q);
}

static void one_at_a_time(void **state)
{
	struct world *w = *state;
	struct spool *q = open_in(w->folder), *second = NULL;
	struct err e = { 0 };

	assert_int_equal(spool_open(w->folder, BOUND, &second, &e), -EBUSY);
	assert_non_null(strstr(e.text, "in use"));
	spool_close(q);
	spool_close(open_in(w->folder));
}

/* Records of 10 kB: the bound holds at every moment, the oldest go, and what is left is whole and in order. */
static void bounded(void **state)
{
	struct world *w = *state;
	const char *const places[] = { w->folder, NULL };
	static char text[10000];

	memset(text, 'x', sizeof(text) - 1);
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		struct spool *q = open_in(places[i]);
		auto_done(buf) struct buf out = { 0 };
		struct spool_stats s;
		uint32_t got, next;

		for (uint32_t k = 1; k <= 400; k++) {
			put(q, text, k);
			assert_true(stats_of(q).bytes <= BOUND);
		}
		s = stats_of(q);
		assert_int_equal(s.records + s.full_records, 400);
		assert_int_equal(s.samples + s.full_samples, 400 * 401 / 2);
		assert_true(s.records * 10000 > BOUND * 3 / 4);
		assert_int_equal(spool_head(q, &out, &next), 0);
		assert_int_equal(next, s.full_records + 1);
		for (; spool_head(q, &out, &got) == 0; next++) {
			assert_int_equal(got, next);
			spool_pop(q);
		}
		assert_int_equal(next, 401);
		spool_close(q);
	}
}

static void too_large(void **state)
{
	struct spool *q = open_in(NULL);
	char *large = calloc(1, SPOOL_RECORD_MAX + 1);

	(void)state;
	assert_non_null(large);
	assert_int_equal(spool_put(q, large, BOUND, 7), -EMSGSIZE);
	assert_int_equal(spool_put(q, large, 0, 1), -EMSGSIZE);
	assert_int_equal(stats_of(q).disk_samples, 8);
	expect_none(q);
	spool_close(q);
	free(large);
}

static void smaller_bound_later(void **state)
{
	struct world *w = *state;
	static char text[100000];
	struct spool *q = NULL;

	memset(text, 'x', sizeof(text) - 1);
	assert_int_equal(spool_open(w->folder, 16 << 20, &q, NULL), 0);
	for (uint32_t k = 0; k < 60; k++)
		put(q, text, 1);
	spool_close(q);
	q = open_in(w->folder);
	assert_true(stats_of(q).bytes <= BOUND);
	assert_int_equal(stats_of(q).samples + stats_of(q).full_samples, 60);
	spool_close(q);
}

/* Wherever a crash cut the file, what is whole in front of it is there, and new records go behind. */
static void torn(void **state)
{
	struct world *w = *state;
	char file[1024];

	for (off_t cut = 1; cut < 2 * (off_t)sizeof(struct spool_header) + 8; cut++) {
		struct spool *q = open_in(w->folder);
		struct stat st;

		put(q, "one", 1);
		put(q, "torn off", 2);
		spool_close(q);
		assert_int_equal(files_in(w->folder, file, sizeof(file)), 1);
		assert_int_equal(stat(file, &st), 0);
		assert_int_equal(truncate(file, st.st_size - cut), 0);
		q = open_in(w->folder);
		assert_int_equal(stats_of(q).damaged, cut != 24); /* 24: between two records */
		put(q, "three", 3);
		if (cut <= 24)
			expect(q, "one", 1);
		expect(q, "three", 3);
		expect_none(q);
		spool_close(q);
	}
}

static void flipped_bits(void **state)
{
	struct world *w = *state;
	char file[1024];

	for (off_t at = 0; at < 38; at++) { /* two records of 16 and 3 bytes */
		struct spool *q = open_in(w->folder);
		char byte;
		int fd;

		put(q, "one", 1);
		put(q, "two", 2);
		spool_close(q);
		assert_int_equal(files_in(w->folder, file, sizeof(file)), 1);
		fd = open(file, O_RDWR);
		assert_int_equal(pread(fd, &byte, 1, at), 1);
		byte ^= 0x10;
		assert_int_equal(pwrite(fd, &byte, 1, at), 1);
		close(fd);
		q = open_in(w->folder);
		if (at >= 19) /* in the second */
			expect(q, "one", 1);
		assert_int_equal(stats_of(q).damaged, 1);
		expect_none(q);
		spool_close(q);
	}
}

/* A file that changes under our feet: counted, and the queue goes on. */
static void lost_while_open(void **state)
{
	struct world *w = *state;
	struct spool *q = open_in(w->folder);
	char file[1024];

	put(q, "one", 1);
	put(q, "two", 2);
	assert_int_equal(files_in(w->folder, file, sizeof(file)), 1);
	assert_int_equal(truncate(file, 5), 0);
	expect_none(q);
	assert_int_equal(stats_of(q).disk_samples, 3);
	assert_int_equal(stats_of(q).damaged, 1);
	put(q, "three", 3);
	expect(q, "three", 3);
	spool_close(q);
}

static void write_file(const char *folder, const char *name, const void *p, size_t n)
{
	char path[1024];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, p, n), n);
	close(fd);
}

/* Whatever else stands in the folder: a link, a pipe, names that are nearly ours, a position out of the world. */
static void hostile_folder(void **state)
{
	struct world *w = *state;
	struct spool *q = open_in(w->folder);
	char path[1024], victim[1024];
	struct stat st;

	put(q, "one", 1);
	spool_close(q);
	snprintf(victim, sizeof(victim), "%s/victim", w->root);
	write_file(w->root, "victim", "not to be touched", 17);
	snprintf(path, sizeof(path), "%s/00000000000000aa.queue", w->folder);
	assert_int_equal(symlink(victim, path), 0);
	snprintf(path, sizeof(path), "%s/00000000000000ab.queue", w->folder);
	assert_int_equal(mkfifo(path, 0600), 0);
	snprintf(path, sizeof(path), "%s/00000000000000ac.queue", w->folder);
	assert_int_equal(mkdir(path, 0700), 0);
	write_file(w->folder, "00000000000000ad.queue", "junk", 4);
	write_file(w->folder, "ffffffffffffffff.queue", "junk", 4);
	write_file(w->folder, "0000000000000000.queue", "junk", 4);
	write_file(w->folder, "00000000000000AE.queue", "junk", 4);
	write_file(w->folder, "notes", "mine", 4);
	write_file(
	    w->folder, "position",
	    "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\0\0\0\0\0", 24);
	q = open_in(w->folder);
	expect(q, "one", 1);
	put(q, "two", 2);
	spool_close(q);
	q = open_in(w->folder);
	expect(q, "two", 2);
	expect_none(q);
	spool_close(q);
	assert_int_equal(stat(victim, &st), 0);
	assert_int_equal(st.st_size, 17);
	snprintf(path, sizeof(path), "%s/notes", w->folder);
	assert_int_equal(access(path, F_OK), 0);
}

static void many_files(void **state)
{
	struct world *w = *state;
	struct spool *q = open_in(w->folder);

	spool_close(q);
	for (unsigned i = 1; i <= 200; i++) {
		struct spool_header h = { .magic = SPOOL_MAGIC, .length = 1, .samples = i };
		char name[64], bytes[sizeof(h) + 1];

		h.crc = spool_crc(&h, "x");
		memcpy(bytes, &h, sizeof(h));
		bytes[sizeof(h)] = 'x';
		snprintf(name, sizeof(name), "%016x.queue", i);
		write_file(w->folder, name, bytes, sizeof(bytes));
	}
	q = open_in(w->folder);
	assert_int_equal(stats_of(q).records, SPOOL_SEGMENTS_MAX - 1);
	for (unsigned i = 1; i <= 40; i++)
		put(q, "y", 1000);
	expect(q, "x", 200 - (SPOOL_SEGMENTS_MAX - 1) + 1);
	spool_close(q);
}

static void not_ours(void **state)
{
	struct world *w = *state;
	struct err e = { 0 };
	struct spool *q = NULL;
	char path[1024];

	write_file(w->root, "file", "x", 1);
	snprintf(path, sizeof(path), "%s/file", w->root);
	assert_int_equal(spool_open(path, BOUND, &q, &e), -ENOTDIR);
	assert_non_null(strstr(e.text, "cannot use the queue folder"));
	snprintf(path, sizeof(path), "%s/x/y/z", w->root);
	assert_int_equal(spool_open(path, BOUND, &q, NULL), -ENOENT);
	if (geteuid() != 0) {
		e = (struct err){ 0 };
		assert_int_equal(spool_open("/", BOUND, &q, &e), -EPERM);
	}
}

/* /dev/full's file system: each write fails, and nothing but a count comes of it. */
static void full_disk(void **state)
{
	struct spool *q = open_in(NULL);
	int full = open("/dev/full", O_RDWR | O_CLOEXEC);

	(void)state;
	assert_true(full >= 0);
	put(q, "one", 1);
	expect(q, "one", 1);
	put(q, "two", 2);
	assert_true(dup2(full, q->segments[0].fd) >= 0);
	close(full);
	assert_int_equal(spool_put(q, "three", 5, 3), -ENOSPC);
	assert_int_equal(stats_of(q).disk_samples, 3);
	assert_int_equal(stats_of(q).error, -ENOSPC);
	assert_int_equal(stats_of(q).samples, 2);
	spool_close(q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(in_order, make_world, end_world),
		cmocka_unit_test(looked_at_is_not_gone),
		cmocka_unit_test_setup_teardown(survives, make_world, end_world),
		cmocka_unit_test_setup_teardown(one_at_a_time, make_world, end_world),
		cmocka_unit_test_setup_teardown(bounded, make_world, end_world),
		cmocka_unit_test(too_large),
		cmocka_unit_test_setup_teardown(smaller_bound_later, make_world, end_world),
		cmocka_unit_test_setup_teardown(torn, make_world, end_world),
		cmocka_unit_test_setup_teardown(flipped_bits, make_world, end_world),
		cmocka_unit_test_setup_teardown(lost_while_open, make_world, end_world),
		cmocka_unit_test_setup_teardown(hostile_folder, make_world, end_world),
		cmocka_unit_test_setup_teardown(many_files, make_world, end_world),
		cmocka_unit_test_setup_teardown(not_ours, make_world, end_world),
		cmocka_unit_test(full_disk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
