# SPDX-License-Identifier: MIT
"""What rules of other tools would say of the same record: each a pure function of the facts, with the tool's own
thresholds. Where a tool measures inside the program (step and loader times) it gets what Spotter's record has of them,
which is at least as much. What an advice means in Spotter's causes is in ADVICE, and meant generously."""
from . import gpuprof, sagemaker, tensorboard, traceml
from .facts import facts

INPUT = {"no_workers", "too_few_workers", "heavy_preprocessing", "python_loop_preprocessing", "tokenization", "decompression",
         "uneven_samples", "worker_restart", "gil_contention"}
STORAGE = {"slow_storage", "cache_thrash", "network_storage", "many_small_files", "duplicate_reading"}
SPIKES = {"checkpoint_stall", "gc_pauses", "recompiles", "evaluation_share", "uneven_samples", "logging_stall",
          "worker_restart"}
HOST = {"loop_overhead", "sync_points", "launch_bound", "checkpoint_stall", "logging_stall", "gc_pauses", "recompiles",
        "evaluation_share"}

ADVICE = {
    "cpu bottleneck": INPUT | {"thread_oversubscription", "cpu_neighbour", "too_many_workers"},
    "io bottleneck": STORAGE,
    "gpu under-used": {"small_batch", "idle_gpus", "not_on_gpu", "idle_job"},
    "gpu fluctuates": INPUT | STORAGE | SPIKES,
    "batch too small": {"small_batch"},
    "gpu memory grows": {"gpu_oom", "memory_leak", "gpu_memory_full"},
    "gpu memory nearly full": {"gpu_memory_full", "gpu_oom"},
    "number of loader processes": {"no_workers", "too_few_workers", "too_many_workers"},
    "gpus unevenly loaded": {"idle_gpus", "data_parallel_api", "input_straggler", "compute_straggler"},
    "step outliers": SPIKES,
    "long start": {"slow_startup"},
    "set num_workers": {"no_workers", "too_few_workers"},
    "increase the batch": {"small_batch"},
    "communication": {"exposed_communication"},
    "input bound": INPUT | STORAGE,
    "copies": {"pageable_copy"},
    "residual": HOST,
    "straggler": {"input_straggler", "compute_straggler"},
    "first step slow": {"recompiles", "slow_startup"},
    "hot": {"gpu_throttled"},
    "pcie bound": {"pageable_copy", "data_parallel_api"},
    "cache thrash": {"cache_thrash"},
    "swapping": {"memory_pressure"},
    "starved steps": INPUT | STORAGE,
    "uneven workers": {"uneven_samples"},
    "unaccounted": HOST,
}
RULES = {"SageMaker Debugger": sagemaker.rules, "TensorBoard plug-in": tensorboard.rules, "TraceML": traceml.rules,
         "gpuprof": gpuprof.rules}
__all__ = ["ADVICE", "RULES", "facts"]
