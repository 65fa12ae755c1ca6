/* SPDX-License-Identifier: MIT
 *
 * The table of topics. To add what a library calls its work, add a row: all rows that hold count. Rows
 * of lines are for calls of C functions, which have no frame: they are held against the innermost
 * Python line alone.
 */
#include "explain/ledger/topics.h"

#include <string.h>

/* clang-format off */
const struct topic_rule topic_rules[] = {
	{ TOPIC_DECOMPRESS, PHASE_BY_FRAME, "gzip.py|bz2.py|lzma.py|zipfile.py|zipfile/__init__.py|_compression.py|compression/", "read|readinto|read1|peek|_read*|decompress|open|_update_crc|readline" },
	{ TOPIC_DECOMPRESS, PHASE_BY_FRAME, "numpy/lib/npyio.py|numpy/lib/_npyio_impl.py", "NpzFile.__getitem__" },
	{ TOPIC_DECOMPRESS, PHASE_BY_FRAME, "zstandard/|lz4/|snappy/|blosc/|blosc2/|numcodecs/|brotli.py", "" },
	{ TOPIC_DECOMPRESS, PHASE_BY_LINE, "", "decompress(|decompressobj(|gzip.open(|bz2.|lzma.|blosc.|snappy." },
	{ TOPIC_DECOMPRESS, PHASE_BY_NATIVE, "libz.so|libzstd.so|liblzma.so|libbz2.so|liblz4.so|libsnappy.so|libblosc|libbrotlidec|libdeflate", "" },
	{ TOPIC_DECOMPRESS, PHASE_BY_NATIVE, "", "inflate|inflate_fast|ZSTD_decompress*|LZ4_decompress*|BZ2_bzDecompress*|lzma_code|H5Z_*" },

	{ TOPIC_DECODE, PHASE_BY_FRAME, "PIL/", "open|load|decode|convert|draft|resize|_open" },
	{ TOPIC_DECODE, PHASE_BY_FRAME, "torchvision/io/|torchaudio/|imageio/|skimage/io/|librosa/|soundfile.py|decord/|av/|turbojpeg.py|pydub/|pydicom/|nibabel/", "" },
	{ TOPIC_DECODE, PHASE_BY_FRAME, "wave.py|matplotlib/image.py", "readframes|imread|open" },
	{ TOPIC_DECODE, PHASE_BY_LINE, "", "imread(|imdecode(|Image.open(|decode_jpeg(|decode_image(|decode_png(|wavfile.read(|.decode_frame(" },
	{ TOPIC_DECODE, PHASE_BY_NATIVE, "libjpeg|libturbojpeg|libpng|libwebp|libtiff|libopenjp2|libavcodec|libswscale|libsndfile|libopencv_imgcodecs|libgif|libheif|libFLAC|libvorbis|libmpg123|libmp3lame", "" },

	{ TOPIC_TOKENIZE, PHASE_BY_FRAME, "transformers/tokenization_utils.py|transformers/tokenization_utils_base.py|transformers/tokenization_utils_fast.py|tokenizers/|sentencepiece/|tiktoken/|spacy/|nltk/tokenize/|torchtext/data/|sacremoses/|youtokentome/", "" },
	{ TOPIC_TOKENIZE, PHASE_BY_FRAME, "transformers/", "_tokenize|_batch_encode_plus|_encode_plus|batch_encode_plus|convert_tokens_to_ids|_call_one|tokenize" },
	{ TOPIC_TOKENIZE, PHASE_BY_FRAME, "", "tokenize|tokenise|*_tokenize|tokenize_*|*tokenizer*|WordPiece*.*|*Tokenizer*.*|*Tokeniser*.*|SentencePiece*.*|encode_text|bpe|*_bpe|bpe_*|wordpiece*|*.tokenize|merge_word*|merge_pair*|best_pair|get_pairs|apply_merges|*subword*|text_to_ids|words_to_ids|numericalize" },
	{ TOPIC_TOKENIZE, PHASE_BY_LINE, "", "tokenizer(|tokenize(|tokenizer.encode|encode_batch(|tokenizer.batch" },
	{ TOPIC_TOKENIZE, PHASE_BY_NATIVE, "tokenizers.|_sentencepiece|_tiktoken", "" },

	{ TOPIC_PARSE, PHASE_BY_FRAME, "csv.py|json/|xml/|pandas/io/|yaml/|pyarrow/csv.py", "" },
	{ TOPIC_PARSE, PHASE_BY_FRAME, "numpy/lib/npyio.py|numpy/lib/_npyio_impl.py", "loadtxt|_read|genfromtxt|fromregex" },
	{ TOPIC_PARSE, PHASE_BY_LINE, "", "read_csv(|json.loads(|json.load(|csv.reader(|loadtxt(|genfromtxt(|orjson.loads(" },

	{ TOPIC_FILES, PHASE_BY_FRAME, "glob.py|os.py|pathlib.py|pathlib/|genericpath.py|posixpath.py|fnmatch.py", "" },
	/* a file of its own for each array: what is opened and parsed for it is more than what is read */
	{ TOPIC_FILES, PHASE_BY_FRAME, "numpy/lib/npyio.py|numpy/lib/_npyio_impl.py", "load" },
	{ TOPIC_FILES, PHASE_BY_FRAME, "torchvision/datasets/folder.py", "make_dataset|find_classes|DatasetFolder.make_dataset" },
	{ TOPIC_FILES, PHASE_BY_LINE, "", "open(|os.stat(|os.listdir(|os.scandir(|os.path.exists(|os.path.getsize(|.exists()|.stat()|.iterdir()|glob(" },

	{ TOPIC_CHECKPOINT, PHASE_BY_FRAME, "torch/serialization.py|safetensors/|orbax/|flax/training/checkpoints.py|tensorflow/python/checkpoint/|tensorflow/python/saved_model/|keras/src/saving/|keras/saving/|joblib/numpy_pickle.py", "" },
	{ TOPIC_CHECKPOINT, PHASE_BY_FRAME, "torch/distributed/checkpoint/|torch/distributed/_shard/checkpoint/", "" },
	{ TOPIC_CHECKPOINT, PHASE_BY_FRAME, "transformers/|lightning/|pytorch_lightning/|accelerate/|keras/|deepspeed/|mxnet/", "save|save_*|_save*|save_checkpoint|save_model|save_pretrained|save_weights|save_parameters|load_checkpoint" },
	{ TOPIC_CHECKPOINT, PHASE_BY_FRAME, "", "save_checkpoint|save_checkpoints|write_checkpoint|load_checkpoint|restore_checkpoint|dump_checkpoint|store_checkpoint|save_model|save_state|save_weights|dump_model|save_snapshot" },
	{ TOPIC_CHECKPOINT, PHASE_BY_LINE, "", "torch.save(|pickle.dump(|np.save(|np.savez|joblib.dump(|save_checkpoint(|model.save(|save_pretrained(|save_file(|.state_dict()" },

	{ TOPIC_LOG, PHASE_BY_FRAME, "logging/|torch/utils/tensorboard/|tensorboardX/|tensorboard/|tensorflow/python/ops/summary_ops_v2.py|loguru/|rich/|absl/logging/|csv_logger.py|lightning/pytorch/loggers/|pytorch_lightning/loggers/", "" },
	{ TOPIC_LOG, PHASE_BY_FRAME, "wandb/|mlflow/|comet_ml/|neptune/|clearml/|aim/|trackio/|swanlab/", "" },
	{ TOPIC_LOG, PHASE_BY_FRAME, "PIL/", "Image.save" },
	{ TOPIC_LOG, PHASE_BY_FRAME, "", "log_metrics|log_step|log_metric|write_log|log_scalars|log_images|log_histogram*|write_metrics|append_log" },
	{ TOPIC_LOG, PHASE_BY_LINE, "", "print(|add_scalar(|add_histogram(|add_image(|logging.|logger.|wandb.log(|mlflow.log|writer.add|log_file.|.flush()|os.fsync(|json.dump(|.commit()" },

	{ TOPIC_UPLOAD, PHASE_BY_FRAME, "requests/|urllib3/|urllib/request.py|http/client.py|httpx/|aiohttp/client.py|aiohttp/client_reqrep.py|aiohttp/connector.py|boto3/|botocore/|s3fs/|gcsfs/|google/cloud/|google/api_core/|azure/|fsspec/implementations/http.py|paramiko/|smtplib.py|ftplib.py|s3transfer/|huggingface_hub/", "" },
	{ TOPIC_UPLOAD, PHASE_BY_FRAME, "wandb/|mlflow/|comet_ml/|neptune/", "_request|_send|send|_publish*|publish*|_communicate*|request|post|put|rest_*|http_request|call_endpoint|finish|join" },
	{ TOPIC_UPLOAD, PHASE_BY_FRAME, "ssl.py", "read|write|send|sendall|recv|recv_into|do_handshake" },
	{ TOPIC_UPLOAD, PHASE_BY_LINE, "", "requests.post(|requests.put(|requests.get(|urlopen(|.upload_file(|.put_object(|.sendall(" },

	{ TOPIC_PROGRESS, PHASE_BY_FRAME, "tqdm/|matplotlib/|seaborn/|progressbar/|alive_progress/|rich/progress.py|rich/live.py|plotly/|visdom/", "" },
	{ TOPIC_PROGRESS, PHASE_BY_LINE, "", "plt.|ax.plot(|savefig(|.set_postfix(|.set_description(" },

	{ TOPIC_EVALUATE, PHASE_BY_FRAME, "lightning/pytorch/loops/evaluation_loop.py|pytorch_lightning/loops/dataloader/evaluation_loop.py|pytorch_lightning/loops/evaluation_loop.py", "" },
	{ TOPIC_EVALUATE, PHASE_BY_FRAME, "transformers/", "evaluate|evaluation_loop|prediction_loop|prediction_step|_evaluate|_maybe_log_save_evaluate" },
	{ TOPIC_EVALUATE, PHASE_BY_FRAME, "keras/", "evaluate|test_step|make_test_function|test_function" },
	{ TOPIC_EVALUATE, PHASE_BY_FRAME, "", "evaluate|evaluate_*|*_evaluate|validate|validate_*|validation|validation_*|run_validation|test|test_epoch|test_model|eval|eval_*|eval_epoch|do_eval|evaluation|*_evaluation|*_validation|*_validate|val_epoch|val_loop|val_loss|run_val|do_val|estimate_loss|dev_loss|dev_score|dev_accuracy|dev_metrics|dev_epoch|dev_step|eval_loss|*_on_dev|*_on_val|held_out_loss|held_out_score|held_out_accuracy|*_held_out|val_step|val_score|val_accuracy|val_metrics|valid_epoch|valid_loop|valid_loss|valid_step|valid_score|test_accuracy|test_loss|validation_loss" },

	/* What runs compiled code has frames there, too: only where compiling begins. */
	{ TOPIC_COMPILE, PHASE_BY_FRAME, "torch/_dynamo/convert_frame.py|torch/_dynamo/symbolic_convert.py|torch/_dynamo/output_graph.py|torch/_inductor/graph.py|torch/_inductor/scheduler.py|torch/_inductor/codegen/|torch/_inductor/fx_passes/|torch/fx/experimental/|triton/compiler/|torch/onnx/", "" },
	{ TOPIC_COMPILE, PHASE_BY_FRAME, "torch/_inductor/compile_fx.py|torch/_functorch/", "compile_fx*|fx_codegen_and_compile|*bw_compiler*|*fw_compiler*|create_aot_dispatcher_function|aot_dispatch_*" },
	{ TOPIC_COMPILE, PHASE_BY_FRAME, "triton/runtime/", "_do_compile|compile|_bench|benchmark" },
	{ TOPIC_COMPILE, PHASE_BY_FRAME, "torch/jit/", "trace|trace_module|script" },
	{ TOPIC_COMPILE, PHASE_BY_FRAME, "jax/_src/interpreters/|jax/_src/compiler.py|jax/_src/pjit.py|jax/_src/stages.py", "*compile*|*lower*|trace_to_jaxpr*|*_trace*|from_hlo|infer_params*" },
	{ TOPIC_COMPILE, PHASE_BY_FRAME, "tensorflow/python/", "*_maybe_define_function*|trace_function|*func_graph_from_py_func*|_create_concrete_function|_create_implements*|_initialize" },
	{ TOPIC_COMPILE, PHASE_BY_FRAME, "numba/", "compile|*_compile*|run_pipeline" },

	{ TOPIC_GC, PHASE_BY_LINE, "", "gc.collect(" },

	{ TOPIC_READ_BACK, PHASE_BY_LINE, "", ".item()|.cpu()|.tolist()|.numpy()|nonzero(|.asnumpy()|.asscalar()|device_get(|float(|int(|print(|bool(|isnan(|isfinite(|isinf(|.any()|.all()|allclose(|equal(|unique(|masked_select(|argwhere(|block_until_ready(|synchronize(|if |elif |while |assert " },
	/* whatever the line is that waits: what it waits in is no launch and no copy to the device */
	{ TOPIC_READ_BACK, PHASE_BY_NATIVE, "libcuda.so|libcudart|libamdhip64|libhip|libze_loader", "cuMemcpyDtoH*|cuStreamSynchronize*|cuCtxSynchronize*|cuEventSynchronize*|cudaStreamSynchronize*|cudaDeviceSynchronize*|cudaEventSynchronize*|hipMemcpyDtoH*|hipStreamSynchronize*|hipDeviceSynchronize*|hipEventSynchronize*|zeCommandQueueSynchronize|zeFenceHostSynchronize|zeEventHostSynchronize" },
	{ TOPIC_READ_BACK, PHASE_BY_FRAME, "jax/", "block_until_ready|_value|__array__|__float__|__int__|__bool__|device_get" },
	{ TOPIC_READ_BACK, PHASE_BY_FRAME, "mxnet/", "asnumpy|asscalar|wait_to_read" },
	{ TOPIC_READ_BACK, PHASE_BY_FRAME, "tensorflow/python/", "_EagerTensorBase.numpy|_EagerTensorBase._numpy|__float__|__int__|__bool__" },
	{ TOPIC_READ_BACK, PHASE_BY_FRAME, "torch/_tensor.py|torch/_tensor_str.py", "" },

	{ TOPIC_COPY_IN, PHASE_BY_LINE, "", ".cuda(|.to(device|.to('cuda|.to(\"cuda|.to(self.device|device_put(|as_in_context(|.to(dev" },
	{ TOPIC_COPY_IN, PHASE_BY_FRAME, "", "batch_to_device|transfer_batch_to_device|move_data_to_device|to_device|send_to_device|copy_to_device|device_put" },
	{ TOPIC_COPY_IN, PHASE_BY_NATIVE, "libcuda|libcudart|libamdhip64", "cuMemcpyHtoD*|cudaMemcpy*|cuMemcpy*|hipMemcpy*" },

	{ TOPIC_START_WORKERS, PHASE_BY_FRAME, "torch/utils/data/dataloader.py", "_MultiProcessingDataLoaderIter.__init__|_MultiProcessingDataLoaderIter.__del__|_shutdown_workers" },
	{ TOPIC_START_WORKERS, PHASE_BY_FRAME, "multiprocessing/", "BaseProcess.start|Popen.__init__|Popen._launch|Pool.__init__|_repopulate_pool*|spawnv_passfds|fork_exec|_launch" },

	{ TOPIC_DATA_PARALLEL, PHASE_BY_FRAME, "torch/nn/parallel/data_parallel.py|torch/nn/parallel/replicate.py|torch/nn/parallel/scatter_gather.py|torch/nn/parallel/parallel_apply.py|torch/nn/parallel/comm.py", "" },
	/* Names that libraries have for other things (torch_scatter, asyncio.gather, collectives): they count for
	 * functions of the program's own alone, see learn_topics(), and where one process works on several GPUs. */
	{ TOPIC_HAND_OUT, PHASE_BY_FRAME, "", "replicate|replicate_*|*_replicate|*_replicas|scatter|scatter_*|gather|gather_*|parallel_apply|broadcast_weights|broadcast_parameters|broadcast_params|broadcast_model" },

	{ TOPIC_OPTIMIZER, PHASE_BY_FRAME, "torch/optim/|optax/|keras/src/optimizers/|keras/optimizers/|mxnet/optimizer/|mxnet/gluon/trainer.py", "" },

	{ TOPIC_INSTALL, PHASE_BY_FRAME, "pip/|conda/|huggingface_hub/file_download.py|torch/hub.py|torchvision/datasets/utils.py|gdown/", "" },
};
/* clang-format on */

