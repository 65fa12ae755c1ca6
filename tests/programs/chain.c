/* SPDX-License-Identifier: MIT
 *
 * chain SECONDS: no Python. Two threads run the same chain of functions: chain_outer - chain_middle -
 * chain_inner; the first from main, the second from chain_thread.
 */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#define NAMED __attribute__((visibility("default"), noinline))
/* Behind the last call of a function: it is no jump then. */
#define STAY __asm__ volatile("" ::: "memory")

unsigned chain_inner(unsigned rounds);
unsigned chain_middle(unsigned rounds);
void chain_outer(double until);
void *chain_thread(void *arg);

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

NAMED unsigned chain_inner(unsigned rounds)
{
	volatile unsigned x = 1;

	for (unsigned i = 0; i < rounds; i++)
		x = x * 1103515245u + i;
	return x;
}

NAMED unsigned chain_middle(unsigned rounds)
{
	unsigned x = chain_inner(rounds);

	STAY;
	return x + 1;
}

NAMED void chain_outer(double until)
{
	volatile unsigned rounds = 100000; /* a constant would make copies of other names */

	while (now() < until)
		chain_middle(rounds);
	STAY;
}

NAMED void *chain_thread(void *arg)
{
	chain_outer(*(double *)arg);
	STAY;
	return NULL;
}

NAMED int main(int argc, char **argv)
{
	double until = now() + (argc > 1 ? strtod(argv[1], NULL) : 1);
	pthread_t thread;

	if (pthread_create(&thread, NULL, chain_thread, &until) != 0)
		return 1;
	chain_outer(until);
	return pthread_join(thread, NULL) != 0;
}
