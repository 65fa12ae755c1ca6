/* SPDX-License-Identifier: MIT
 *
 * The table of phases. To add a framework or a convention, add a row; the first that holds counts, so
 * the particular comes before the general. tests/unit/explain/test_phases.c makes an example of each row
 * and sees that no row above takes it.
 *
 * What wraps the user's code or another iterator (tqdm's __iter__, decorators such as
 * no_grad, patched fit() methods) is not here on purpose, nor has what calls the user a row for all of its
 * files: what they wrap runs inside of them, and says itself what it is.
 */
#include "explain/ledger/phases.h"

#include <string.h>

#define DL "torch/utils/data/dataloader.py"

/* clang-format off */
const struct phase_rule phase_rules[] = {
	/* --- processes and threads that wait for others */
	{ PHASE_LAUNCH, PHASE_BY_FRAME, "torch/distributed/elastic/agent/|torch/distributed/launcher/|torch/distributed/run.py", "" },
	{ PHASE_LAUNCH, PHASE_BY_FRAME, "torch/multiprocessing/spawn.py", "ProcessContext.join" },
	{ PHASE_LAUNCH, PHASE_BY_FRAME, "multiprocessing/popen_fork.py", "Popen.poll|Popen.wait" },
	{ PHASE_LAUNCH, PHASE_BY_FRAME, "subprocess.py", "Popen.wait|Popen._wait|Popen._try_wait|Popen.communicate|Popen._communicate" },
	{ PHASE_LAUNCH, PHASE_BY_FRAME, "deepspeed/launcher/", "" },
	{ PHASE_JOIN, PHASE_BY_FRAME, "threading.py", "Thread.join|_shutdown|_wait_for_tstate_lock" },

	/* --- workers of loaders, whoever starts them */
	{ PHASE_WORKER, PHASE_BY_FRAME, "torch/utils/data/_utils/worker.py", "" },
	{ PHASE_PIN, PHASE_BY_FRAME, "torch/utils/data/_utils/pin_memory.py", "_pin_memory_loop|do_one_step" },
	{ PHASE_WORKER, PHASE_BY_FRAME, "multiprocessing/pool.py", "worker" },
	{ PHASE_WORKER, PHASE_BY_FRAME, "concurrent/futures/process.py", "_process_worker" },
	{ PHASE_WORKER, PHASE_BY_FRAME, "concurrent/futures/thread.py", "_worker" },
	{ PHASE_WORKER, PHASE_BY_FRAME, "gluon/data/dataloader.py", "worker_loop*|_worker_fn|_thread_worker_fn" },
	{ PHASE_WORKER, PHASE_BY_FRAME, "joblib/externals/loky/process_executor.py", "_process_worker" },

	/* --- taking batches that others made */
	{ PHASE_LOADER_WAIT, PHASE_BY_FRAME, DL, "_try_get_data|_get_data|_shutdown_workers" },
	{ PHASE_LOADER_WAIT, PHASE_BY_FRAME, "gluon/data/dataloader.py", "_MultiWorkerIter.__next__|_MultiWorkerIter.next" },
	{ PHASE_LOADER_WAIT, PHASE_BY_FRAME, "tensorflow/python/data/ops/iterator_ops.py", "_next_internal|__next__|get_next" },
	{ PHASE_LOADER_WAIT, PHASE_BY_FRAME, "tensorflow/python/ops/gen_dataset_ops.py", "iterator_get_next*" },
	{ PHASE_LOADER_WAIT, PHASE_BY_FRAME, "keras/", "OrderedEnqueuer.get|GeneratorEnqueuer.get|PyDatasetEnqueuer.get" },
	{ PHASE_LOADER_WAIT, PHASE_BY_FRAME, "ffcv/loader/", "EpochIterator.__next__" },
	{ PHASE_LOADER_WAIT, PHASE_BY_FRAME, "nvidia/dali/", "_get_outputs|share_outputs|schedule_run" },
	{ PHASE_LOADER_WAIT, PHASE_BY_FRAME, "multiprocessing/pool.py", "IMapIterator.next|ApplyResult.get|ApplyResult.wait|Pool.map|Pool.starmap" },
	{ PHASE_LOADER_WAIT, PHASE_BY_FRAME, "concurrent/futures/_base.py", "Future.result|result_iterator|_result_or_cancel|as_completed|wait" },
	{ PHASE_QUEUE_GET, PHASE_BY_FRAME, "multiprocessing/queues.py", "get" },
	{ PHASE_QUEUE_GET, PHASE_BY_FRAME, "queue.py", "get" },
	{ PHASE_QUEUE_GET, PHASE_BY_FRAME, "multiprocessing/connection.py", "_ConnectionBase.recv|_ConnectionBase.recv_bytes|_ConnectionBase.poll|wait" },

	/* --- collectives */
	{ PHASE_COMM, PHASE_BY_FRAME, "torch/distributed/distributed_c10d.py", "" },
	{ PHASE_COMM, PHASE_BY_FRAME, "torch/distributed/", "all_reduce*|all_gather*|reduce_scatter*|broadcast*|barrier*|wait" },
	{ PHASE_COMM, PHASE_BY_FRAME, "torch/nn/parallel/distributed.py", "_sync_buffers|_sync_params*|_verify_param*" },
	{ PHASE_COMM, PHASE_BY_FRAME, "horovod/", "synchronize|allreduce*|allgather*|broadcast*|barrier" },
	{ PHASE_COMM, PHASE_BY_FRAME, "deepspeed/comm/", "" },
	{ PHASE_COMM, PHASE_BY_FRAME, "mpi4py/", "" },

	/* --- waiting for the device */
	{ PHASE_DEVICE_SYNC, PHASE_BY_FRAME, "torch/cuda/", "synchronize|Event.synchronize|Stream.synchronize|_synchronize" },
	{ PHASE_DEVICE_SYNC, PHASE_BY_FRAME, "jax/", "block_until_ready|_value|__array__" },
	{ PHASE_DEVICE_SYNC, PHASE_BY_FRAME, "mxnet/", "asnumpy|asscalar|wait_to_read|waitall" },
	{ PHASE_DEVICE_SYNC, PHASE_BY_FRAME, "tensorflow/python/", "_EagerTensorBase.numpy|_EagerTensorBase._numpy" },
	{ PHASE_DEVICE_SYNC, PHASE_BY_FRAME, "cupy/", "get|asnumpy" },
	{ PHASE_DEVICE_SYNC, PHASE_BY_FRAME, "", "synchronize|cuda_synchronize|device_synchronize|stream_synchronize|block_until_ready" },

	/* --- copies between host and device */
	{ PHASE_TRANSFER, PHASE_BY_FRAME, "torch/nn/modules/module.py", "Module.to|Module.cuda|Module.cpu" },
	{ PHASE_TRANSFER, PHASE_BY_FRAME, "accelerate/utils/operations.py", "send_to_device" },
	{ PHASE_TRANSFER, PHASE_BY_FRAME, "transformers/trainer.py", "_prepare_inputs|_prepare_input" },
	{ PHASE_TRANSFER, PHASE_BY_FRAME, "", "batch_to_device|transfer_batch_to_device|move_data_to_device|to_device|send_to_device|copy_to_device" },
	{ PHASE_TRANSFER, PHASE_BY_FRAME, "jax/", "device_put*|_device_put*" },
	{ PHASE_TRANSFER, PHASE_BY_FRAME, "mxnet/", "as_in_context|copyto|as_in_ctx" },

	/* --- checkpoints and logs */
	{ PHASE_CHECKPOINT, PHASE_BY_FRAME, "torch/serialization.py", "" },
	{ PHASE_CHECKPOINT, PHASE_BY_FRAME, "safetensors/", "save_file|save_model|load_file|load_model" },
	{ PHASE_CHECKPOINT, PHASE_BY_FRAME, "transformers/", "save_pretrained|_save_checkpoint|save_model|_save*|from_pretrained" },
	{ PHASE_CHECKPOINT, PHASE_BY_FRAME, "tensorflow/python/checkpoint/", "save|write|restore|read" },
	{ PHASE_CHECKPOINT, PHASE_BY_FRAME, "orbax/", "save|restore|wait_until_finished" },
	{ PHASE_CHECKPOINT, PHASE_BY_FRAME, "keras/", "save|save_model|save_weights|load_model|load_weights" },
	{ PHASE_CHECKPOINT, PHASE_BY_FRAME, "numpy/lib/", "save|savez|savez_compressed|_savez|savetxt" },
	{ PHASE_CHECKPOINT, PHASE_BY_FRAME, "joblib/", "dump" },
	{ PHASE_CHECKPOINT, PHASE_BY_FRAME, "json/__init__.py", "dump" },
	{ PHASE_CHECKPOINT, PHASE_BY_FRAME, "", "save_checkpoint*|*_save_checkpoint|write_checkpoint*|save_model|save_weights|save_state|save_ckpt*|dump_checkpoint" },
	/* writers of formats that are mostly read */
	{ PHASE_CHECKPOINT, PHASE_BY_FRAME, "gzip.py|bz2.py|lzma.py", "GzipFile.write|GzipFile.close|GzipFile.flush|BZ2File.write|BZ2File.close|LZMAFile.write|LZMAFile.close|_WriteBufferStream.write|compress" },
	{ PHASE_LOG, PHASE_BY_FRAME, "PIL/", "Image.save|_save|_encode_tile|_save_all|putchunk" },
	{ PHASE_LOG, PHASE_BY_FRAME, "logging/", "" },
	{ PHASE_LOG, PHASE_BY_FRAME, "tqdm/", "update|refresh|display|print_status|fp_write|format_meter|moveto|set_postfix*|set_description*|write|close|clear|status_printer|render|get_work" },
	{ PHASE_LOG, PHASE_BY_FRAME, "rich/", "refresh|print|_render*|update|write" },
	{ PHASE_USER, PHASE_BY_FRAME, "wandb/agents/", "" },
	{ PHASE_LOG, PHASE_BY_FRAME, "wandb/", "" },
	{ PHASE_LOG, PHASE_BY_FRAME, "torch/utils/tensorboard/", "" },
	{ PHASE_LOG, PHASE_BY_FRAME, "tensorboardX/", "" },
	{ PHASE_LOG, PHASE_BY_FRAME, "tensorboard/", "" },
	{ PHASE_LOG, PHASE_BY_FRAME, "mlflow/tracking/", "" },
	{ PHASE_LOG, PHASE_BY_FRAME, "comet_ml/|neptune/|aim/|clearml/", "log*|_log*|append|track|report*|flush*" },
	{ PHASE_LOG, PHASE_BY_FRAME, "matplotlib/", "savefig|print_figure|show|pause" },
	{ PHASE_LOG, PHASE_BY_FRAME, "ipykernel/iostream.py", "write|flush|_flush|schedule" },
	{ PHASE_LOG, PHASE_BY_FRAME, "transformers/trainer.py", "Trainer.log|_maybe_log*" },
	{ PHASE_LOG, PHASE_BY_FRAME, "", "log_metrics|write_log*|log_scalar*|add_scalar*|log_step|log_epoch" },

	/* --- the framework calls the user's step */
	{ PHASE_USER, PHASE_BY_FRAME, "", "training_step|validation_step|test_step|predict_step" },

	/* --- making batches: frameworks */
	{ PHASE_LOAD, PHASE_BY_FRAME, DL, "_next_data|__next__|__init__|__iter__|_get_iterator|_reset|_process_data|_next_index" },
	{ PHASE_LOAD, PHASE_BY_FRAME, "torch/utils/data/", "" },
	{ PHASE_LOAD, PHASE_BY_FRAME, "torchdata/", "" },
	{ PHASE_LOAD, PHASE_BY_FRAME, "torchvision/transforms/", "" },
	{ PHASE_LOAD, PHASE_BY_FRAME, "torchvision/datasets/", "" },
	{ PHASE_LOAD, PHASE_BY_FRAME, "torchvision/io/", "" },
	{ PHASE_LOAD, PHASE_BY_FRAME, "torchaudio/", "" },
	{ PHASE_LOAD, PHASE_BY_FRAME, "gluon/data/", "" },
	{ PHASE_LOAD, PHASE_BY_FRAME, "mxnet/image/", "" },
	{ PHASE_LOAD, PHASE_BY_FRAME, "mxnet/io/", "" },
	{ PHASE_LOAD, PHASE_BY_FRAME, "tensorflow/python/data/", "" },
	/* tf.py_function in a pipeline, run by TensorFlow's own threads */
	{ PHASE_LOAD, PHASE_BY_FRAME, "tensorflow/python/ops/script_ops.py", "FuncRegistry.__call__" },
	{ PHASE_LOAD, PHASE_BY_FRAME, "keras/", "DataHandler.*|PyDataset.__getitem__|Sequence.__getitem__|get_numpy_iterator|get_tf_dataset|random_transform|_get_batches_of_transformed_samples|load_img|img_to_array|smart_resize" },
	{ PHASE_LOAD, PHASE_BY_FRAME, "transformers/data/", "" },
	{ PHASE_LOAD, PHASE_BY_FRAME, "transformers/", "_batch_encode_plus|_encode_plus|_call_one|batch_encode_plus|encode_plus|tokenize|convert_tokens_to_ids|get_batch_samples" },
	{ PHASE_LOAD, PHASE_BY_FRAME, "datasets/", "" },
	{ PHASE_LOAD_GUESS, PHASE_BY_FRAME, "tokenizers/", "" },
	{ PHASE_LOAD, PHASE_BY_FRAME, "webdataset/", "" },
	{ PHASE_LOAD, PHASE_BY_FRAME, "albumentations/", "" },
	{ PHASE_LOAD, PHASE_BY_FRAME, "imgaug/", "" },
	{ PHASE_LOAD_GUESS, PHASE_BY_FRAME, "PIL/", "" },
	{ PHASE_LOAD_GUESS, PHASE_BY_FRAME, "imageio/", "" },
	{ PHASE_LOAD_GUESS, PHASE_BY_FRAME, "skimage/", "" },
	{ PHASE_LOAD, PHASE_BY_FRAME, "librosa/", "" },
	{ PHASE_LOAD_GUESS, PHASE_BY_FRAME, "soundfile.py", "" },
	{ PHASE_LOAD_GUESS, PHASE_BY_FRAME, "h5py/", "" },
	{ PHASE_LOAD_GUESS, PHASE_BY_FRAME, "pandas/io/", "" },
	{ PHASE_LOAD_GUESS, PHASE_BY_FRAME, "pyarrow/", "" },
	{ PHASE_LOAD_GUESS, PHASE_BY_FRAME, "numpy/lib/", "load|NpzFile.*|loadtxt|genfromtxt|read_array" },
	{ PHASE_LOAD_GUESS, PHASE_BY_FRAME, "gzip.py", "" },
	{ PHASE_LOAD_GUESS, PHASE_BY_FRAME, "lzma.py", "" },
	{ PHASE_LOAD_GUESS, PHASE_BY_FRAME, "bz2.py", "" },
	{ PHASE_LOAD_GUESS, PHASE_BY_FRAME, "zipfile.py", "" },
	{ PHASE_LOAD_GUESS, PHASE_BY_FRAME, "tarfile.py", "" },
	{ PHASE_LOAD_GUESS, PHASE_BY_FRAME, "json/__init__.py", "load|loads" },

	/* --- making batches: what plain programs call it */
	{ PHASE_LOAD, PHASE_BY_FRAME, "", "*Dataset*.__getitem__|*Dataset*.__getitems__|*Dataset*.__iter__|*Dataset*.__next__" },
	{ PHASE_LOAD, PHASE_BY_FRAME, "", "*Loader*.__next__|*Loader*.__iter__|*Loader*.__getitem__|*Batcher*.__next__|*Batcher*.__iter__" },
	{ PHASE_LOAD, PHASE_BY_FRAME, "", "*Batches*.__next__|*Batches*.__iter__|*Batches*.__getitem__|*BatchIter*.__next__|*DataIter*.__next__" },
	{ PHASE_LOAD, PHASE_BY_FRAME, "", "*Augment*.__call__|*Collat*.__call__" },
	{ PHASE_LOAD, PHASE_BY_FRAME, "", "collate*|*_collate|*collate_fn" },
	{ PHASE_LOAD, PHASE_BY_FRAME, "", "load_batch*|next_batch*|get_batch*|make_batch*|read_batch*|fetch_batch*|prepare_batch*|build_batch*|sample_batch*|create_batch*|get_minibatch*|next_minibatch|make_minibatch*|sample_minibatch*" },
	{ PHASE_LOAD, PHASE_BY_FRAME, "", "batches|minibatches|iterate_minibatches|batch_iter*|batch_generator|data_loader|dataloader|data_generator|data_iter*|iter_batches|iterate_batches|generate_batches" },
	{ PHASE_LOAD, PHASE_BY_FRAME, "", "load_sample*|load_example*|read_sample*|read_example*|fetch_sample*|get_sample|get_example|augment*|random_crop|random_flip" },

	/* --- what other programs do as well: alone it is no sign of a training */
	{ PHASE_LOAD_GUESS, PHASE_BY_FRAME, "", "*Transform*.__call__|*Preprocess*.__call__|*Tokenizer*.__call__" },
	{ PHASE_LOAD_GUESS, PHASE_BY_FRAME, "", "load_image*|load_img|load_item*|load_audio|load_wav|load_video|load_record*|load_data*|read_image*|read_record*" },
	{ PHASE_LOAD_GUESS, PHASE_BY_FRAME, "", "preprocess*|pre_process*|parse_example*|parse_record*|tokenize*" },
	{ PHASE_LOAD_GUESS, PHASE_BY_FRAME, "", "decode*|_decode*|transform|__getitem__" },

	/* --- framework code on the CPU */
	{ PHASE_COMPILE, PHASE_BY_FRAME, "torch/_dynamo/", "_compile*|compile_inner|convert_frame|_convert_frame*|__call__" },
	{ PHASE_COMPILE, PHASE_BY_FRAME, "torch/_inductor/", "compile*|*_compile|codegen*" },
	{ PHASE_COMPILE, PHASE_BY_FRAME, "triton/compiler/", "" },
	{ PHASE_COMPILE, PHASE_BY_FRAME, "jax/", "backend_compile|compile_or_get_cached|_cached_compilation|trace_to_jaxpr*" },
	{ PHASE_ENGINE, PHASE_BY_FRAME, "torch/autograd/", "backward|grad|_engine_run_backward" },
	{ PHASE_ENGINE, PHASE_BY_FRAME, "torch/_tensor.py", "backward|Tensor.backward" },
	{ PHASE_ENGINE, PHASE_BY_FRAME, "tensorflow/python/", "quick_execute|TF_SessionRun_wrapper|_call_tf_sessionrun" },
	{ PHASE_ENGINE, PHASE_BY_FRAME, "mxnet/", "backward" },
	{ PHASE_DISPATCH, PHASE_BY_FRAME, "torch/nn/|torch/optim/|torch/autograd/|torch/cuda/|torch/amp/|torch/jit/|torch/fx/", "" },
	{ PHASE_DISPATCH, PHASE_BY_FRAME, "torch/_dynamo/|torch/_inductor/|torch/_functorch/|torch/_higher_order_ops/|torch/_library/", "" },
	{ PHASE_DISPATCH, PHASE_BY_FRAME, "torch/_tensor.py|torch/functional.py|torch/_ops.py|torch/overrides.py|torch/utils/checkpoint.py|torch/utils/_foreach_utils.py", "" },
	{ PHASE_DISPATCH, PHASE_BY_FRAME, "torchvision/models/|torchvision/ops/", "" },
	{ PHASE_DISPATCH, PHASE_BY_FRAME, "apex/", "" },
	{ PHASE_DISPATCH, PHASE_BY_FRAME, "deepspeed/", "step|forward|backward" },
	{ PHASE_DISPATCH, PHASE_BY_FRAME, "accelerate/accelerator.py", "backward|clip_grad_norm_" },
	{ PHASE_DISPATCH, PHASE_BY_FRAME, "tensorflow/python/eager/|tensorflow/python/ops/|tensorflow/python/framework/|tensorflow/python/util/dispatch.py", "" },
	{ PHASE_DISPATCH, PHASE_BY_FRAME, "jax/", "" },
	{ PHASE_DISPATCH, PHASE_BY_FRAME, "jaxlib/", "" },
	{ PHASE_DISPATCH, PHASE_BY_FRAME, "mxnet/ndarray/|mxnet/gluon/|mxnet/_ctypes/|mxnet/autograd.py|mxnet/optimizer/|mxnet/executor.py|mxnet/numpy/", "" },

	/* --- C functions, by the line that calls them */
	{ PHASE_DEVICE_SYNC, PHASE_BY_LINE, "", ".item()|.cpu()|.to('cpu')|.to(\"cpu\")|.synchronize(|.block_until_ready(" },
	{ PHASE_TRANSFER, PHASE_BY_LINE, "", ".to(|.cuda(|.copy_(|.pin_memory(" },
	{ PHASE_ENGINE, PHASE_BY_LINE, "", ".backward(" },
	{ PHASE_COMM, PHASE_BY_LINE, "", ".all_reduce(|.barrier(|.all_gather(|.broadcast(" },
	{ PHASE_CHECKPOINT, PHASE_BY_LINE, "", "pickle.dump(|torch.save(|np.save(|np.savez(|marshal.dump(|os.fsync(" },
	{ PHASE_LOG, PHASE_BY_LINE, "", "print(|stdout.write(|stderr.write(|stdout.flush(|.writerow(" },
	{ PHASE_LOAD_GUESS, PHASE_BY_LINE, "", "os.pread(|os.read(|.readinto(|cv2.imread(|cv2.imdecode(|cv2.resize(|cv2.cvtColor(|np.load(|np.frombuffer(|np.fromfile(|pickle.load(|pickle.loads(|zlib.decompress(|gzip.decompress(|lz4.frame.decompress(" },

	/* --- native code: the beginning of a library's name, and symbols */
	{ PHASE_DEVICE_SYNC, PHASE_BY_NATIVE, "libcuda.so|libcudart|libamdhip64|libhip|libze_loader", "*Synchronize*|*EventQuery*|*StreamQuery*|cuStreamWaitValue*|zeCommandQueueSynchronize|zeFenceHostSynchronize|zeEventHostSynchronize" },
	{ PHASE_TRANSFER, PHASE_BY_NATIVE, "libcuda.so|libcudart|libamdhip64|libhip", "cuMemcpy*|cudaMemcpy*|hipMemcpy*|cuMemHostAlloc*|cudaHostAlloc*|cuMemPrefetch*" },
	{ PHASE_DEVICE_SYNC, PHASE_BY_NATIVE, "libhsa-runtime64", "hsa_signal_wait*|hsa_amd_signal_wait*" },
	{ PHASE_DRIVER, PHASE_BY_NATIVE, "libcuda.so|libamdhip64|libhsa-runtime64", "" },
	{ PHASE_COMM, PHASE_BY_NATIVE, "libnccl|librccl|libgloo|libmpi|libucp|libucs|libfabric|libibverbs", "" },
	{ PHASE_COMM, PHASE_BY_NATIVE, "", "nccl*|rccl*|*gloo*|MPI_*|*c10d*|*horovod*" },
	{ PHASE_POOL, PHASE_BY_NATIVE, "libgomp|libiomp5|libomp|libopenblas|libmkl|libblis|libtbb", "" },
	{ PHASE_HOST, PHASE_BY_NATIVE, "libpython|python3|_multiarray_umath", "" },
};
/* clang-format on */

