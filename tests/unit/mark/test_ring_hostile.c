/* SPDX-License-Identifier: MIT
 *
 * Rings that nobody wrote with ring_put(): the program that is watched may put anything there, at any moment.
 */
#include "../unit.h"
#include "mark/ring.h"
#include "place.h"

#include <sys/mman.h>
#include <time.h>

enum { SLOTS_AT = RING_HEADER + RING_NAMES * RING_NAME_BYTES };

struct forged {
	int fd; /* the file, to write to it while it is read */
	struct ring_reader *r;
};

static const struct ring_header sound = {
	.magic = RING_MAGIC,
	.version = RING_VERSION,
	.slots = RING_SLOTS,
	.names = RING_NAMES,
	.bytes = RING_BYTES,
	.pid = 4242,
	.rank = 1,
	.world = 2,
};

static void overwrite(int fd, const void *p, size_t n, off_t at)
{
	assert_int_equal(pwrite(fd, p, n, at), n);
}

static int open_copy(int fd, struct ring_reader **ret)
{
	return ring_open_fd(ret, dup(fd));
}

static int begin(void **state)
{
	struct forged *f = calloc(1, sizeof(*f));

	f->fd = memfd_create("ring", MFD_CLOEXEC);
	must(f->fd >= 0 && ftruncate(f->fd, RING_BYTES) == 0);
	overwrite(f->fd, &sound, sizeof(sound), 0);
	must(open_copy(f->fd, &f->r) == 0);
	*state = f;
	return 0;
}

static int finish(void **state)
{
	struct forged *f = *state;

	ring_reader_close(f->r);
	close(f->fd);
	free(f);
	return 0;
}

static void set_head(int fd, uint64_t head)
{
	overwrite(fd, &head, sizeof(head), offsetof(struct ring_header, head));
}

static void set_slot(int fd, uint64_t n, struct ring_slot s, int finished)
{
	s.turn = 2 * n + (finished ? 2 : 1);
	s.check = ring_check(n, &s);
	overwrite(fd, &s, sizeof(s), SLOTS_AT + (off_t)(n % RING_SLOTS) * 64);
}

static void other_files_are_refused(void **state)
{
	static const struct {
		size_t at;
		uint32_t value;
	} lies[] = {
		{ offsetof(struct ring_header, magic), 1 },
		{ offsetof(struct ring_header, version), 2 },
		{ offsetof(struct ring_header, slots), 8192 },
		{ offsetof(struct ring_header, names), UINT32_MAX },
		{ offsetof(struct ring_header, bytes), 64 },
	};
	struct ring_reader *r = NULL;
	struct forged *f = *state;

	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		overwrite(f->fd, &sound, sizeof(sound), 0);
		overwrite(f->fd, &lies[i].value, 4, (off_t)lies[i].at);
		assert_int_equal(open_copy(f->fd, &r), -EINVAL);
	}
	overwrite(f->fd, &sound, sizeof(sound), 0);
	static const off_t sizes[] = { 0, 1, 64, RING_BYTES - 1, RING_BYTES + 1 };
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		assert_int_equal(ftruncate(f->fd, sizes[i]), 0);
		assert_int_equal(open_copy(f->fd, &r), -EINVAL);
	}
	assert_null(r);
}

static void other_things_are_refused(void **state)
{
	struct ring_reader *r = NULL;
	struct place p;

	(void)state;
	place_make(&p);
	assert_int_equal(mkfifoat(p.fd, "1-1.ring", 0600), 0);
	assert_int_equal(ring_open(&r, p.fd, "1-1.ring"), -EINVAL); /* and does not wait */
	assert_int_equal(mkdirat(p.fd, "2-2.ring", 0700), 0);
	assert_int_equal(ring_open(&r, p.fd, "2-2.ring"), -EINVAL);
	assert_int_equal(symlinkat("/dev/zero", p.fd, "3-3.ring"), 0);
	assert_int_equal(ring_open(&r, p.fd, "3-3.ring"), -ELOOP);
	assert_int_equal(ring_open(&r, p.fd, "4-4.ring"), -ENOENT);
	assert_null(r);
	place_done(&p);
}

