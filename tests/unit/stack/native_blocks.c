/* SPDX-License-Identifier: MIT */
#include "native_blocks.h"

#include <execinfo.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PASTE(a, b)  a##b
#define PASTE2(a, b) PASTE(a, b)
#define NAME(x)      PASTE2(PREFIX, x)
#define EXPORTED     __attribute__((visibility("default"), noinline, noclone))
/* Behind the last call of a function: it is no jump then. */
#define STAY __asm__ volatile("" ::: "memory")

void NAME(sleeps)(struct things *t, struct truth *truth);
void NAME(locks)(struct things *t, struct truth *truth);
void NAME(reads)(struct things *t, struct truth *truth);
void NAME(polls)(struct things *t, struct truth *truth);
void NAME(conds)(struct things *t, struct truth *truth);
void NAME(arrays)(struct things *t, struct truth *truth);
void NAME(handler)(int number);
void NAME(signals)(struct things *t, struct truth *truth);
void NAME(middle)(enum block what, struct things *t, struct truth *truth);
void NAME(outer)(enum block what, struct things *t, struct truth *truth);
unsigned NAME(burn_much)(unsigned rounds);
unsigned NAME(burn_little)(unsigned rounds);
unsigned NAME(burn_forever)(void);
void *NAME(hidden_at)(void);

static struct truth *of_handler;

/* Not exported: only .symtab has its name. */
static __attribute__((noinline, noclone, used)) unsigned NAME(hidden)(unsigned x)
{
	STAY;
	return x * 3;
}

EXPORTED void *NAME(hidden_at)(void)
{
	return (void *)NAME(hidden);
}

static void tell(struct truth *truth)
{
	truth->tid = (int)syscall(SYS_gettid);
}

EXPORTED void NAME(sleeps)(struct things *t, struct truth *truth)
{
	struct timespec long_time = { .tv_sec = 1000 };

	(void)t;
	truth->n = backtrace(truth->chain, TRUTH_MAX);
	tell(truth);
	nanosleep(&long_time, NULL);
	STAY;
}

EXPORTED void NAME(locks)(struct things *t, struct truth *truth)
{
	truth->n = backtrace(truth->chain, TRUTH_MAX);
	tell(truth);
	pthread_mutex_lock(&t->locked);
	STAY;
}

EXPORTED void NAME(reads)(struct things *t, struct truth *truth)
{
	char c;

	truth->n = backtrace(truth->chain, TRUTH_MAX);
	tell(truth);
	(void)!read(t->pipe[0], &c, 1);
	STAY;
}

EXPORTED void NAME(polls)(struct things *t, struct truth *truth)
{
	struct pollfd one = { .fd = t->pipe[0], .events = POLLIN };

	truth->n = backtrace(truth->chain, TRUTH_MAX);
	tell(truth);
	poll(&one, 1, -1);
	STAY;
}

EXPORTED void NAME(conds)(struct things *t, struct truth *truth)
{
	pthread_mutex_lock(&t->mutex);
	truth->n = backtrace(truth->chain, TRUTH_MAX);
	tell(truth);
	for (;;)
		pthread_cond_wait(&t->never, &t->mutex);
}

EXPORTED void NAME(arrays)(struct things *t, struct truth *truth)
{
	char *room = __builtin_alloca(100 + (size_t)(t->pipe[0] & 63));

	memset(room, 1, 100);
	__asm__ volatile("" ::"r"(room) : "memory");
	NAME(sleeps)(t, truth);
	__asm__ volatile("" ::"r"(room) : "memory");
}

EXPORTED void NAME(handler)(int number)
{
	(void)number;
	NAME(sleeps)(NULL, of_handler);
	STAY;
}

EXPORTED void NAME(signals)(struct things *t, struct truth *truth)
{
	struct sigaction a = { .sa_handler = NAME(handler) };

	(void)t;
	of_handler = truth;
	sigaction(OWN_SIGNAL, &a, NULL);
	pthread_kill(pthread_self(), OWN_SIGNAL);
	STAY;
}

EXPORTED void NAME(middle)(enum block what, struct things *t, struct truth *truth)
{
	static void (*const all[])(struct things *, struct truth *) = {
		[BLOCK_NANOSLEEP] = NAME(sleeps), [BLOCK_MUTEX] = NAME(locks),
		[BLOCK_READ] = NAME(reads),       [BLOCK_POLL] = NAME(polls),
		[BLOCK_COND] = NAME(conds),       [BLOCK_ARRAY] = NAME(arrays),
		[BLOCK_SIGNAL] = NAME(signals),
	};

	all[what](t, truth);
	STAY;
}

EXPORTED void NAME(outer)(enum block what, struct things *t, struct truth *truth)
{
	NAME(middle)(what, t, truth);
	STAY;
}

EXPORTED unsigned NAME(burn_much)(unsigned rounds)
{
	volatile unsigned x = 1;

	for (unsigned i = 0; i < rounds; i++)
		x = x * 1103515245u + i;
	return x;
}

EXPORTED unsigned NAME(burn_little)(unsigned rounds)
{
	volatile unsigned x = 2;

	for (unsigned i = 0; i < rounds; i++)
		x = x * 1103515245u + i;
	return x;
}

EXPORTED unsigned NAME(burn_forever)(void)
{
	unsigned x = 0, random = 1;

	/* Not of the same length each time: a beat with the sampling clock would tell lies. */
	for (;;) {
		unsigned rounds = 3000 + (random >> 16) % 6000;

		random = random * 1103515245u + 12345u;
		x += NAME(burn_much)(rounds * 7);
		x += NAME(burn_little)(rounds * 3);
	}
	return x;
}
