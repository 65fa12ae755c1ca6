/* SPDX-License-Identifier: MIT
 *
 * Private to src/stack/native: why the kernel gives no samples.
 */
#ifndef SPOTTER_STACK_NATIVE_PERF_REFUSAL_H
#define SPOTTER_STACK_NATIVE_PERF_REFUSAL_H

#include <stdbool.h>

struct err;

#define PERF_OTHER_USER (-4095) /* we may sample our own threads, but not that one */

/* May we sample ourselves? */
bool perf_permitted(void);
/* The words for what perf_event_open() answered, and the command that changes it. */
void perf_refusal(int code, struct err *e);
/* The same, from facts: paranoid is kernel.perf_event_paranoid, INT64_MIN when it cannot be read
 * (then the kernel has no such call). */
void perf_refusal_words(int code, long long paranoid, struct err *e);

/* The same for callers of running threads, where just the place of a thread is had. */
void perf_no_callers(int code, struct err *e);

#endif
