/* SPDX-License-Identifier: MIT
 *
 * A process whose threads each sit in one known wait.
 */
#ifndef SPOTTER_TESTS_STACK_WAITS_H
#define SPOTTER_TESTS_STACK_WAITS_H

#include "stack/wait/wait.h"

#define WAITS_MAX 24

struct known_wait {
	const char *name;
	enum wait_kind kind, on;
	bool from_worker; /* the other end of its pipe is the worker's alone */
	pid_t tid;        /* 0: this machine does not allow it */
};

/* Shared between the target and whoever looks. */
struct waits {
	size_t n;
	pid_t pid, worker;
	struct known_wait row[WAITS_MAX];
};

/* Forks the target; all threads are where they belong when it returns. It ends with its parent. */
struct waits *waits_start(void);
void waits_end(struct waits *w);

#endif
