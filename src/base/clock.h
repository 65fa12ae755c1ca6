/* SPDX-License-Identifier: MIT
 *
 * Time in nanoseconds. A tick reads the clock once and passes it on; nothing below the engine calls
 * these on its own, so cause and effect never swap within a frame.
 */
#ifndef SPOTTER_BASE_CLOCK_H
#define SPOTTER_BASE_CLOCK_H

#include <stdint.h>
#include <sys/types.h>

#define NS_PER_S  1000000000ll
#define NS_PER_MS 1000000ll

int64_t clock_mono_ns(void);
int64_t clock_wall_ns(void);
/* CLOCK_BOOTTIME: what /proc/PID/stat's start time counts in. */
int64_t clock_boot_ns(void);
/* CPU time of the calling process and of the calling thread. */
int64_t clock_self_cpu_ns(void);
int64_t clock_thread_cpu_ns(void);
/* CPU time of another process (all its threads, dead ones too), without a descriptor and whoever
 * owns it: a kernel clock id made from the pid. -errno when it is gone. About 0.3 us. */
int64_t clock_pid_cpu_ns(pid_t pid);

/* "2026-11-15T21:12:09.123Z"; size >= 32. */
void clock_iso(int64_t wall_ns, char *buf, unsigned long size);

#endif
