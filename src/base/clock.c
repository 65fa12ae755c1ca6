/* SPDX-License-Identifier: MIT */
#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

static int64_t read_clock(clockid_t id)
{
	struct timespec ts;

	if (clock_gettime(id, &ts) < 0)
		return -errno;
	return ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

int64_t clock_mono_ns(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

int64_t clock_wall_ns(void)
{
	return read_clock(CLOCK_REALTIME);
}

int64_t clock_boot_ns(void)
{
	return read_clock(CLOCK_BOOTTIME);
}

int64_t clock_self_cpu_ns(void)
{
	return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

int64_t clock_thread_cpu_ns(void)
{
	return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

int64_t clock_pid_cpu_ns(pid_t pid)
{
	/* MAKE_PROCESS_CPUCLOCK(pid, CPUCLOCK_SCHED) of the kernel's posix-timers.h. Pid 0 and
	 * below would name clocks of our own. */
	if (pid <= 0)
		return -ESRCH;
	return read_clock((clockid_t)(~(unsigned)pid << 3 | 2));
}

void clock_iso(int64_t wall_ns, char *buf, unsigned long size)
{
	int64_t ns = wall_ns % NS_PER_S;
	time_t s = (time_t)(wall_ns / NS_PER_S);
	struct tm tm;
	char date[24];

	if (ns < 0) { /* before 1970: a broken clock, and still a date */
		ns += NS_PER_S;
		s--;
	}
	gmtime_r(&s, &tm);
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(buf, size, "%s.%03dZ", date, (int)(ns / NS_PER_MS));
}