const size_t n_phase_rules = sizeof(phase_rules) / sizeof(phase_rules[0]);

/* Where the inner one counts. The text of a line is the weakest sign: ".to(" may change a type. */
static const struct {
	enum phase outer, inner, result;
	bool not_by_line;
} steps[] = {
	{ PHASE_LOAD, PHASE_LOADER_WAIT, PHASE_LOADER_WAIT, false },
	{ PHASE_LOAD, PHASE_QUEUE_GET, PHASE_LOADER_WAIT, false },
	{ PHASE_LOAD, PHASE_DEVICE_SYNC, PHASE_DEVICE_SYNC, true },
	{ PHASE_LOAD, PHASE_TRANSFER, PHASE_TRANSFER, true },
	{ PHASE_LOAD, PHASE_USER, PHASE_USER, false },
	{ PHASE_LOAD_GUESS, PHASE_LOADER_WAIT, PHASE_LOADER_WAIT, false },
	{ PHASE_LOAD_GUESS, PHASE_QUEUE_GET, PHASE_LOADER_WAIT, false },
	{ PHASE_LOAD_GUESS, PHASE_LOAD, PHASE_LOAD, false },
	{ PHASE_LOAD_GUESS, PHASE_DISPATCH, PHASE_DISPATCH, false },
	{ PHASE_LOAD_GUESS, PHASE_ENGINE, PHASE_ENGINE, false },
	{ PHASE_LOAD_GUESS, PHASE_DEVICE_SYNC, PHASE_DEVICE_SYNC, false },
	{ PHASE_LOAD_GUESS, PHASE_TRANSFER, PHASE_TRANSFER, true },
	{ PHASE_WORKER, PHASE_LOAD, PHASE_LOAD, false },
	{ PHASE_WORKER, PHASE_LOAD_GUESS, PHASE_LOAD, false },
	{ PHASE_WORKER, PHASE_QUEUE_GET, PHASE_WORK_WAIT, false },
	{ PHASE_WORKER, PHASE_USER, PHASE_USER, false },
	{ PHASE_LOADER_WAIT, PHASE_USER, PHASE_USER, false },
	{ PHASE_DISPATCH, PHASE_COMM, PHASE_COMM, false },
	{ PHASE_DISPATCH, PHASE_DEVICE_SYNC, PHASE_DEVICE_SYNC, false },
	{ PHASE_DISPATCH, PHASE_TRANSFER, PHASE_TRANSFER, false },
	{ PHASE_DISPATCH, PHASE_ENGINE, PHASE_ENGINE, false },
	{ PHASE_DISPATCH, PHASE_COMPILE, PHASE_COMPILE, false },
	{ PHASE_DISPATCH, PHASE_USER, PHASE_USER, false },
	{ PHASE_DISPATCH, PHASE_POOL, PHASE_ENGINE, true },
	{ PHASE_DISPATCH, PHASE_DRIVER, PHASE_DRIVER, true },
	{ PHASE_DISPATCH, PHASE_LOADER_WAIT, PHASE_LOADER_WAIT, false },
	{ PHASE_ENGINE, PHASE_COMM, PHASE_COMM, false },
	{ PHASE_ENGINE, PHASE_DEVICE_SYNC, PHASE_DEVICE_SYNC, false },
	{ PHASE_ENGINE, PHASE_TRANSFER, PHASE_TRANSFER, true },
	{ PHASE_ENGINE, PHASE_DRIVER, PHASE_DRIVER, true },
	{ PHASE_LOG, PHASE_DEVICE_SYNC, PHASE_DEVICE_SYNC, false },
	{ PHASE_DRIVER, PHASE_DEVICE_SYNC, PHASE_DEVICE_SYNC, true },
	{ PHASE_DRIVER, PHASE_TRANSFER, PHASE_TRANSFER, true },
	{ PHASE_DEVICE_SYNC, PHASE_HOST, PHASE_NONE, true },
	{ PHASE_TRANSFER, PHASE_HOST, PHASE_NONE, true },
};

