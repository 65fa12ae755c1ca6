/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "base/clock.h"
#include "engine/queue.h"

#include <pthread.h>

static void never_waits_when_full(void **state)
{
	static struct queue q;
	struct frame *taken[QUEUE_FRAMES];
	int64_t before;

	(void)state;
	assert_int_equal(queue_init(&q), 0);
	for (int i = 0; i < QUEUE_FRAMES; i++) {
		taken[i] = queue_take(&q);
		assert_non_null(taken[i]);
	}
	before = clock_mono_ns();
	assert_null(queue_take(&q));
	assert_true(clock_mono_ns() - before < 50 * NS_PER_MS);
	queue_return(&q, taken[3]);
	assert_ptr_equal(queue_take(&q), taken[3]);
	queue_done(&q);
}

static void keeps_order_and_drains_after_close(void **state)
{
	static struct queue q;

	(void)state;
	assert_int_equal(queue_init(&q), 0);
	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < 20; i++) {
			struct frame *f = queue_take(&q);

			frame_begin(f, round * 100 + i, 0);
			queue_push(&q, f);
		}
		for (int i = 0; i < 20; i++) {
			struct frame *f = queue_pop(&q, 0);

			assert_non_null(f);
			assert_int_equal(f->mono_ns, round * 100 + i);
			queue_return(&q, f);
		}
	}
	queue_push(&q, queue_take(&q));
	queue_close(&q);
	assert_false(queue_drained(&q));
	assert_non_null(queue_pop(&q, 0));
	assert_true(queue_drained(&q));
	assert_null(queue_pop(&q, NS_PER_S * 100));
	queue_done(&q);
}

enum { PASSES = 20000 };

static void *consumer(void *arg)
{
	struct queue *q = arg;
	int64_t seen = 0, last = -1;

	while (!queue_drained(q)) {
		struct frame *f = queue_pop(q, NS_PER_S);

		if (!f)
			continue;
		if (f->mono_ns <= last)
			return (void *)-1;
		last = f->mono_ns;
		seen++;
		queue_return(q, f);
	}
	return (void *)(intptr_t)seen;
}

static void two_threads_lose_nothing_but_what_was_counted(void **state)
{
	static struct queue q;
	pthread_t t;
	void *seen;
	int64_t pushed = 0;

	(void)state;
	assert_int_equal(queue_init(&q), 0);
	assert_int_equal(pthread_create(&t, NULL, consumer, &q), 0);
	for (int i = 0; i < PASSES; i++) {
		struct frame *f = queue_take(&q);

		if (!f)
			continue;
		frame_begin(f, i, 0);
		queue_push(&q, f);
		pushed++;
	}
	queue_close(&q);
	pthread_join(t, &seen);
	assert_int_equal((intptr_t)seen, pushed);
	queue_done(&q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(never_waits_when_full),
		cmocka_unit_test(keeps_order_and_drains_after_close),
		cmocka_unit_test(two_threads_lose_nothing_but_what_was_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
