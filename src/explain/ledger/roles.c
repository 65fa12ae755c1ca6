/* SPDX-License-Identifier: MIT
 *
 * The table of roles. To teach Spotter a kind of thread, add a row; the first that holds counts.
 * tests/unit/explain/test_roles.c makes an example of each row and sees that no row above takes it.
 *
 * Names of threads are as programs set them (prctl, pthread_setname_np), cut at 15 bytes; one that was
 * never set is the program's ("python3").
 */
#include "explain/ledger/roles.h"
#include "explain/place.h"

#include "explain/ledger/phases.h"

#include <string.h>

/* clang-format off */
const struct role_rule role_rules[] = {
	/* --- by what they run */
	{ ROLE_PIN_THREAD, ROLE_BY_FRAME, "torch/utils/data/_utils/pin_memory.py", "_pin_memory_loop" },
	{ ROLE_LOADER_WORKER, ROLE_BY_FRAME, "torch/utils/data/_utils/worker.py", "_worker_loop|_process_worker_loop|_base_worker_loop|_thread_worker_loop|*_worker_loop" },
	{ ROLE_LOADER_WORKER, ROLE_BY_FRAME, "multiprocessing/pool.py", "worker" },
	{ ROLE_LOADER_WORKER, ROLE_BY_FRAME, "concurrent/futures/process.py", "_process_worker" },
	{ ROLE_LOADER_WORKER, ROLE_BY_FRAME, "concurrent/futures/thread.py", "_worker" },
	{ ROLE_LOADER_WORKER, ROLE_BY_FRAME, "joblib/externals/loky/process_executor.py", "_process_worker" },
	{ ROLE_LOADER_WORKER, ROLE_BY_FRAME, "gluon/data/dataloader.py", "worker_loop*|_worker_fn|_thread_worker_fn" },
	{ ROLE_LOADER_WORKER, ROLE_BY_FRAME, "tensorflow/python/ops/script_ops.py", "FuncRegistry.__call__" },
	{ ROLE_LOADER_WORKER, ROLE_BY_FRAME, "keras/", "OrderedEnqueuer._run|GeneratorEnqueuer._run|PyDatasetEnqueuer._run" },
	{ ROLE_CHILD, ROLE_BY_FRAME, "multiprocessing/forkserver.py", "main" },
	{ ROLE_CHILD, ROLE_BY_FRAME, "multiprocessing/resource_tracker.py", "main" },
	{ ROLE_FRAMEWORK_THREADS, ROLE_BY_FRAME, "multiprocessing/pool.py", "Pool._handle_workers|Pool._handle_tasks|Pool._handle_results" },
	{ ROLE_FRAMEWORK_THREADS, ROLE_BY_FRAME, "concurrent/futures/process.py", "_ExecutorManagerThread.run|_queue_management_worker" },
	{ ROLE_FRAMEWORK_THREADS, ROLE_BY_FRAME, "torch/nn/parallel/parallel_apply.py", "_worker" },
	{ ROLE_FRAMEWORK_THREADS, ROLE_BY_FRAME, "torch/_inductor/", "*_worker_main|_recv_loop|_read_thread" },
	{ ROLE_OTHER, ROLE_BY_FRAME, "tqdm/", "TMonitor.run" },
	{ ROLE_OTHER, ROLE_BY_FRAME, "logging/", "QueueListener._monitor" },
	{ ROLE_OTHER, ROLE_BY_FRAME, "tensorboard/|tensorboardX/|wandb/|mlflow/|comet_ml/|neptune/", "run|_run|_thread_body|loop_check_*|check_*" },

	/* --- by what they are called */
	{ ROLE_PIN_THREAD, ROLE_BY_THREAD, "", "pin_memory*|pt_pin*|pt_data_pin" },
	{ ROLE_LOADER_WORKER, ROLE_BY_THREAD, "", "pt_data_worker*|tf_data_*|dali*|DALI*" },
	{ ROLE_FRAMEWORK_THREADS, ROLE_BY_THREAD, "", "pt_autograd_*|pt_*_pool|tf_*|Eigen*|tsl*|jax*|XLA*|xla*|pjrt*|cuda-*|cuda0*|CUDA*|hip*|rocm*|amdgpu*|mx_*" },
	{ ROLE_COMM_THREADS, ROLE_BY_THREAD, "", "pt_nccl*|nccl*|NCCL*|rccl*|gloo*|pt_gloo*|pt_tcpstore*|pt_elastic*|horovod*|ucx*|ib_*|mpi*" },
	{ ROLE_BLAS_THREADS, ROLE_BY_THREAD, "", "OpenBLAS*|openblas*|omp_*|OMP*|gomp*|mkl*|MKL*|blas*|tbb*|libgomp*" },
	{ ROLE_TOKENIZER_THREADS, ROLE_BY_THREAD, "", "tokenizers*|rayon*" },
	{ ROLE_OTHER, ROLE_BY_THREAD, "", "tensorboard*|wandb*|*logger*|Logger*|tqdm*|IOLoop*|ZMQbg*|jupyter*" },

	/* Threads the kernel adds to a process that asked for it: io_uring (5.12), vhost (6.4). */
	{ ROLE_KERNEL_SIDE, ROLE_BY_THREAD, "", "iou-wrk-*|iou-sqp-*|vhost-*" },

	/* --- by what they run in it: c10d::ProcessGroupGloo::runLoop is in libtorch_cpu, and what it does is the exchange */
	{ ROLE_COMM_THREADS, ROLE_BY_SYMBOL, "", "*c10d*ProcessGroup*|*gloo*|ncclProxy*" },

	/* --- by the library they run in */
	{ ROLE_COMM_THREADS, ROLE_BY_LIBRARY, "", "libnccl*|librccl*|libgloo*|libmpi*|libucp*|libucs*|libfabric*|libibverbs*" },
	{ ROLE_BLAS_THREADS, ROLE_BY_LIBRARY, "", "libgomp*|libiomp5*|libomp*|libopenblas*|libmkl*|libblis*|libtbb*|libscipy_openblas*" },
	{ ROLE_TOKENIZER_THREADS, ROLE_BY_LIBRARY, "", "tokenizers*" },
	{ ROLE_FRAMEWORK_THREADS, ROLE_BY_LIBRARY, "", "libtorch*|libc10*|libtensorflow*|_pywrap_tensorflow*|libjax*|xla_extension*|libmxnet*|libcuda*|libnv*|libamdhip64*|libhsa*" },

	/* --- by the process */
	{ ROLE_CHILD, ROLE_BY_PROGRAM, "", "ptxas|nvcc|cicc|fatbinary|nvlink|gcc*|g++*|cc1|cc1plus|cc|c++|ld|ld.*|as|collect2|clang*|ninja|hipcc|nvidia-smi|git|sh|bash|dash|make" },
	{ ROLE_CHILD, ROLE_BY_COMMAND, "", "multiprocessing.resource_tracker|multiprocessing.forkserver|multiprocessing.semaphore_tracker|torch/_inductor/compile_worker|torch._inductor.compile_worker|wandb-core|wandb-service|tensorboard" },
};
/* clang-format on */

