/* SPDX-License-Identifier: MIT
 *
 * The complete lists, in running order.
 */
#include "explain/fact.h"
#include "explain/rule.h"

#include <stddef.h>

extern const struct fact_source cpu_facts, quota_facts, threads_facts, memory_facts, pressure_facts,
    oom_facts, storage_facts, overhead_facts, gpu_facts, gpu_clock_facts, gpu_memory_facts,
    gpu_fault_facts, gpu_busy_facts, time_facts, consumer_facts, loader_facts, preprocess_facts,
    gil_facts, stages_facts, doing_facts;
extern const struct rule oom_killed_rule, cpu_quota_rule, memory_pressure_rule, cpu_neighbour_rule,
    thread_oversubscription_rule, gpu_lost_rule, not_on_gpu_rule, idle_gpus_rule,
    gpu_throttled_rule, gpu_shared_rule, gpu_memory_full_rule, gpu_ghost_memory_rule,
    no_workers_rule, too_few_workers_rule, python_loop_preprocessing_rule, gil_contention_rule,
    gpu_bound_rule, decompression_rule, tokenization_rule, heavy_preprocessing_rule,
    slow_storage_rule, uneven_samples_rule, pin_bound_rule, too_many_workers_rule,
    checkpoint_stall_rule, logging_stall_rule, gc_pauses_rule, recompiles_rule, loop_overhead_rule,
    evaluation_share_rule, worker_restart_rule, data_parallel_api_rule, sync_points_rule,
    pageable_copy_rule, launch_bound_rule, spin_wait_rule, idle_job_rule;

/* A source may read the facts of those above it. */
const struct fact_source *const fact_sources[] = {
	&cpu_facts,        &quota_facts,      &threads_facts,  &memory_facts, &pressure_facts,
	&oom_facts,        &storage_facts,    &overhead_facts, &gpu_facts,    &gpu_clock_facts,
	&gpu_memory_facts, &gpu_fault_facts,  &gpu_busy_facts, &time_facts,   &consumer_facts,
	&loader_facts,     &preprocess_facts, /* reads loader's */
	&stages_facts,     &gil_facts,        &doing_facts,    NULL,
};

const struct rule *const rules[] = {
	/* what killed it */
	&oom_killed_rule,
	&gpu_lost_rule,
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
	&too_few_workers_rule,
	&too_many_workers_rule,
	&heavy_preprocessing_rule,
	&python_loop_preprocessing_rule,
	&decompression_rule,
	&tokenization_rule,
	&slow_storage_rule,
	&uneven_samples_rule,
	&pin_bound_rule,
	&gil_contention_rule,
	&gpu_memory_full_rule,
	/* the training thread and the device */
	&sync_points_rule,
	&pageable_copy_rule,
	&launch_bound_rule,
	&loop_overhead_rule,
	&data_parallel_api_rule,
	&recompiles_rule,
	&spin_wait_rule,
	/* phases */
	&checkpoint_stall_rule,
	&logging_stall_rule,
	&worker_restart_rule,
	&gc_pauses_rule,
	&evaluation_share_rule,
	&idle_job_rule,
	/* nothing wrong */
	&gpu_bound_rule,
	NULL,
};