static void cut_while_it_is_read(void **state)
{
	struct forged *f = *state;
	uint64_t lost = 0;
	struct mark m;

	for (uint64_t n = 0; n < 200; n++)
		set_slot(f->fd, n, (struct ring_slot){ .kind = MARK_STEP, .number = n }, 1);
	set_head(f->fd, 200);
	assert_int_equal(ring_next(f->r, &m, &lost), 1);
	assert_int_equal(ftruncate(f->fd, SLOTS_AT), 0);
	for (int i = 0; i < 300; i++) /* those of the batch, then none; no SIGBUS */
		if (!ring_next(f->r, &m, &lost))
			break;
	assert_int_equal(ring_next(f->r, &m, &lost), 0);
	assert_int_equal(ftruncate(f->fd, 0), 0);
	assert_int_equal(ring_next(f->r, &m, &lost), 0);
	assert_int_equal(lost, 0);
}

static void heads_that_jump(void **state)
{
	static const uint64_t heads[] = { 1ull << 62, UINT64_MAX, (1ull << 63) - 1, 0 };
	struct forged *f = *state;
	uint64_t lost = 0;
	struct mark m;

	set_slot(f->fd, 0, (struct ring_slot){ .kind = MARK_STEP }, 1);
	set_head(f->fd, 1);
	assert_int_equal(ring_next(f->r, &m, &lost), 1);
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		set_head(f->fd, heads[i]);
		assert_int_equal(ring_next(f->r, &m, &lost), 0);
	}
	assert_int_equal(lost, 0);
	/* A head alone makes no marks. */
	set_head(f->fd, 100000);
	assert_int_equal(ring_next(f->r, &m, &lost), 0);
	assert_int_equal(lost, 100000 - RING_SLOTS - 1);
}

static void marks_that_are_none(void **state)
{
	static const struct ring_slot bad[] = {
		{ .kind = MARK_NONE },
		{ .kind = MARK_KINDS },
		{ .kind = UINT32_MAX },
		{ .kind = MARK_SCALAR },
		{ .kind = MARK_SCALAR, .name = 5 }, /* not there */
		{ .kind = MARK_SCALAR, .name = RING_NAMES + 1 },
		{ .kind = MARK_SOURCE, .name = UINT32_MAX },
	};
	enum { BAD = sizeof(bad) / sizeof(bad[0]) };
	struct forged *f = *state;
	char name[RING_NAME_BYTES];
	uint64_t lost = 0;
	struct mark m;

	memset(name, 'n', sizeof(name)); /* without end */
	overwrite(f->fd, name, sizeof(name), RING_HEADER + 63 * RING_NAME_BYTES);
	for (uint64_t n = 0; n < BAD; n++)
		set_slot(f->fd, n, bad[n], 1);
	set_slot(f->fd, BAD, (struct ring_slot){ .kind = MARK_SCALAR, .name = 64 }, 1);
	set_head(f->fd, BAD + 1);
	assert_int_equal(ring_next(f->r, &m, &lost), 1);
	assert_int_equal(strlen(m.name), RING_NAME_BYTES - 1);
	assert_int_equal(lost, BAD);
	memset(name, 'x', sizeof(name)); /* names do not change once they were given out */
	overwrite(f->fd, name, sizeof(name), RING_HEADER + 63 * RING_NAME_BYTES);
	assert_int_equal(m.name[0], 'n');
}