const size_t n_topic_rules = sizeof(topic_rules) / sizeof(topic_rules[0]);

/* The interpreter's own modules have functions called tokenize, test and evaluate, too: np.load() has them on its stack. */
static bool is_of_interpreter(const struct place *p)
{
	return p->kind == PLACE_PYTHON &&
	       (strstr(p->file, "/lib/python3") || strstr(p->file, "/lib64/python3") ||
		strncmp(p->file, "<frozen ", 8) == 0) &&
	       !strstr(p->file, "-packages/");
}

/* libz has sums as well, which are asked for by who hashes. */
static bool is_checksum(const struct place *p)
{
	return p->kind == PLACE_NATIVE && p->function &&
	       (strncmp(p->function, "crc32", 5) == 0 || strncmp(p->function, "adler32", 7) == 0);
}

uint32_t topics_match(const struct place *p, bool by_line)
{
	bool by_name = by_line || !is_of_interpreter(p);
	uint32_t bits = 0;

	if (is_checksum(p))
		return 0;

	for (size_t i = 0; i < n_topic_rules; i++) {
		const struct topic_rule *r = &topic_rules[i];

		if (!(bits & TOPIC_BIT(r->topic)) && (by_name || *r->file) &&
		    phase_holds(r->by, r->file, r->name, p, by_line))
			bits |= TOPIC_BIT(r->topic);
	}
	return bits;
}

const char *topic_name(enum topic t)
{
	static const char *const names[TOPICS] = {
		[TOPIC_DECOMPRESS] = "decompress",
		[TOPIC_DECODE] = "decode",
		[TOPIC_TOKENIZE] = "tokenize",
		[TOPIC_PARSE] = "parse",
		[TOPIC_FILES] = "files",
		[TOPIC_CHECKPOINT] = "checkpoint",
		[TOPIC_LOG] = "log",
		[TOPIC_UPLOAD] = "upload",
		[TOPIC_PROGRESS] = "progress",
		[TOPIC_EVALUATE] = "evaluate",
		[TOPIC_COMPILE] = "compile",
		[TOPIC_READ_BACK] = "read_back",
		[TOPIC_COPY_IN] = "copy_in",
		[TOPIC_START_WORKERS] = "start_workers",
		[TOPIC_DATA_PARALLEL] = "data_parallel",
		[TOPIC_HAND_OUT] = "hand_out",
		[TOPIC_OPTIMIZER] = "optimizer",
		[TOPIC_LOADS] = "loads",
		[TOPIC_WATCH] = "watch",
		[TOPIC_INSTALL] = "install",
		[TOPIC_GC] = "gc",
	};

	return t < TOPICS ? names[t] : "";
}
