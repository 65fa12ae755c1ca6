/* SPDX-License-Identifier: MIT
 *
 * A crowd to be watched: load PROCESSES THREADS ACTIVE_PERCENT
 *
 * Starts PROCESSES children with THREADS threads each. In an active child every thread runs a few
 * microseconds ten times a second, so that its CPU clock moves between any two samples; the others
 * sleep. Prints "ready PID" (its own) and lives until its standard input ends; the crowd goes with it.
 */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static void *stir(void *arg)
{
	volatile uint64_t x = (uint64_t)(uintptr_t)arg;
	struct timespec nap = { .tv_nsec = 100000000 };

	for (;;) {
		for (int i = 0; i < 2000; i++)
			x = x * 6364136223846793005ull + 1;
		nanosleep(&nap, NULL);
	}
	return NULL;
}

static void *rest(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static void child(int threads, void *(*body)(void *))
{
	pthread_attr_t attr;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 << 10);
	for (int i = 1; i < threads; i++) {
		pthread_t t;

		if (pthread_create(&t, &attr, body, NULL))
			_exit(1);
	}
	body(NULL);
}

int main(int argc, char **argv)
{
	long processes = argc > 1 ? strtol(argv[1], NULL, 10) : 200;
	long threads = argc > 2 ? strtol(argv[2], NULL, 10) : 5;
	long active = argc > 3 ? strtol(argv[3], NULL, 10) : 100;
	char byte;

	for (long i = 0; i < processes; i++) {
		pid_t pid = fork();

		if (pid < 0)
			return 1;
		if (!pid)
			child((int)threads,
			      (i * active) / 100 != ((i + 1) * active) / 100 ? stir : rest);
	}
	printf("ready %d\n", getpid());
	fflush(stdout);
	while (read(0, &byte, 1) > 0)
		;
	return 0;
}
