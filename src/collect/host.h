/* SPDX-License-Identifier: MIT
 *
 * The host as an argument. In production the root is "/" and descriptors are kept open between
 * ticks. With --root DIR it is a fixture: DIR/t0, t1, ... are successive states of one machine (or
 * DIR itself is the only one), each tick moves to the next, nothing is kept, and the clock is read
 * from the file "clock" in each state ("mono_ns wall_ns boot_ns"; one second apart without it). So the tested
 * binary is the shipped one.
 */
#ifndef SPOTTER_COLLECT_HOST_H
#define SPOTTER_COLLECT_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;

struct host {
	int root;       /* descriptor of the current state */
	int base;       /* fixture: descriptor of DIR, else -1 */
	bool live;      /* the machine we run on: kernel clocks may be asked, descriptors kept */
	unsigned state; /* fixture: number of the current state */
	long page_bytes;
	long ticks_per_s; /* USER_HZ */
	pid_t self;       /* our own pid, never part of a job; 0 in a fixture */
};

/* dir NULL: the machine itself. */
int host_open(struct host *h, const char *dir, struct err *e);
void host_close(struct host *h);
/* Fixture: goes to the next state; false when there is none (the last one stays). Live: true. */
bool host_advance(struct host *h);
/* The clock of this tick. */
void host_clock(const struct host *h, int64_t *ret_mono_ns, int64_t *ret_wall_ns,
		int64_t *ret_boot_ns);

/* A file that is read every tick: kept open and re-read with pread on a live host, opened each time
 * in a fixture. {.fd = -1} is a closed one. */
struct host_file {
	int fd;
};
/* Length, or -errno. On an error the descriptor is closed and the next read opens it again. */
ssize_t host_read(const struct host *h, struct host_file *f, const char *path, char *buf,
		  size_t size);
void host_file_close(struct host_file *f);

#endif
