/* SPDX-License-Identifier: MIT
 *
 * What lies in the shared memory, and the model's inner calls. Private to state.c, model*.c and the
 * CUDA half. All times are nanoseconds since the state was made ("age") unless they say otherwise.
 * Everything behind `mutex` is read and written with it held; the scenario above it never changes.
 */
#ifndef VGPU_LAYOUT_H
#define VGPU_LAYOUT_H

#include "scenario.h"

#include <pthread.h>

enum {
	VGPU_OPS = 4096,    /* queued work of one device, all processes together */
	VGPU_QUEUE = 1024,  /* kernels one process may have queued on one device, as CUDA's */
	VGPU_CLIENTS = 128, /* processes with a context at a time */
	VGPU_TICK_HZ = 48,  /* a tick is about what a PCIe throughput reading covers */
	VGPU_PERIOD = 8,    /* ticks in a sampling period: 1/6 s */
	VGPU_TICKS = 64,    /* ticks remembered: a bit more than a second */
	VGPU_PERIODS = 8,   /* periods remembered for each process */
	VGPU_ENGINES = 2 + VGPU_PARTITIONS,
};

/* A copy engine each way, and one queue of kernels for each MIG partition (the first without MIG). */
enum vgpu_engine { ENGINE_IN, ENGINE_OUT, ENGINE_COMPUTE };

/* Seconds (and joules, bytes) since the state was made. */
struct sums {
	double busy, sm, tensor, dram, occupancy;
	double tx, rx, energy;
	double link_tx, link_rx; /* NVLink */
};

/* What a kernel does to the device while it runs: shares of 0..1. */
struct vgpu_load {
	float sm, tensor, dram;
};

struct op {
	uint64_t id;          /* 0: free */
	int16_t engine, next; /* next in the engine's queue or in the free list; -1 none */
	int16_t client, previous_slot;
	int16_t peer;      /* copies: 1 + the device at the other end, 0 the host */
	uint64_t previous; /* the op before it in its stream, 0 none */
	int64_t not_before, start, end;
	double work; /* ns at full clock with the device to itself (kernels), or copy time */
	uint64_t bytes;
	struct vgpu_load load;
};

struct vgpu_ref { /* of an op, by those who wait for it */
	int device, slot;
	uint64_t id; /* 0: nothing to wait for */
};

struct device_state {
	int64_t time; /* brought up to date until here */
	int64_t last_tick, last_work;
	struct sums sum, tick[VGPU_TICKS];
	double watts, temperature;
	double held_power, held_sync, held_brake;     /* ns */
	double held_heat, held_heat_sw, held_heat_hw; /* any kind; by software; by hardware */
	uint64_t next_id;
	int16_t head[VGPU_ENGINES], tail[VGPU_ENGINES], free;
	struct op op[VGPU_OPS];
};

struct client_device {
	int contexts, partition; /* -1 without MIG */
	int pending;             /* kernels queued */
	uint64_t memory;
	double busy, dram;
	double period_busy[VGPU_PERIODS], period_dram[VGPU_PERIODS];
};

struct client {
	bool used;
	int32_t pid;        /* in its own namespace */
	uint64_t start, ns; /* of /proc/PID/stat; inode of the pid namespace */
	uint64_t ticket;    /* no two processes ever have the same */
	char name[64];
	struct client_device device[VGPU_DEVICES];
};

struct shared {
	char magic[8];
	uint64_t layout, size, scenario_hash;
	int64_t born_mono, born_wall;
	struct scenario scenario;
	pthread_mutex_t mutex;
	int64_t last_reap;
	uint64_t tickets;
	struct client client[VGPU_CLIENTS];
	struct device_state device[]; /* scenario.n_devices */
};

struct seen { /* the number of a process of another pid namespace in ours */
	uint64_t ticket;
	int32_t pid;
};

struct vgpu {
	struct shared *s;
	int fd; /* of the state's file, not the mapped one: has our life's lock, tests the others' */
	uint64_t inode;  /* of that file */
	int client;      /* our row, -1 before the first context */
	uint64_t ticket; /* of our row */
	struct seen seen[VGPU_CLIENTS];
};

/* state.c: false when the lock could not be had within two seconds (a holder was stopped in it). */
bool vgpu_lock(struct vgpu *v);
void vgpu_unlock(struct vgpu *v);
int64_t vgpu_age(const struct vgpu *v);
/* The name of the state's file for a name and a user; false when the name is unfit. */
bool vgpu_path(const char *name, char *ret, size_t size);
uint64_t vgpu_hash(const char *text, size_t n);

/* model.c, with the lock held. */
void model_begin(struct shared *s);
void model_advance(struct shared *s, int device, int64_t now);
double model_speed(const struct scenario_device *d, int64_t age);
double model_clock_share(const struct scenario_device *d, int64_t age);
double model_foreign(const struct scenario_device *d, int64_t age);
/* When this much work ends if it starts then. */
int64_t model_finish(const struct scenario_device *d, int64_t start, double work);
/* Bytes in a second over PCIe. */
double model_bandwidth(const struct vgpu_about *a, bool pinned);
/* Bytes in a second over all NVLinks one way, 0 without. */
double model_link_bandwidth(const struct vgpu_about *a);

/* model_queue.c, with the lock held and the device brought up to date. */
/* 0 with *ret, or -EAGAIN when the queue is full. `after` is the op before it in its stream. */
int queue_put(struct shared *s, int device, const struct op *want, struct vgpu_ref after,
	      struct vgpu_ref *ret);
void queue_retire(struct shared *s, int device);
/* When the op ends, or 0 when it has. */
int64_t queue_end(const struct shared *s, struct vgpu_ref ref);
/* Takes away all work of a process that is gone, and moves the rest up. */
void queue_cut(struct shared *s, int device, int client);
/* After a holder of the lock was killed: the lists are made anew from what stands in the ops. */
void queue_repair(struct shared *s, int device);

/* model_client.c, with the lock held. */
/* Gives this process a row (v->client): 0 or -EUSERS. */
int client_join(struct vgpu *v);
void client_drop(struct shared *s, int client);
/* Whether our row is still ours: not when the program has closed the driver's descriptor. */
bool client_is_ours(const struct vgpu *v);
/* Takes away what the dead have left; only now and then unless it must. */
void client_reap(struct vgpu *v, int64_t now, bool must);
/* Bytes that processes of ours hold on a device, or on one of its partitions (-1: all). */
uint64_t client_memory(const struct shared *s, int device, int partition);
/* Bytes still to be had. */
uint64_t client_room(const struct shared *s, int device, int partition);
/* MIG partitions show what is used of them in what is otherwise constant. */
void client_show_partitions(struct shared *s, int device);
/* 0 or -ENOMEM. */
int client_alloc(struct vgpu *v, int device, uint64_t bytes);
void client_free(struct vgpu *v, int device, uint64_t bytes);

/* model_life.c, with the lock held. */
/* Fills in who we are. */
void life_begin(struct client *c);
/* Shows that we live, until we end: false when somebody still holds that row. */
bool life_hold(struct vgpu *v, int row);
/* False when the program has closed our descriptor under us: then nobody can be found dead. */
bool life_can_tell(const struct vgpu *v);
bool life_gone(const struct vgpu *v, int row);
/* The pid of a row's process as this process sees it; its own number where it is out of sight. */
int32_t life_seen(struct vgpu *v, int row);

#endif
