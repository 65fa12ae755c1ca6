/* SPDX-License-Identifier: MIT
 *
 * What stands in the files of /proc about a waiting thread: pure functions over text.
 */
#ifndef SPOTTER_STACK_WAIT_PARSE_H
#define SPOTTER_STACK_WAIT_PARSE_H

#include "stack/wait/wait.h"

struct wait_call {
	bool running; /* or queued: the kernel does not tell them apart here */
	int64_t nr;   /* -1: blocked, but in no system call */
	uint64_t arg[6];
	uint64_t sp, pc;
};

/* /proc/PID/task/TID/syscall. */
bool wait_parse_call(const char *text, size_t n, struct wait_call *ret);
/* /proc/PID/task/TID/schedstat: ns on and queued for a CPU, and how often it was put on one (0 where the
 * kernel does not tell). */
struct wait_sched {
	uint64_t run, queue, slices;
};
bool wait_parse_sched(const char *text, size_t n, struct wait_sched *ret);
/* How often it left a CPU by itself, and was taken off one, from /proc/PID/task/TID/status. */
struct wait_switches {
	uint64_t left, taken;
};
bool wait_parse_switches(const char *text, size_t n, struct wait_switches *ret);
/* The state letter of /proc/PID/task/TID/stat; 0: there is none. */
char wait_parse_letter(const char *text, size_t n);
/* What a descriptor is, by its link in /proc/PID/fd. *ret_inode: of a pipe or socket, else 0. A path
 * is WAIT_FILE, though it may be a FIFO's. Needs no NUL. */
enum wait_kind wait_link_kind(const char *link, size_t n, uint64_t *ret_inode);
/* The kernel function a thread sleeps in; WAIT_UNKNOWN: it does not tell. */
enum wait_kind wait_wchan_kind(const char *name, size_t n);
/* The descriptors in the fdinfo of an epoll: how many there are, the first `max` of them in fds. */
size_t wait_parse_epoll(const char *text, size_t n, int32_t *fds, size_t max);
/* The same of an array of struct pollfd; those switched off by a negative number are left out. */
size_t wait_pollfds(const uint8_t *array, size_t n_bytes, int32_t *fds, size_t max);
/* The same of a bitmap of select(), behind the n_fds that are there already; gives their new number. */
size_t wait_bitmap(const uint8_t *bits, size_t n_bytes, uint64_t n_bits, int32_t *fds, size_t n_fds,
		   size_t max);

#endif