const size_t n_role_rules = sizeof(role_rules) / sizeof(role_rules[0]);

static bool any_of(const char *patterns, const char *text, bool piece)
{
	size_t n, len = strlen(text);

	for (const char *p = patterns; *p; p += n + (p[n] == '|')) {
		n = strcspn(p, "|");
		if (piece ? memmem(text, len, p, n) != NULL : phase_glob(p, n, text, len))
			return true;
	}
	return false;
}

int role_of_place(const struct place *p)
{
	if (p->kind == PLACE_NATIVE) {
		int by_symbol = role_of_text(ROLE_BY_SYMBOL, p->function);

		if (by_symbol >= 0)
			return by_symbol;
		return role_of_text(ROLE_BY_LIBRARY, place_file_name(p));
	}
	for (size_t i = 0; i < n_role_rules; i++)
		if (role_rules[i].by == ROLE_BY_FRAME &&
		    phase_function(role_rules[i].name, p->function, true) &&
		    phase_file(role_rules[i].file, p->file))
			return (int)i;
	return -1;
}

int role_of_text(enum role_by by, const char *text)
{
	if (!*text)
		return -1;
	for (size_t i = 0; i < n_role_rules; i++)
		if (role_rules[i].by == by &&
		    any_of(role_rules[i].name, text, by == ROLE_BY_COMMAND))
			return (int)i;
	return -1;
}
