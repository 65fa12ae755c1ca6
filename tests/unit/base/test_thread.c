/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "base/thread.h"

#include <errno.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>

struct seen {
	sigset_t mask;
	size_t stack;
	int detached;
	sem_t done;
};

static void *look_at_self(void *arg)
{
	struct seen *s = arg;
	pthread_attr_t attr;

	(void)pthread_sigmask(SIG_SETMASK, NULL, &s->mask);
	if (pthread_getattr_np(pthread_self(), &attr) == 0) {
		(void)pthread_attr_getstacksize(&attr, &s->stack);
		(void)pthread_attr_getdetachstate(&attr, &s->detached);
		(void)pthread_attr_destroy(&attr);
	}
	sem_post(&s->done);
	return arg;
}

static bool blocks_what_is_sent(const sigset_t *set)
{
	return sigismember(set, SIGTERM) == 1 && sigismember(set, SIGINT) == 1 &&
	       sigismember(set, SIGCHLD) == 1 && sigismember(set, SIGALRM) == 1;
}

static void a_thread_has_no_signals(void **state)
{
	struct seen s = { 0 };
	sigset_t before, after;
	pthread_t thread;
	void *got = NULL;

	(void)state;
	sem_init(&s.done, 0, 0);
	(void)pthread_sigmask(SIG_SETMASK, NULL, &before);
	assert_int_equal(thread_start(&thread, 256 << 10, look_at_self, &s), 0);
	(void)pthread_sigmask(SIG_SETMASK, NULL, &after);
	assert_int_equal(pthread_join(thread, &got), 0);
	assert_ptr_equal(got, &s);
	assert_true(blocks_what_is_sent(&s.mask));
	assert_int_equal(s.detached, PTHREAD_CREATE_JOINABLE);
	assert_true(s.stack >= 256 << 10 && s.stack < 2 << 20);
	/* The starter's own mask is what it was. */
	for (int i = 1; i < SIGRTMIN; i++)
		assert_int_equal(sigismember(&before, i), sigismember(&after, i));
	sem_destroy(&s.done);
}

static void nobody_waits_for_a_detached_one(void **state)
{
	struct seen s = { 0 };

	(void)state;
	sem_init(&s.done, 0, 0);
	assert_int_equal(thread_start(NULL, 0, look_at_self, &s), 0);
	while (sem_wait(&s.done) < 0)
		assert_int_equal(errno, EINTR);
	assert_int_equal(s.detached, PTHREAD_CREATE_DETACHED);
	assert_true(blocks_what_is_sent(&s.mask));
}

/* One byte, or one more than pages: no reason to fail. */
static void any_size_of_stack_will_do(void **state)
{
	static const size_t sizes[] = { 1, (256 << 10) + 1 };

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct seen s = { 0 };
		pthread_t thread;

		sem_init(&s.done, 0, 0);
		assert_int_equal(thread_start(&thread, sizes[i], look_at_self, &s), 0);
		assert_int_equal(pthread_join(thread, NULL), 0);
		assert_true(s.stack >= sizes[i]);
		sem_destroy(&s.done);
	}
}

static void a_refusal_is_told(void **state)
{
	sigset_t before, after;
	pthread_t thread;

	(void)state;
	(void)pthread_sigmask(SIG_SETMASK, NULL, &before);
	assert_true(thread_start(&thread, SIZE_MAX / 4, look_at_self, NULL) < 0);
	(void)pthread_sigmask(SIG_SETMASK, NULL, &after);
	assert_int_equal(sigismember(&before, SIGTERM), sigismember(&after, SIGTERM));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thread_has_no_signals),
		cmocka_unit_test(nobody_waits_for_a_detached_one),
		cmocka_unit_test(any_size_of_stack_will_do),
		cmocka_unit_test(a_refusal_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