static void mixed_marks_are_found_out(void **state)
{
	struct forged *f = *state;
	struct ring_slot s = { .kind = MARK_STEP, .number = 5, .value = 1.5 };
	uint64_t lost = 0, other = 6;
	struct mark m;

	set_slot(f->fd, 0, s, 1);
	set_slot(f->fd, 1, s, 1);
	overwrite(f->fd, &other, 8, SLOTS_AT + 64 + (off_t)offsetof(struct ring_slot, number));
	set_slot(f->fd, 2, s, 1);
	set_head(f->fd, 3);
	assert_int_equal(ring_next(f->r, &m, &lost), 1);
	assert_int_equal(lost, 0);
	assert_int_equal(ring_next(f->r, &m, &lost), 1);
	assert_int_equal(lost, 1);
	assert_int_equal(ring_next(f->r, &m, &lost), 0);
}

static void unfinished_ones_are_waited_for(void **state)
{
	struct forged *f = *state;
	struct ring_slot s = { .kind = MARK_STEP, .number = 5 };
	uint64_t lost = 0;
	uint32_t ended = 1;
	struct mark m;

	set_slot(f->fd, 0, s, 0);
	set_slot(f->fd, 1, s, 1);
	set_head(f->fd, 3); /* the third has been given out and not been begun */
	for (int i = 0; i < 3; i++)
		assert_int_equal(ring_next(f->r, &m, &lost), 0);
	set_slot(f->fd, 0, s, 1);
	assert_int_equal(ring_next(f->r, &m, &lost), 1);
	assert_int_equal(ring_next(f->r, &m, &lost), 1);
	assert_int_equal(ring_next(f->r, &m, &lost), 0);
	assert_int_equal(lost, 0);
	/* Its thread is dead: others come through after a while. */
	set_slot(f->fd, 3, s, 1);
	set_head(f->fd, 4);
	assert_int_equal(ring_next(f->r, &m, &lost), 0);
	nanosleep(&(struct timespec){ .tv_sec = 1, .tv_nsec = 50000000 }, NULL);
	assert_int_equal(ring_next(f->r, &m, &lost), 1);
	assert_int_equal(lost, 1);
	/* The process has ended: at once. */
	set_slot(f->fd, 5, s, 1);
	set_head(f->fd, 6);
	assert_int_equal(ring_next(f->r, &m, &lost), 0);
	overwrite(f->fd, &ended, 4, offsetof(struct ring_header, ended));
	assert_int_equal(ring_next(f->r, &m, &lost), 1);
	assert_int_equal(lost, 2);
}

static void ranks_are_checked(void **state)
{
	static const struct {
		int32_t rank, world, want_rank, want_world;
	} rows[] = {
		{ 0, 1, 0, 1 },
		{ -7, 4, -1, -1 },
		{ 4, 4, 4, -1 },
		{ 3, INT32_MIN, 3, -1 },
	};
	struct forged *f = *state;
	uint64_t lost = 0;
	struct mark m;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		overwrite(f->fd, &rows[i].rank, 4, offsetof(struct ring_header, rank));
		overwrite(f->fd, &rows[i].world, 4, offsetof(struct ring_header, world));
		assert_int_equal(ring_next(f->r, &m, &lost), 0);
		assert_int_equal(ring_head(f->r)->rank, rows[i].want_rank);
		assert_int_equal(ring_head(f->r)->world, rows[i].want_world);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(other_files_are_refused, begin, finish),
		cmocka_unit_test(other_things_are_refused),
		cmocka_unit_test_setup_teardown(cut_while_it_is_read, begin, finish),
		cmocka_unit_test_setup_teardown(heads_that_jump, begin, finish),
		cmocka_unit_test_setup_teardown(marks_that_are_none, begin, finish),
		cmocka_unit_test_setup_teardown(mixed_marks_are_found_out, begin, finish),
		cmocka_unit_test_setup_teardown(unfinished_ones_are_waited_for, begin, finish),
		cmocka_unit_test_setup_teardown(ranks_are_checked, begin, finish),
	};

	return cmocka_run_group_tests_name("ring_hostile", tests, NULL, NULL);
}
