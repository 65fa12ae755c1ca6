/* SPDX-License-Identifier: MIT
 *
 * The complete lists, in running order.
 */
#include "explain/fact.h"
#include "explain/rule.h"

#include <stddef.h>

extern const struct fact_source cpu_facts, quota_facts, threads_facts, memory_facts, pressure_facts,
    oom_facts, storage_facts, overhead_facts, gpu_facts, gpu_clock_facts, gpu_memory_facts,
    gpu_fault_facts, gpu_busy_facts, gpu_job_facts, time_facts, consumer_facts, loader_facts,
    preprocess_facts, written_facts, gil_facts, stages_facts, doing_facts, elements_facts,
    launches_facts, glue_facts, ranks_facts, spinning_facts;
extern const struct rule oom_killed_rule, cpu_quota_rule, memory_pressure_rule, cpu_neighbour_rule,
    thread_oversubscription_rule, gpu_lost_rule, not_on_gpu_rule, idle_gpus_rule,
    gpu_throttled_rule, gpu_shared_rule, gpu_memory_full_rule, gpu_ghost_memory_rule,
    no_workers_rule, too_few_workers_rule, python_loop_preprocessing_rule, gil_contention_rule,
    gpu_bound_rule, decompression_rule, tokenization_rule, heavy_preprocessing_rule,
    slow_storage_rule, uneven_samples_rule, pin_bound_rule, too_many_workers_rule,
    checkpoint_stall_rule, logging_stall_rule, gc_pauses_rule, recompiles_rule, loop_overhead_rule,
    evaluation_share_rule, worker_restart_rule, data_parallel_api_rule, sync_points_rule,
    pageable_copy_rule, launch_bound_rule, spin_wait_rule, idle_job_rule, input_straggler_rule,
    compute_straggler_rule, exposed_communication_rule;

extern const struct fact_source death_facts, hang_facts, tail_facts, growth_facts, start_facts,
    origin_facts, kept_facts;

/* A source may read the facts of those above it. */
const struct fact_source *const fact_sources[] = {
	&cpu_facts,
	&quota_facts,
	&threads_facts,
	&memory_facts,
	&pressure_facts,
	&oom_facts,
	&storage_facts,
	&overhead_facts,
	&gpu_facts,
	&gpu_clock_facts,
	&gpu_memory_facts,
	&gpu_fault_facts,
	&gpu_busy_facts,
	&gpu_job_facts,
	&time_facts,
	&spinning_facts,
	&consumer_facts,
	&loader_facts,
	&preprocess_facts, /* reads loader's */
	&written_facts,    /* reads loader's */
	&stages_facts,
	&gil_facts,
	&doing_facts,
	&elements_facts,
	&launches_facts,
	&glue_facts,
	&ranks_facts,
	&death_facts,
	&start_facts,
	&hang_facts,
	&tail_facts,
	&growth_facts,
	/* reads growth's */
	&kept_facts,
	&origin_facts,
	NULL,
};

extern const struct rule shm_full_rule, gpu_oom_rule, memory_leak_rule, worker_memory_growth_rule,
    cache_thrash_rule, network_storage_rule, many_small_files_rule, duplicate_reading_rule,
    numa_remote_rule, slow_startup_rule, small_batch_rule, no_tensor_cores_rule, cpu_bound_rule;

const struct rule *const rules[] = {
	/* what killed it */
	&oom_killed_rule,
	&gpu_lost_rule,
	&shm_full_rule,
	&gpu_oom_rule,
	/* held, given or hidden, and not used */
	&gpu_ghost_memory_rule,
	&not_on_gpu_rule,
	&idle_gpus_rule,
	/* limits that imitate everything else */
	&cpu_quota_rule,
	&gpu_throttled_rule,
	&gpu_shared_rule,
	&memory_pressure_rule,
	&cpu_neighbour_rule,
	/* the job itself */
	&thread_oversubscription_rule,
	/* what the training thread does, and what its loaders do */
	&no_workers_rule,
	/* of two that gain the same, what workers do comes before how many they are */
	&python_loop_preprocessing_rule,
	&decompression_rule,
	&tokenization_rule,
	&too_few_workers_rule,
	&too_many_workers_rule,
	&heavy_preprocessing_rule,
	&cache_thrash_rule,
	&network_storage_rule,
	&many_small_files_rule,
	&slow_storage_rule,
	&uneven_samples_rule,
	&pin_bound_rule,
	&gil_contention_rule,
	&gpu_memory_full_rule,
	&memory_leak_rule,
	&worker_memory_growth_rule,
	/* the training thread and the device */
	&sync_points_rule,
	&pageable_copy_rule,
	&launch_bound_rule,
	&loop_overhead_rule,
	&data_parallel_api_rule,
	&recompiles_rule,
	&spin_wait_rule,
	&small_batch_rule,
	&no_tensor_cores_rule,
	/* phases */
	&slow_startup_rule,
	&checkpoint_stall_rule,
	&logging_stall_rule,
	&worker_restart_rule,
	&gc_pauses_rule,
	&evaluation_share_rule,
	&idle_job_rule,
	/* ranks */
	&input_straggler_rule,
	&compute_straggler_rule,
	&exposed_communication_rule,
	/* what a record does not have */
	&numa_remote_rule,
	&duplicate_reading_rule,
	/* nothing wrong */
	&gpu_bound_rule,
	&cpu_bound_rule,
	NULL,
};
