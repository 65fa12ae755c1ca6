/* SPDX-License-Identifier: MIT
 *
 * What one process knows of its own use of the virtual GPU: contexts, streams, events and memory. The
 * device's side of it is in the shared state (layout.h).
 */
#ifndef VGPU_CUDA_LOCAL_H
#define VGPU_CUDA_LOCAL_H

#include "cuda_abi.h"
#include "layout.h"

/* An address that no memory stands behind: copies to and from it are of any length. For programs that
 * want a transfer's time and not its place (sim/python). */
#define CUDA_SCRATCH ((CUdeviceptr)0x1000)

enum { CUDA_VISIBLE = VGPU_DEVICES * VGPU_PARTITIONS, CUDA_CONTEXT_STACK = 16 };

/* A device as the program sees it, by CUDA_VISIBLE_DEVICES. */
struct cuda_visible {
	int device, partition; /* -1: the whole device */
};

struct cuda_context {
	uint32_t magic; /* 'ctx ' while it lives: a stale handle is an error, not a crash */
	CUdevice ordinal;
	struct cuda_visible at;
	unsigned flags;
	bool primary;
	int references;
	struct vgpu_ref legacy; /* the last op of the stream without a handle */
};

struct cuda_stream {
	uint32_t magic;
	struct cuda_context *context;
	unsigned flags;
	struct vgpu_ref last;
	int64_t floor; /* the end of events it was told to wait for */
};

struct cuda_event {
	uint32_t magic;
	struct cuda_context *context;
	unsigned flags;
	bool recorded;
	struct vgpu_ref ref;
	int64_t at; /* when it happens or happened */
};

struct cuda_range { /* of device or pinned memory */
	uint64_t from, bytes;
	struct cuda_context *context;
};

struct cuda_ranges {
	struct cuda_range *row; /* by address */
	size_t n, room;
};

/* All of a process. The driver's interface has no handle for it, so it is the library's one static. */
struct cuda {
	pthread_mutex_t mutex;
	pid_t pid; /* 0 before cuInit; another's after a fork */
	struct vgpu *v;
	int n_visible;
	struct cuda_visible visible[CUDA_VISIBLE];
	struct cuda_context *primary[CUDA_VISIBLE];
	unsigned primary_flags[CUDA_VISIBLE];
	struct cuda_ranges device, pinned;
	uint64_t next_address;
};

/* cuda_init.c. The process, or NULL with *ret_error: not initialised, or a child of one that is. */
struct cuda *cuda_process(CUresult *ret_error);
/* Also with a context current in this thread. */
struct cuda *cuda_here(struct cuda_context **ret_context, CUresult *ret_error);
bool cuda_context_lives(const struct cuda_context *c);
struct cuda_context *cuda_current(void);
void cuda_lock(struct cuda *p);
void cuda_unlock(struct cuda *p);

/* cuda_visible.c: what CUDA_VISIBLE_DEVICES (NULL: not set) and CUDA_DEVICE_ORDER leave, in order. */
int cuda_visible(const struct scenario *s, const char *visible, const char *order,
		 struct cuda_visible *ret);

/* cuda_memory.c, with the process locked. */
struct cuda_range *cuda_range_find(struct cuda_ranges *r, uint64_t at, uint64_t bytes);
/* Frees everything a context holds. */
void cuda_memory_done(struct cuda *p, struct cuda_context *c);

/* cuda_wait.c */
struct cuda_wait {
	struct cuda_context *context;
	struct vgpu_ref ref;
	int64_t floor;
	bool all;  /* all work of this process on the context's device */
	bool spin; /* else it sleeps */
};
CUresult cuda_wait(struct cuda *p, const struct cuda_wait *w);
/* CUDA_ERROR_NOT_READY while it is not done. */
CUresult cuda_done(struct cuda *p, const struct cuda_wait *w);
bool cuda_spins(const struct cuda_context *c);
/* The GPU has fallen off the bus, says the scenario. */
bool cuda_lost(const struct cuda *p, const struct cuda_context *c);
/* Queues work in a stream (NULL: the legacy one) and waits for room if the queue is full. */
CUresult cuda_submit(struct cuda *p, struct cuda_context *c, CUstream stream, struct op *want,
		     struct vgpu_ref *ret);

#define CUDA_MAGIC_CONTEXT 0x63747820u
#define CUDA_MAGIC_STREAM  0x73747265u
#define CUDA_MAGIC_EVENT   0x65766e74u

/* The stream behind a handle; NULL for the legacy stream, an error for a stale one. */
CUresult cuda_stream_of(struct cuda_context *c, CUstream handle, struct cuda_stream **ret);

#endif
