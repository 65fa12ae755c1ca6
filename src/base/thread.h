/* SPDX-License-Identifier: MIT
 *
 * Starting threads. All signals are blocked in them: who is sent one is the first thread, whose business
 * signals are (launch/), and no call of theirs is ever cut short by one.
 */
#ifndef SPOTTER_BASE_THREAD_H
#define SPOTTER_BASE_THREAD_H

#include <pthread.h>
#include <signal.h>
#include <stddef.h>

/* stack_bytes: 0 the system's own; less than the least possible is raised to that. ret NULL: detached,
 * nobody joins it. 0 or -errno. */
int thread_start(pthread_t *ret, size_t stack_bytes, void *(*main)(void *), void *arg);

/* All signals, for a moment in which no handler may run (a start, a fork); then as before. */
void signals_block(sigset_t *ret_before);
void signals_restore(const sigset_t *before);

#endif
