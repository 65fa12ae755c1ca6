/* SPDX-License-Identifier: MIT
 *
 * A training that marks what it does, and says on stdout what it marked.
 *
 *	marks steps N MS    N steps of MS milliseconds, every tenth followed by an evaluation
 *	marks fork K N MS   K children, ranks 0 to K-1, of N steps each
 *	marks die N MS      N steps, then SIGKILL in the middle of a phase
 *	marks exec N MS     N steps, then exec of `marks steps N MS`
 *	marks flood N       N steps as fast as it can
 */
#include <spotter.h>

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static long number(char **argv, int at)
{
	return argv[at] ? strtol(argv[at], NULL, 10) : 0;
}

static double loss_of(long step)
{
	return step % 7 ? 1.0 / (double)(step + 1) : NAN;
}

static void train(long steps, long ms)
{
	for (long i = 1; i <= steps; i++) {
		spotter_data_wait(250000);
		usleep((useconds_t)(ms * 1000));
		spotter_step(loss_of(i));
		if (i % 10)
			continue;
		spotter_phase_begin("evaluate");
		usleep(20000);
		spotter_phase_end("evaluate");
		spotter_scalar("accuracy", (double)i / 100);
	}
	printf("%d %ld\n", (int)getpid(), steps);
	fflush(stdout);
}

static int fork_all(long children, long steps, long ms)
{
	for (long k = 0; k < children; k++) {
		char rank[24];

		if (fork())
			continue;
		snprintf(rank, sizeof(rank), "%ld", k);
		setenv("RANK", rank, 1);
		train(steps, ms);
		exit(0);
	}
	while (wait(NULL) > 0)
		;
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";

	if (strcmp(what, "fork") == 0 && argc > 4)
		return fork_all(number(argv, 2), number(argv, 3), number(argv, 4));
	if (strcmp(what, "flood") == 0) {
		for (long i = number(argv, 2); i > 0; i--)
			spotter_step(1);
		usleep(300000);
		return 0;
	}
	if (argc < 4)
		return 2;
	train(number(argv, 2), number(argv, 3));
	if (strcmp(what, "die") == 0) {
		spotter_phase_begin("never ended");
		usleep(50000);
		raise(SIGKILL);
	}
	if (strcmp(what, "exec") == 0) {
		argv[1] = (char[]){ "steps" };
		execv("/proc/self/exe", argv);
		return 1;
	}
	return 0;
}
