/* SPDX-License-Identifier: MIT
 *
 * GPUs for the recorder: readings that never block. A helper process (helper.c) loads the vendor
 * libraries, reads at its own pace into shared memory and writes down each driver call it makes. The
 * client looks at that memory once a tick. A call that does not return within the deadline makes it
 * start another helper without that GPU; the stuck one is left alone (a task in the kernel's D state
 * cannot be ended) and watched, so that the time it was blocked is known. When the call comes back the
 * GPU is read again, unless it has hung GPU_HANGS times. The first hang of each GPU may cost a helper, all
 * other hangs and deaths together GPU_SPARES, and there are at most GPU_HELPERS in all.
 *
 * For a fixture root there is no helper: the back-ends that read files run here.
 */
#ifndef SPOTTER_GPU_CLIENT_H
#define SPOTTER_GPU_CLIENT_H

#include "gpu/gpu.h"

enum {
	GPU_HELPERS = 8, /* in all */
	GPU_SPARES = 3,  /* for deaths, hangs about no GPU in particular and GPUs that hang again */
	GPU_HANGS = 3,   /* of one GPU; then it is left alone for good */
	GPU_START_TRIES = 2, /* that fail before it is told that there are no figures */
};

struct gpu_client;

struct gpu_client_options {
	const char *nvml;     /* SPOTTER_NVML, --nvml; NULL: as the loader finds it */
	const char *program;  /* to start as the helper: NULL: /proc/self/exe */
	bool fixture;         /* no helper, no libraries */
	enum gpu_depth depth; /* deepest reading wanted */
	int64_t period_ns;    /* of fast readings; 0: 200 ms */
	int64_t deadline_ns;  /* of one driver call; 0: 2 s */
};

struct gpu_event {
	enum {
		GPU_EVENT_HANG,
		GPU_EVENT_RETURNED,
		GPU_EVENT_DIED,
		GPU_EVENT_REPLACED,
		GPU_EVENT_GAVE_UP,
		GPU_EVENT_XID,
		GPU_EVENT_LOST,
		GPU_EVENT_BACK
	} kind;
	int index;      /* GPU as the driver counts, -1: none in particular */
	char pci[24];   /* of it, "" */
	char call[64];  /* "nvmlDeviceGetTemperature", "" */
	double seconds; /* HANG, RETURNED: how long it was blocked so far */
	int64_t code;   /* XID number; DIED: as waitpid gives it */
	char text[200]; /* the whole in words: "driver call blocked for 2.1 s in X on GPU 2" */
};

/* Starts nothing that blocks; the helper starts on the first poll. */
int gpu_client_open(const struct gpu_client_options *o, struct gpu_client **ret, struct err *e);
/* The newest snapshot when it is newer than the last one given, else NULL. Checked. Valid until the
 * next call. `root`: the host's root of this tick (fixture); now_ns: monotonic clock. Never blocks. */
const struct gpu_snapshot *gpu_client_poll(struct gpu_client *c, int root, int64_t now_ns);
/* The last one given, however old; before the first what is known of it so far (`whole` is not set, GPUs that
 * were not read yet have names only), or NULL. */
const struct gpu_snapshot *gpu_client_last(const struct gpu_client *c);
/* Is the last one too old to be used: older than two periods (as the helper is paced now)? */
bool gpu_client_stale(const struct gpu_client *c, int64_t now_ns);
/* What happened since; false when there is nothing more. A GPU in a hang is told again with its
 * time so far at 10 s, 60 s and then every 10 minutes. */
bool gpu_client_event(struct gpu_client *c, struct gpu_event *ret);
/* Tells of every call that is blocked now how long it has been: at the end of a run. */
void gpu_client_retell(struct gpu_client *c, int64_t now_ns);
/* For commands: waits up to timeout_ns for a whole reading of the wanted depth begun after this
 * call, on which every GPU is read or given up. 0, or -ETIMEDOUT, at once when no helper can be had: then
 * gpu_client_last() may have what could be read, without `whole`. */
int gpu_client_wait(struct gpu_client *c, int64_t timeout_ns);
/* Pace: 1 the period, more: rarer (the governor's thrift). */
void gpu_client_set_thrift(struct gpu_client *c, unsigned thrift);
/* CPU time and resident memory of all helpers so far; -1 unknown. */
int64_t gpu_client_cpu_ns(const struct gpu_client *c);
int64_t gpu_client_rss_bytes(const struct gpu_client *c);
/* Ends helpers without waiting for those that cannot end. */
void gpu_client_close(struct gpu_client *c);

/* The helper's body: `spotter gpu-helper FD...`, started by the client alone. Exit status. */
int gpu_helper_main(int argc, char **argv);

#endif
