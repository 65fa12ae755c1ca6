/* SPDX-License-Identifier: MIT
 *
 * Who, what and where of one run: what does not change while it goes on, and how it ended.
 */
#ifndef SPOTTER_MODEL_RUN_H
#define SPOTTER_MODEL_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What this machine is. Numbers that are not known are 0, texts "". */
struct machine {
	char hostname[65];
	char kernel[80];
	char cpu_model[80];
	int cpus;             /* logical CPUs online */
	int threads_per_core; /* 0: unknown */
	int64_t memory_bytes;
	char virtualisation[32]; /* "kvm", "container", "" */
};

enum run_state {
	RUN_GOING,       /* a live recorder holds it */
	RUN_ENDED,       /* the program ended and so did the record */
	RUN_DETACHED,    /* attach was over before the program was */
	RUN_INTERRUPTED, /* the recorder died; closed by the next reader */
};

struct run_info {
	char id[40];   /* "20261115-211209-4f3a": sorts by time, unique */
	char name[96]; /* what the user called it, or made from the program's name */
	char **argv;   /* NULL-terminated, owned */
	char *cwd;     /* owned, may be NULL */
	struct machine machine;
	char version[24];
	int64_t started_wall_ns, started_mono_ns;
	int64_t ended_mono_ns; /* last tick, or end of the program */
	double hz;
	int level;     /* observation level 0..3 */
	bool attached; /* by `attach`, not started by us */
	int64_t pid;   /* first process of the job */
	enum run_state state;
	bool has_exit;               /* then: */
	int exit_code;               /* 0..255, -1 when a signal ended it */
	int exit_signal;             /* 0 when it exited */
	int64_t rusage_cpu_ns;       /* what the kernel charged to the finished tree; -1: unknown */
	int64_t rusage_maxrss_bytes; /* of its largest process; -1: unknown */
};

void run_info_done(struct run_info *r);
/* Deep copy: 0 or -ENOMEM. */
int run_info_copy(struct run_info *dst, const struct run_info *src);
/* Takes a copy of the argument vector. */
int run_info_set_argv(struct run_info *r, char *const *argv);
const char *run_state_name(enum run_state s); /* "going", "ended", ... */
enum run_state run_state_by_name(const char *name);

#endif
