/* SPDX-License-Identifier: MIT */
#include "../unit.h"
#include "base/clock.h"
#include "mark/ring.h"
#include "place.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>

struct both {
	struct place place;
	struct ring *w;
	struct ring_reader *r;
};

static int begin(void **state)
{
	struct both *b = calloc(1, sizeof(*b));

	place_make(&b->place);
	b->w = ring_create(b->place.path);
	must(b->w);
	b->r = place_open(&b->place, getpid());
	must(b->r);
	*state = b;
	return 0;
}

static int finish(void **state)
{
	struct both *b = *state;

	ring_reader_close(b->r);
	ring_close(b->w);
	place_done(&b->place);
	free(b);
	return 0;
}

static void says_what_was_put(void **state)
{
	struct both *b = *state;
	uint64_t lost = 0;
	struct mark m;

	assert_int_equal(ring_next(b->r, &m, &lost), 0);
	assert_int_equal(ring_head(b->r)->pid, getpid());
	ring_put(b->w, MARK_STEP, 0, 7, NAN, 12345);
	ring_put(b->w, MARK_SCALAR, ring_name(b->w, "accuracy"), 0, -INFINITY, 12346);
	ring_put(b->w, MARK_PHASE_BEGIN, ring_name(b->w, "evaluate"), 0, 0, INT64_MAX);
	ring_put(b->w, MARK_DATA_WAIT, 0, UINT64_MAX, 0, -1);
	assert_int_equal(ring_next(b->r, &m, &lost), 1);
	assert_true(m.kind == MARK_STEP && m.number == 7 && isnan(m.value) && m.t_ns == 12345);
	assert_string_equal(m.name, "");
	assert_int_equal(ring_next(b->r, &m, &lost), 1);
	assert_true(m.kind == MARK_SCALAR && m.value == -INFINITY && m.t_ns == 12346);
	assert_string_equal(m.name, "accuracy");
	assert_int_equal(ring_next(b->r, &m, &lost), 1);
	assert_true(m.kind == MARK_PHASE_BEGIN && m.t_ns == INT64_MAX);
	assert_string_equal(m.name, "evaluate");
	assert_int_equal(ring_next(b->r, &m, &lost), 1);
	assert_true(m.kind == MARK_DATA_WAIT && m.number == UINT64_MAX && m.t_ns == -1);
	assert_int_equal(ring_next(b->r, &m, &lost), 0);
	assert_int_equal(lost, 0);
	assert_int_equal(ring_head(b->r)->ended, 0);
	ring_end(b->w);
	assert_int_equal(ring_next(b->r, &m, &lost), 0);
	assert_int_equal(ring_head(b->r)->ended, 1);
}

static void goes_round_without_loss(void **state)
{
	struct both *b = *state;
	uint64_t lost = 0, put = 0, got = 0;
	struct mark m;

	for (uint64_t size = 1; put < 5 * RING_SLOTS; size = size * 7 % 4093) {
		for (uint64_t i = 0; i < size; i++, put++)
			ring_put(b->w, MARK_STEP, 0, put, (double)put, (int64_t)put);
		for (; ring_next(b->r, &m, &lost); got++)
			assert_true(m.number == got && m.value == (double)got &&
				    m.t_ns == (int64_t)got);
		assert_int_equal(got, put);
	}
	assert_int_equal(lost, 0);
}

static void counts_what_was_overwritten(void **state)
{
	struct both *b = *state;
	uint64_t lost = 0, got = 0;
	struct mark m;

	for (uint64_t i = 0; i < 10; i++)
		ring_put(b->w, MARK_STEP, 0, i, 0, 1);
	for (; got < 3; got++) /* the rest of the ten is in the reader's hands from now on */
		assert_int_equal(ring_next(b->r, &m, &lost), 1);
	for (uint64_t i = 10; i < 2 * RING_SLOTS; i++)
		ring_put(b->w, MARK_STEP, 0, i, 0, 1);
	for (; ring_next(b->r, &m, &lost); got++)
		assert_int_equal(m.number, got < 10 ? got : RING_SLOTS + got - 10);
	assert_int_equal(got, RING_SLOTS + 10);
	assert_int_equal(lost, RING_SLOTS - 10);
}