enum phase phase_step(enum phase outer, enum phase inner, enum phase_by by)
{
	if (outer == PHASE_NONE || outer == PHASE_USER)
		/* native code of no framework has no phase of its own */
		return inner == PHASE_NONE || inner == PHASE_HOST ? outer : inner;
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		if (steps[i].outer == outer && steps[i].inner == inner)
			return steps[i].not_by_line && by == PHASE_BY_LINE ? outer
									   : steps[i].result;
	return outer;
}

#define ON(kind)  (1u << (kind))
#define ON_CPU    (ON(WAIT_RUNNING) | ON(WAIT_RUNNABLE))
#define ALWAYS    ((1u << WAIT_KINDS) - 1)
#define ON_OTHERS (ON(WAIT_PIPE) | ON(WAIT_QUEUE) | ON(WAIT_POLL) | ON(WAIT_LOCK) | ON(WAIT_SOCKET))

/* In order: what a thread in a phase does, by what it waits for. Waiting for the GIL, for memory and
 * for the driver is decided before (activity_state.c). */
static const struct {
	enum phase phase;
	unsigned kinds;
	enum time_state state;
} states[] = {
	/* On a CPU it takes what was made: it unpickles, it maps shared memory. It loads nothing. */
	{ PHASE_LOADER_WAIT, ALWAYS, TIME_DATA_WAIT },
	{ PHASE_QUEUE_GET, ALWAYS, TIME_DATA_WAIT },
	{ PHASE_LOAD, ON(WAIT_PIPE) | ON(WAIT_QUEUE), TIME_DATA_WAIT },
	{ PHASE_LOAD, ALWAYS, TIME_DATA_LOAD },
	{ PHASE_LOAD_GUESS, ON(WAIT_PIPE) | ON(WAIT_QUEUE), TIME_DATA_WAIT },
	{ PHASE_LOAD_GUESS, ALWAYS, TIME_DATA_LOAD },
	{ PHASE_WORKER, ON_OTHERS, TIME_IDLE },
	{ PHASE_WORKER, ALWAYS, TIME_DATA_LOAD },
	{ PHASE_WORK_WAIT, ON_CPU, TIME_DATA_LOAD },
	{ PHASE_WORK_WAIT, ALWAYS, TIME_IDLE },
	{ PHASE_PIN, ON_OTHERS, TIME_IDLE },
	{ PHASE_PIN, ALWAYS, TIME_TRANSFER },
	{ PHASE_TRANSFER, ALWAYS, TIME_TRANSFER },
	{ PHASE_DISPATCH, ON_CPU, TIME_DISPATCH },
	{ PHASE_DISPATCH, ON(WAIT_LOCK), TIME_LOCK_WAIT },
	{ PHASE_DISPATCH, ON(WAIT_FILE) | ON(WAIT_DISK), TIME_IO },
	{ PHASE_DISPATCH, ALWAYS, TIME_OTHER },
	{ PHASE_ENGINE, ON_CPU | ON(WAIT_LOCK), TIME_DISPATCH },
	{ PHASE_ENGINE, ALWAYS, TIME_OTHER },
	{ PHASE_COMPILE, ALWAYS, TIME_DISPATCH },
	{ PHASE_DRIVER, ON_CPU, TIME_DISPATCH },
	{ PHASE_DRIVER, ALWAYS, TIME_GPU_WAIT },
	{ PHASE_DEVICE_SYNC, ALWAYS, TIME_GPU_WAIT },
	{ PHASE_COMM, ALWAYS, TIME_COMM_WAIT },
	{ PHASE_CHECKPOINT, ALWAYS, TIME_IO },
	{ PHASE_LOG, ALWAYS, TIME_IO },
	{ PHASE_LAUNCH, ON_CPU, TIME_PYTHON },
	{ PHASE_LAUNCH, ALWAYS, TIME_IDLE },
	{ PHASE_JOIN, ON_CPU, TIME_PYTHON },
	{ PHASE_JOIN, ALWAYS, TIME_IDLE },
};

