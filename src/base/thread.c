/* SPDX-License-Identifier: MIT */
#include "base/thread.h"

#include <unistd.h>

/* Of a page, and at least what the C library asks for: that grows with the size of vector registers. */
static size_t possible(size_t bytes)
{
	long least = sysconf(_SC_THREAD_STACK_MIN), page = sysconf(_SC_PAGESIZE);
	size_t unit = page > 0 ? (size_t)page : 4096;

	if (least > 0 && bytes < (size_t)least)
		bytes = (size_t)least;
	return (bytes + unit - 1) / unit * unit;
}

void signals_block(sigset_t *ret_before)
{
	sigset_t all;

	sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, ret_before);
}

void signals_restore(const sigset_t *before)
{
	(void)pthread_sigmask(SIG_SETMASK, before, NULL);
}

int thread_start(pthread_t *ret, size_t stack_bytes, void *(*main)(void *), void *arg)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t before;
	int e = pthread_attr_init(&attr);

	if (e)
		return -e;
	if (stack_bytes)
		e = pthread_attr_setstacksize(&attr, possible(stack_bytes));
	if (!e && !ret)
		e = pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (!e) {
		/* Blocked before it is there: it inherits the mask, and has no moment without. */
		signals_block(&before);
		e = pthread_create(ret ? ret : &thread, &attr, main, arg);
		signals_restore(&before);
	}
	pthread_attr_destroy(&attr);
	return -e;
}