/* A writer that has its number and sleeps for a lap: made here by turning the head back for it. */
static void overtaken_writer_keeps_off(void **state)
{
	struct both *b = *state;
	uint64_t lost = 0, none = 0, last = RING_SLOTS + 1;
	char name[256];
	struct mark m;
	int fd;

	for (uint64_t i = 0; i < last; i++)
		ring_put(b->w, MARK_STEP, 0, i, 0, 1);
	assert_int_equal(place_count(&b->place, ".ring", name, sizeof(name)), 1);
	fd = openat(b->place.fd, name, O_RDWR | O_CLOEXEC);
	assert_int_equal(pwrite(fd, &none, 8, offsetof(struct ring_header, head)), 8);
	ring_put(b->w, MARK_EPOCH, 0, 4711, 0, 1); /* number 0, whose slot has number 4096 */
	assert_int_equal(pwrite(fd, &last, 8, offsetof(struct ring_header, head)), 8);
	close(fd);
	for (uint64_t i = 1; i < last; i++) {
		assert_int_equal(ring_next(b->r, &m, &lost), 1);
		assert_true(m.kind == MARK_STEP && m.number == i);
	}
	assert_int_equal(ring_next(b->r, &m, &lost), 0);
	assert_int_equal(lost, 1);
}

/* --- many threads --- */

enum { THREADS = 8, EACH = 100000 };

struct job {
	struct ring *w;
	uint64_t id;
};

static uint64_t mixed(uint64_t x)
{
	return (x ^ x >> 7) * 0x2545f4914f6cdd1dull;
}

static void *hammer(void *arg)
{
	struct job *j = arg;
	char name[16];

	for (uint64_t i = 0; i < EACH; i++) {
		uint64_t number = j->id << 32 | i;

		snprintf(name, sizeof(name), "n%d", (int)(i % 10));
		ring_put(j->w, MARK_SCALAR, ring_name(j->w, name), number, (double)number,
			 (int64_t)mixed(number));
		if (j->id % 2 && i % 256 == 0) /* so that the reader comes along at times */
			sched_yield();
	}
	return NULL;
}

