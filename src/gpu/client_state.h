/* SPDX-License-Identifier: MIT
 *
 * The client's inside: client.c (what users call), client_start.c (processes), client_watch.c (hangs
 * and deaths), client_event.c (words).
 */
#ifndef SPOTTER_GPU_CLIENT_STATE_H
#define SPOTTER_GPU_CLIENT_STATE_H

#include "gpu/client.h"
#include "gpu/shared.h"

struct gpu_reader;

enum { GPU_EVENTS = 64 };

enum gpu_role {
	GPU_ROLE_NONE,
	GPU_ROLE_CURRENT,
	GPU_ROLE_STUCK, /* in a call that did not return: watched only */
	GPU_ROLE_LEFT,  /* killed, not yet gone */
};

struct gpu_helper {
	enum gpu_role role;
	pid_t pid;   /* of its keeper (client_start.c) */
	int control; /* pipe: a byte wakes the helper, its end ends it */
	struct gpu_shared *shared;
	int64_t started_ns;
	uint64_t seen;      /* snapshots taken from it */
	uint64_t last_note; /* told so far */
	/* Calls by lane and the heartbeat, as first seen, when, and for how long they have been the same
	 * since. By the client's clock, with little said for a long time between two polls: a machine
	 * that was paused, or a client that did not come to poll, must not look like a hang. */
	int64_t call_started[GPU_LANES], call_seen_ns[GPU_LANES], call_same_ns[GPU_LANES];
	int gaps[GPU_LANES]; /* long ones it was the same across */
	uint64_t heartbeat;
	int64_t heart_still_ns;
	/* Stuck. */
	int lane;
	struct gpu_call call;
	int64_t told_ns; /* how long it had been blocked when last told */
};

struct gpu_client {
	struct gpu_client_options o;
	char *nvml, *program;
	struct gpu_helper helper[GPU_HELPERS];
	int n_started; /* helpers in all, never less, but for those that could not be started */
	int n_other;   /* of GPU_SPARES: replaced for anything but the first hang of a GPU */
	int start_failures; /* one after another */
	int current;        /* -1: none */
	bool gave_up;
	int64_t restart_ns; /* not before */
	int n_skips;
	struct gpu_skip skip[GPU_DEVICES];
	int n_hung;
	struct {
		struct gpu_skip who;
		int times;
	} hung[GPU_HELPERS];      /* each GPU that ever did */
	bool lost[GPU_DEVICES];   /* told as lost, by row of `last` */
	unsigned crashes_of_none; /* crashes in calls about no GPU */
	unsigned thrift;
	uint64_t ask, answered;
	int64_t dead_cpu_ns; /* of helpers that were reaped */
	int64_t polled_ns;
	/* Snapshots: the one given last and the one being put together. */
	struct gpu_snapshot *last, *next;
	uint64_t given;
	/* Fixture. */
	struct gpu_reader *reader;
	struct gpu_world *world;
	int root;
	struct gpu_event event[GPU_EVENTS];
	unsigned event_first, n_events;
};

/* client_start.c */
int gpu_start_helper(struct gpu_client *c, struct gpu_helper *h, int64_t now_ns);
void gpu_wake_helper(const struct gpu_helper *h);
void gpu_kill_helper(struct gpu_helper *h);
/* Then its memory changes no more. */
bool gpu_helper_ended(const struct gpu_helper *h);
/* When it has ended: true with its status as waitpid gives it. Frees what it had. */
bool gpu_bury_helper(struct gpu_client *c, struct gpu_helper *h, int *ret_status);
/* One that could not be started: its place is free again. */
void gpu_forget_helper(struct gpu_helper *h);
/* Takes off all that have ended, at the very end. */
void gpu_reap_helpers(struct gpu_client *c);

/* client_row.c */
bool gpu_is_skipped(const struct gpu_client *c, const struct gpu_device *d);
/* Known GPUs keep their rows in `next`, a whole reading. */
void gpu_keep_known(struct gpu_client *c);
/* `next` is a part of a first reading: becomes `last` when there is no whole one yet. */
void gpu_take_part(struct gpu_client *c);
/* What is skipped by now is said to hang, as long as there is no whole reading that says so. */
void gpu_mark_skipped(struct gpu_client *c);

/* client_watch.c: looks after all helpers; starts one when there is none and there may be. */
void gpu_watch(struct gpu_client *c, int64_t now_ns);

/* client_event.c */
void gpu_tell_call(struct gpu_client *c, int kind, const struct gpu_call *call, int64_t ns);
void gpu_tell_death(struct gpu_client *c, const struct gpu_call *call, int status);
void gpu_tell(struct gpu_client *c, int kind, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void gpu_tell_notes(struct gpu_client *c, struct gpu_helper *h, const struct gpu_snapshot *s);

#endif
