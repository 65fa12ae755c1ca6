/* SPDX-License-Identifier: MIT
 *
 * A shared library whose exported functions wait or burn CPU, each in a way that is known. It is built
 * twice, with frame pointers (framed_) and without (plain_).
 */
#ifndef SPOTTER_TESTS_STACK_NATIVE_BLOCKS_H
#define SPOTTER_TESTS_STACK_NATIVE_BLOCKS_H

#include <pthread.h>
#include <stdatomic.h>

#define TRUTH_MAX 64

enum block {
	BLOCK_NANOSLEEP,
	BLOCK_MUTEX,
	BLOCK_READ,
	BLOCK_POLL,
	BLOCK_COND,
	BLOCK_ARRAY,  /* nanosleep below an array of variable length: the frame needs rbp */
	BLOCK_SIGNAL, /* nanosleep in the handler of a signal */
	BLOCKS,
};

/* Shared between target and test. */
struct truth {
	void *chain[TRUTH_MAX]; /* backtrace() just before */
	int n;
	_Atomic int tid; /* not 0: about to wait */
};

/* What there is to wait for; only the target has it. */
struct things {
	pthread_mutex_t locked, mutex;
	pthread_cond_t never;
	int pipe[2];
};

void plain_outer(enum block what, struct things *t, struct truth *truth);
void framed_outer(enum block what, struct things *t, struct truth *truth);
/* Never return; the first burns 70 % and the second 30 % of the CPU time. */
unsigned plain_burn_forever(void);
unsigned plain_burn_much(unsigned rounds);
unsigned plain_burn_little(unsigned rounds);
unsigned framed_burn_forever(void);
unsigned framed_burn_much(unsigned rounds);
unsigned framed_burn_little(unsigned rounds);

#endif
