/* SPDX-License-Identifier: MIT */
#include "explain/cause.h"

#include "explain/rule.h"

#include <stddef.h>
#include <string.h>

const struct cause causes[] = {
	{ "no_workers", "input", 2,
	  "the training thread loads the data itself, nothing loads ahead" },
	{ "too_few_workers", "input", 2, "the loader workers are busy and too few" },
	{ "too_many_workers", "input", 2, "more loader workers than the cores can run" },
	{ "heavy_preprocessing", "input", 2, "preparing the data costs more CPU than there is" },
	{ "python_loop_preprocessing", "input", 2,
	  "data is prepared element by element in Python" },
	{ "gil_contention", "input", 2, "threads of one Python process wait for its lock" },
	{ "uneven_samples", "input", 2, "a few slow samples hold up the batches behind them" },
	{ "slow_storage", "input", 2, "workers wait for the disk" },
	{ "cache_thrash", "input", 2,
	  "the data does not fit the page cache and is read again and again" },
	{ "network_storage", "input", 2, "workers wait for a network file system" },
	{ "many_small_files", "input", 2, "opening files costs more than reading them" },
	{ "decompression", "input", 3, "unpacking the data is what the workers do" },
	{ "tokenization", "input", 2, "splitting text into tokens is what the workers do" },
	{ "worker_restart", "input", 2, "workers are started anew for every epoch" },
	{ "slow_startup", "input", 2, "much of the run went by before the first step" },
	{ "shm_full", "input", 1, "/dev/shm is full: workers die or wait" },
	{ "worker_memory_growth", "input", 1, "the workers' memory grows with every batch" },
	{ "pin_bound", "input", 2, "the thread that pins batches is the limit" },
	{ "pageable_copy", "host-device", 3,
	  "copies to the GPU come from memory that is not pinned" },
	{ "sync_points", "host-device", 2,
	  "the program waits for the GPU more often than it must" },
	{ "spin_wait", "host-device", 3, "a core is burnt by waiting for the GPU in a loop" },
	{ "launch_bound", "host-device", 2, "starting GPU kernels takes longer than running them" },
	{ "small_batch", "host-device", 2, "the batches are too small to fill the GPU" },
	{ "no_tensor_cores", "host-device", 2, "the GPU's matrix units are not used" },
	{ "loop_overhead", "host-device", 2,
	  "Python code between the steps keeps the GPU waiting" },
	{ "recompiles", "host-device", 2, "the model is compiled again and again" },
	{ "not_on_gpu", "host-device", 1, "a GPU is there and the training does not use it" },
	{ "idle_gpus", "host-device", 1, "some of the job's GPUs do nothing" },
	{ "gpu_memory_full", "memory", 1, "the GPU's memory is full and its allocator retries" },
	{ "gpu_oom", "memory", 1, "the run died for want of GPU memory" },
	{ "memory_leak", "memory", 1, "the program's memory grows without end" },
	{ "memory_pressure", "memory", 1, "the job waits for memory: swapping, reclaim, refaults" },
	{ "oom_killed", "memory", 1, "the kernel killed a process of the job for want of memory" },
	{ "gc_pauses", "memory", 2, "Python's garbage collector stops the training" },
	{ "thread_oversubscription", "machine", 1,
	  "more threads of the job want to run than it has cores" },
	{ "cpu_quota", "machine", 0, "a CPU quota stops the job in every period" },
	{ "cpu_neighbour", "machine", 1, "other programs take the cores the job wants" },
	{ "gpu_shared", "machine", 1, "another program uses the same GPU" },
	{ "duplicate_reading", "machine", 1, "several jobs read the same data side by side" },
	{ "numa_remote", "machine", 1, "the job runs far from its memory or its GPU" },
	{ "gpu_throttled", "gpu", 1, "the GPU runs below its clock: heat or power" },
	{ "gpu_ghost_memory", "gpu", 1, "GPU memory is held by something that is gone" },
	{ "gpu_lost", "gpu", 1, "a GPU fell off the bus or stopped answering" },
	{ "checkpoint_stall", "phases", 2,
	  "the training stands still while checkpoints are written" },
	{ "logging_stall", "phases", 2, "the training waits while it logs or uploads" },
	{ "evaluation_share", "phases", 2, "evaluation takes a large part of the run" },
	{ "idle_job", "phases", 1, "the job holds its resources and does nothing" },
	{ "input_straggler", "ranks", 2, "one rank waits for data and all others wait for it" },
	{ "compute_straggler", "ranks", 2, "one rank computes longer and all others wait for it" },
	{ "exposed_communication", "ranks", 2,
	  "the ranks wait for the network, not for each other" },
	{ "data_parallel_api", "ranks", 2, "one process drives several GPUs" },
	{ "gpu_bound", "nothing wrong", 2, "the GPU is busy: nothing to fix" },
	{ "cpu_bound", "nothing wrong", 1, "the job trains on the CPU and uses its cores well" },
	{ NULL, NULL, 0, NULL },
};

const struct cause *cause_find(const char *id)
{
	for (const struct cause *c = causes; c->id; c++)
		if (strcmp(c->id, id) == 0)
			return c;
	return NULL;
}

bool cause_implemented(const struct cause *c)
{
	for (size_t i = 0; rules[i]; i++)
		if (strcmp(rules[i]->cause, c->id) == 0)
			return true;
	return false;
}
