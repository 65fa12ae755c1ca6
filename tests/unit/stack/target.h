/* SPDX-License-Identifier: MIT
 *
 * Real Pythons for live tests: every one that the machine has ($SPOTTER_PYTHONS, a list with colons;
 * else /usr/bin/python3, what is first in PATH, and all versions of pyenv), and a script running in
 * one of them.
 */
#ifndef SPOTTER_TESTS_STACK_TARGET_H
#define SPOTTER_TESTS_STACK_TARGET_H

#include "base/vec.h"

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#define PYTHONS_MAX 32

struct pythons {
	char path[PYTHONS_MAX][300];
	unsigned minor[PYTHONS_MAX];
	size_t n;
	char old[300]; /* one that is too old, "": none */
};

struct target {
	pid_t pid;
	FILE *out; /* what it prints */
	int in;    /* closing it ends those that wait for it */
};

/* Those of 3.8 on that run, each once, as far as the present user may run them. */
void pythons_find(struct pythons *ret);
/* Starts `python -I -S -B script words...`; cpu: pinned to it, -1: not. */
void target_start(struct target *t, const char *python, int cpu, const char *script, const char *a,
		  const char *b);
void target_end(struct target *t);
/* Pins the calling thread; false where there is but one CPU. */
bool pin(int cpu);

#endif