static void nothing_is_invented(void **state)
{
	struct both *b = *state;
	pthread_t thread[THREADS];
	struct job job[THREADS];
	int64_t last[THREADS];
	uint64_t got = 0, lost = 0;
	int64_t until = clock_mono_ns() + 100 * NS_PER_S;

	for (uint64_t i = 0; i < THREADS; i++) {
		job[i] = (struct job){ .w = b->w, .id = i };
		last[i] = -1;
		assert_int_equal(pthread_create(&thread[i], NULL, hammer, &job[i]), 0);
	}
	while (got + lost < THREADS * EACH && clock_mono_ns() < until) {
		uint64_t id;
		struct mark m;

		if (!ring_next(b->r, &m, &lost)) {
			sched_yield();
			continue;
		}
		id = m.number >> 32;
		assert_true(id < THREADS);
		assert_int_equal(m.kind, MARK_SCALAR);
		assert_true((int64_t)(uint32_t)m.number > last[id]);
		last[id] = (uint32_t)m.number;
		assert_true((uint32_t)m.number < EACH && m.value == (double)m.number);
		assert_true(m.t_ns == (int64_t)mixed(m.number));
		assert_true(m.name[0] == 'n' && m.name[1] - '0' == (int)((uint32_t)m.number % 10));
		got++;
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	print_message("%d put, %d read, %d lost\n", THREADS * EACH, (int)got, (int)lost);
	assert_int_equal(got + lost, THREADS * EACH);
	assert_true(got > 0);
	assert_int_equal(ring_head(b->r)->head, THREADS * EACH);
}

/* --- names --- */

static void names_are_kept(void **state)
{
	struct both *b = *state;
	char same[200], text[32];
	uint64_t lost = 0;
	uint32_t one;
	struct mark m;

	assert_int_equal(ring_name(b->w, NULL), 0);
	assert_int_equal(ring_name(b->w, ""), 0);
	snprintf(same, sizeof(same), "one");
	one = ring_name(b->w, same);
	snprintf(same, sizeof(same), "two"); /* the same memory, another name */
	assert_int_not_equal(ring_name(b->w, same), one);
	assert_int_equal(ring_name(b->w, "one"), one);
	assert_int_not_equal(ring_name(b->w, "on"), one);
	assert_int_not_equal(ring_name(b->w, "one "), one);
	for (int i = 0; i < 62; i++)
		same[i] = 'x';
	memcpy(same + 62, "\xc3\xa4 and more",
	       12); /* 64 bytes with the letter, which is left out */
	ring_put(b->w, MARK_SCALAR, ring_name(b->w, same), 0, 1, 1);
	assert_int_equal(ring_next(b->r, &m, &lost), 1);
	assert_int_equal(strlen(m.name), 62);
	for (int i = 0; i < 1100; i++) {
		uint32_t id, again;

		snprintf(text, sizeof(text), "scalar %d", i);
		id = ring_name(b->w, text);
		again = ring_name(b->w, text);
		assert_int_equal(id, again);
		if (i < 1000)
			assert_int_not_equal(id, 0);
		if (id)
			ring_put(b->w, MARK_SCALAR, id, (uint64_t)i, 1, 1);
	}
	for (int i = 0; ring_next(b->r, &m, &lost); i++) {
		snprintf(text, sizeof(text), "scalar %d", i);
		assert_string_equal(m.name, text);
		assert_int_equal(m.number, i);
	}
	assert_int_equal(lost, 0);
	assert_int_equal(ring_head(b->r)->named, RING_NAMES);
	assert_true(ring_head(b->r)->unnamed >= 100);
}

/* What an exec leaves, or a second copy of the library. */
static void one_that_is_there_is_taken_up(void **state)
{
	struct both *b = *state;
	uint32_t id = ring_name(b->w, "loss");
	struct ring *again;
	uint64_t lost = 0;
	struct mark m;

	ring_put(b->w, MARK_STEP, 0, 1, 0, 1);
	ring_end(b->w);
	again = ring_create(b->place.path);
	assert_non_null(again);
	assert_int_equal(ring_name(again, "loss"), id);
	assert_int_not_equal(ring_name(again, "lr"), id);
	ring_put(again, MARK_STEP, 0, 2, 0, 1);
	ring_put(b->w, MARK_STEP, 0, 3, 0, 1);
	for (uint64_t i = 1; i <= 3; i++) {
		assert_int_equal(ring_next(b->r, &m, &lost), 1);
		assert_int_equal(m.number, i);
	}
	assert_int_equal(ring_head(b->r)->ended, 0);
	assert_int_equal(place_count(&b->place, "", NULL, 0), 1);
	/* Whoever let go of it may still be writing. */
	ring_forget(again);
	ring_put(again, MARK_STEP, 0, 4, 0, 1);
	assert_int_equal(ring_next(b->r, &m, &lost), 0);
}

/* --- where there is none --- */

static void not_in_any_folder(void **state)
{
	char path[300], link[300];
	struct place p;

	(void)state;
	place_make(&p);
	snprintf(path, sizeof(path), "%s/none", p.path);
	assert_null(ring_create(path));
	assert_null(ring_create(""));
	assert_null(ring_create("/proc"));
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(link, sizeof(link), "%s/link", p.path);
	assert_int_equal(symlink(path, link), 0);
	assert_null(ring_create(link));
	static const mode_t others[] = { 0755, 0770, 0701, 0500 };
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		assert_int_equal(chmod(path, others[i]), 0);
		assert_null(ring_create(path));
	}
	assert_int_equal(chmod(path, 0700), 0);
	if (geteuid() == 0) {
		assert_int_equal(chown(path, 65534, 65534), 0);
		assert_null(ring_create(path));
	}
	assert_int_equal(rmdir(path), 0); /* it is empty */
	place_done(&p);
}

