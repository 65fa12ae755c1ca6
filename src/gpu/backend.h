/* SPDX-License-Identifier: MIT
 *
 * One vendor. Back-ends run in the helper process, or for a fixture root in the caller's; they may
 * block, and nobody waits for them. Around every call that can block they say so (gpu_call), so that
 * the recorder can name the call that does not return.
 */
#ifndef SPOTTER_GPU_BACKEND_H
#define SPOTTER_GPU_BACKEND_H

#include "gpu/gpu.h"

struct gpu_calls; /* where the calls in flight are written: shared with the recorder (call.h) */

/* What a back-end works in. */
struct gpu_world {
	int root;  /* descriptor of "/" or of the current state of a fixture */
	bool live; /* the machine we run on; false: sysfs and procfs of a fixture, no libraries */
	const char *nvml; /* library to load instead of the usual ones, NULL */
	const char *const
	    *skip; /* PCI ids not to be touched: a call on them hung; NULL-terminated */
	/* The same as the vendors count: a GPU whose handle cannot be had has no PCI id to ask for. */
	const struct gpu_skip_index *skip_index;
	int n_skip_indices;
	struct gpu_calls *calls; /* NULL: nobody looks */
	/* Set by the caller of the back-end. */
	enum gpu_vendor vendor; /* whose turn it is */
	bool opening;           /* in open(): calls have more time */
	/* Called when the sampling thread turns to another GPU, before it asks it anything: what is known
	 * by then is not lost when that call does not return. NULL: nobody wants to know. */
	void (*progress)(void *arg);
	void *progress_arg;
	int progress_index; /* of the GPU it is at, -1 */
};

struct gpu_skip_index {
	enum gpu_vendor vendor;
	int index;
	bool pci_known;
	int of; /* GPUs that were counted when it was at that index, -1: not known */
};

/* A GPU that is skipped still gets its row: vendor, index, PCI id when known and state GPU_HUNG, with
 * nothing asked of it, so that the others keep their places. */
bool gpu_skipped(const struct gpu_world *w, const char *pci);
/* Before anything is asked of it, by its number among `count`. Where the PCI id of the one to be skipped
 * is known a number holds only while as many GPUs are counted as then: otherwise somebody else may have
 * moved up into it, and gpu_skipped() decides alone. */
bool gpu_skipped_index(const struct gpu_world *w, int index, int count);

/* Around a driver call: who (static text, the symbol or the file) and on which GPU (index of the
 * vendor, -1: none in particular). Costs two stores. `lane`: 0 the sampling thread, 1 the slow one. */
void gpu_call_begin(struct gpu_world *w, int lane, const char *what, const char *pci, int index);
void gpu_call_end(struct gpu_world *w, int lane);

struct gpu_backend {
	const char *name;
	enum gpu_vendor vendor;
	size_t state_size; /* zeroed memory given to every call */
	/* Loads and initialises. 0; -ENOENT: nothing of this vendor here (no problem is shown);
	 * other -errno with *e saying why and what to do. Called again after a while when it failed. */
	int (*open)(struct gpu_world *w, void *state, struct err *e);
	/* Adds its devices, in the driver's order, each time (a snapshot starts empty), with their
	 * processes and notes. A GPU that fails becomes a row with `state` set; it never spoils the
	 * others. 0, or -errno when nothing can be read any more: it is closed and opened again. */
	int (*read)(struct gpu_world *w, void *state, enum gpu_depth depth, struct gpu_snapshot *s);
	/* Who GPU `i` is, as far as it has been found out, without asking the driver; figures stay as
	 * they are. False: there are not as many. Works in the middle of open(). NULL: cannot say. */
	bool (*identify)(const void *state, int i, struct gpu_device *ret);
	/* What blocks for long though nothing is wrong (PCIe counters: 20 ms a call), in a thread of
	 * its own, about once a second; kept in `state` for the next read(). NULL: nothing. */
	void (*crawl)(struct gpu_world *w, void *state);
	void (*close)(void *state);
};

extern const struct gpu_backend *const gpu_backends[]; /* all.c; NULL-terminated */

#endif