bool phase_state(enum phase p, enum wait_kind kind, bool theirs, enum time_state *ret)
{
	if (kind < 0 || kind >= WAIT_KINDS)
		return false;
	/* Nobody asks a helping thread for anything: what it takes from a queue is its next task. */
	if (p == PHASE_QUEUE_GET && theirs)
		p = PHASE_WORK_WAIT;
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
		if (states[i].phase == p && states[i].kinds & ON(kind)) {
			*ret = states[i].state;
			return true;
		}
	return false;
}

bool phase_is_training(const struct phase_rule *r)
{
	static const char *const anybodys[] = { "multiprocessing/", "concurrent/", "joblib/" };

	if (r->phase == PHASE_LOAD)
		return true;
	if (r->phase != PHASE_WORKER && r->phase != PHASE_LOADER_WAIT)
		return false;
	for (size_t i = 0; i < sizeof(anybodys) / sizeof(anybodys[0]); i++)
		if (strncmp(r->file, anybodys[i], strlen(anybodys[i])) == 0)
			return false;
	return true;
}

const char *phase_name(enum phase p)
{
	static const char *const names[PHASES] = {
		[PHASE_NONE] = "none",
		[PHASE_USER] = "user",
		[PHASE_LOADER_WAIT] = "loader_wait",
		[PHASE_QUEUE_GET] = "queue_get",
		[PHASE_LOAD] = "load",
		[PHASE_LOAD_GUESS] = "load_guess",
		[PHASE_WORKER] = "worker",
		[PHASE_WORK_WAIT] = "work_wait",
		[PHASE_PIN] = "pin",
		[PHASE_TRANSFER] = "transfer",
		[PHASE_DISPATCH] = "dispatch",
		[PHASE_ENGINE] = "engine",
		[PHASE_COMPILE] = "compile",
		[PHASE_POOL] = "pool",
		[PHASE_DRIVER] = "driver",
		[PHASE_HOST] = "host",
		[PHASE_DEVICE_SYNC] = "device_sync",
		[PHASE_COMM] = "comm",
		[PHASE_CHECKPOINT] = "checkpoint",
		[PHASE_LOG] = "log",
		[PHASE_LAUNCH] = "launch",
		[PHASE_JOIN] = "join",
	};

	return p >= 0 && p < PHASES ? names[p] : "none";
}