static void with_small_limit(struct place *p)
{
	struct rlimit limit = { .rlim_cur = RING_BYTES - 1, .rlim_max = RING_BYTES };

	must(!setrlimit(RLIMIT_FSIZE, &limit));
	must(!ring_create(p->path)); /* and no SIGXFSZ */
	must(place_count(p, "", NULL, 0) == 0);
	limit.rlim_cur = RING_BYTES;
	must(!setrlimit(RLIMIT_FSIZE, &limit));
	must(ring_create(p->path));
}

static void on_full_memory(struct place *p)
{
	struct ring *r;

	if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("none", p->path, "tmpfs", 0, "size=128k,mode=0700") < 0)
		_exit(77);
	must(!ring_create(p->path));
	must(place_count(p, "", NULL, 0) == 0);
	must(!mount("none", p->path, "tmpfs", MS_REMOUNT, "size=4m,mode=0700"));
	r = ring_create(p->path);
	must(r);
	for (int i = 0; i < 2 * RING_SLOTS; i++)
		ring_put(r, MARK_STEP, 0, 1, 0, 1);
}

static void no_room_means_no_ring(void **state)
{
	struct place p;
	int status;

	(void)state;
	place_make(&p);
	status = in_child(on_full_memory, &p);
	place_done(&p);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
		print_message("needs a mount of its own, which only root has\n");
		skip();
	}
	assert_int_equal(status, 0);
}

static void limit_means_no_ring(void **state)
{
	struct place p;

	(void)state;
	place_make(&p);
	assert_int_equal(in_child(with_small_limit, &p), 0);
	place_done(&p);
}

/* --- rank --- */

static const struct {
	const char *set[5];
	int rank, world;
} ranks[] = {
	{ { NULL }, -1, -1 },
	{ { "RANK=3", "WORLD_SIZE=8", "SLURM_PROCID=0", "SLURM_NTASKS=1" }, 3, 8 },
	{ { "SLURM_PROCID=1", "SLURM_NTASKS=2" }, 1, 2 },
	{ { "OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=1" }, 0, 1 },
	{ { "PMI_RANK=5" }, 5, -1 },
	{ { "RANK=", "PMI_RANK=5", "PMI_SIZE=6" }, 5, 6 },
	{ { "RANK=2x", "WORLD_SIZE=8" }, -1, -1 },
	{ { "RANK=-1", "WORLD_SIZE=8" }, -1, -1 },
	{ { "RANK=8", "WORLD_SIZE=8" }, 8, -1 },
	{ { "RANK=99999999999999999999", "WORLD_SIZE=8" }, -1, -1 },
};

static void knows_its_rank(struct place *p)
{
	struct ring_reader *r;

	for (size_t i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++) {
		clearenv();
		for (int k = 0; k < 5 && ranks[i].set[k]; k++)
			putenv((char *)(uintptr_t)ranks[i].set[k]);
		must(ring_create(p->path)); /* the first makes it, the others take it up */
		r = place_open(p, getpid());
		must(r);
		must(ring_head(r)->rank == ranks[i].rank && ring_head(r)->world == ranks[i].world);
		ring_reader_close(r);
	}
}

static void rank_and_world(void **state)
{
	struct place p;

	(void)state;
	place_make(&p);
	assert_int_equal(in_child(knows_its_rank, &p), 0);
	place_done(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(says_what_was_put, begin, finish),
		cmocka_unit_test_setup_teardown(goes_round_without_loss, begin, finish),
		cmocka_unit_test_setup_teardown(counts_what_was_overwritten, begin, finish),
		cmocka_unit_test_setup_teardown(overtaken_writer_keeps_off, begin, finish),
		cmocka_unit_test_setup_teardown(nothing_is_invented, begin, finish),
		cmocka_unit_test_setup_teardown(names_are_kept, begin, finish),
		cmocka_unit_test_setup_teardown(one_that_is_there_is_taken_up, begin, finish),
		cmocka_unit_test(not_in_any_folder),
		cmocka_unit_test(no_room_means_no_ring),
		cmocka_unit_test(limit_means_no_ring),
		cmocka_unit_test(rank_and_world),
	};

	return cmocka_run_group_tests_name("ring", tests, NULL, NULL);
}
