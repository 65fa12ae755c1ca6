/* SPDX-License-Identifier: MIT
 *
 * The table of phases: each row has an example that it takes and that no row above takes, and frames of
 * real programs are what they should be.
 */
#include "../unit.h"

#include "explain/ledger/phases.h"

#include <stdlib.h>

/* The nth alternative of a text with its stars filled; false: it has fewer. */
static bool alternative(const char *text, size_t nth, char *buf, size_t size)
{
	size_t n;

	for (; nth; nth--) {
		text += strcspn(text, "|");
		if (!*text++)
			return false;
	}
	n = strcspn(text, "|");
	assert_true(n < size);
	snprintf(buf, size, "%.*s", (int)n, text);
	for (char *p = buf; *p; p++)
		*p = *p == '*' ? 'Q' : *p;
	return true;
}

static void path_of(const struct phase_rule *r, const char *file, char *buf, size_t size)
{
	size_t n = strlen(file);

	if (r->by == PHASE_BY_NATIVE)
		snprintf(buf, size, "/usr/lib/%s", *file ? file : "libsomething.so");
	else if (!n)
		snprintf(buf, size, "/home/u/train.py");
	else
		snprintf(buf, size, "/usr/lib/python3.11/site-packages/%s%s", file,
			 file[n - 1] == '/' ? "some.py" : "");
}

static int match_example(const struct phase_rule *r, const char *file, const char *name)
{
	char path[256], line[256];
	struct place p = { .kind = r->by == PHASE_BY_NATIVE ? PLACE_NATIVE : PLACE_PYTHON,
			   .function = *name ? name : "zzz",
			   .file = path,
			   .source = "",
			   .line = 7 };

	path_of(r, file, path, sizeof(path));
	if (r->by == PHASE_BY_LINE) {
		snprintf(line, sizeof(line), "y = x%s%s)", *name == '.' ? "" : " + ", name);
		p.source = line;
		p.function = "zzz";
	}
	return phase_match(&p, r->by == PHASE_BY_LINE);
}

static void no_row_is_shadowed(void **state)
{
	(void)state;
	for (size_t i = 0; i < n_phase_rules; i++) {
		const struct phase_rule *r = &phase_rules[i];
		bool own = false;
		char file[160], name[160];

		for (size_t f = 0; alternative(r->file, f, file, sizeof(file)); f++)
			for (size_t k = 0; alternative(r->name, k, name, sizeof(name)); k++) {
				int row = match_example(r, file, name);

				if (row < 0 || phase_rules[row].phase != r->phase)
					fail_msg("row %zu (%s, %s) is taken by row %d", i, file,
						 name, row);
				own |= row == (int)i;
			}
		if (!own)
			fail_msg("row %zu (%s, %s) is never reached", i, r->file, r->name);
	}
}

static void nothing_of_our_own_making(void **state)
{
	(void)state;
	for (size_t i = 0; i < n_phase_rules; i++) {
		assert_null(strstr(phase_rules[i].file, "vgpu"));
		assert_null(strstr(phase_rules[i].name, "vgpu"));
	}
}

#define SITE "/opt/conda/lib/python3.11/site-packages/"
#define LIB  "/usr/lib/python3.9/"

static const struct {
	const char *file, *function;
	enum phase phase;
} frames[] = {
	/* qualified, and as Python 3.8 to 3.10 tells it */
	{ SITE "torch/utils/data/dataloader.py", "_MultiProcessingDataLoaderIter._try_get_data",
	  PHASE_LOADER_WAIT },
	{ SITE "torch/utils/data/dataloader.py", "_try_get_data", PHASE_LOADER_WAIT },
	{ SITE "torch/utils/data/dataloader.py", "_SingleProcessDataLoaderIter._next_data",
	  PHASE_LOAD },
	/* either way of loading before 3.11: what it calls tells which */
	{ SITE "torch/utils/data/dataloader.py", "_next_data", PHASE_LOAD },
	{ SITE "torch/utils/data/_utils/fetch.py", "fetch", PHASE_LOAD },
	{ SITE "torch/utils/data/_utils/worker.py", "_worker_loop", PHASE_WORKER },
	{ SITE "torch/utils/data/_utils/pin_memory.py", "_pin_memory_loop", PHASE_PIN },
	{ SITE "torch/nn/modules/module.py", "Module._wrapped_call_impl", PHASE_DISPATCH },
	{ SITE "torch/nn/modules/module.py", "Module.to", PHASE_TRANSFER },
	{ SITE "torch/nn/modules/module.py", "to", PHASE_TRANSFER },
	{ SITE "torch/optim/optimizer.py", "Optimizer.profile_hook_step.<locals>.wrapper",
	  PHASE_DISPATCH },
	{ SITE "torch/_tensor.py", "Tensor.backward", PHASE_ENGINE },
	{ SITE "torch/autograd/__init__.py", "backward", PHASE_ENGINE },
	{ SITE "torch/cuda/__init__.py", "synchronize", PHASE_DEVICE_SYNC },
	{ SITE "torch/distributed/distributed_c10d.py", "all_reduce", PHASE_COMM },
	{ SITE "torch/distributed/run.py", "main", PHASE_LAUNCH },
	{ SITE "torch/serialization.py", "save", PHASE_CHECKPOINT },
	{ SITE "torch/utils/tensorboard/writer.py", "SummaryWriter.add_scalar", PHASE_LOG },
	{ SITE "torch/nn/functional.py", "<module>", PHASE_NONE },
	/* what wraps is nothing by itself */
	{ SITE "torch/utils/_contextlib.py", "context_decorator.<locals>.decorate_context",
	  PHASE_NONE },
	{ SITE "torch/multiprocessing/spawn.py", "_wrap", PHASE_NONE },
	{ SITE "tqdm/std.py", "tqdm.__iter__", PHASE_NONE },
	{ SITE "tqdm/std.py", "tqdm.refresh", PHASE_LOG },
	{ SITE "tqdm/std.py", "refresh", PHASE_LOG },
	{ SITE "tensorflow/python/data/ops/iterator_ops.py", "OwnedIterator._next_internal",
	  PHASE_LOADER_WAIT },
	{ SITE "tensorflow/python/eager/execute.py", "quick_execute", PHASE_ENGINE },
	{ SITE "jax/_src/array.py", "ArrayImpl.block_until_ready", PHASE_DEVICE_SYNC },
	{ SITE "mxnet/gluon/data/dataloader.py", "_MultiWorkerIter.__next__", PHASE_LOADER_WAIT },
	{ SITE "mxnet/ndarray/ndarray.py", "NDArray.asnumpy", PHASE_DEVICE_SYNC },
	{ SITE "transformers/trainer.py", "Trainer._prepare_inputs", PHASE_TRANSFER },
	{ SITE "transformers/trainer.py", "Trainer.training_step", PHASE_USER },
	{ SITE "transformers/trainer.py", "Trainer._inner_training_loop", PHASE_NONE },
	{ SITE "accelerate/data_loader.py", "DataLoaderShard.__iter__", PHASE_LOAD },
	{ SITE "accelerate/utils/operations.py", "send_to_device", PHASE_TRANSFER },
	{ SITE "lightning/pytorch/loops/fetchers.py", "_PrefetchDataFetcher.__next__", PHASE_NONE },
	{ SITE "pytorch_lightning/core/hooks.py", "DataHooks.transfer_batch_to_device",
	  PHASE_TRANSFER },
	{ SITE "mlflow/utils/autologging_utils/safety.py", "safe_patch_function", PHASE_NONE },
	{ SITE "PIL/Image.py", "Image.resize", PHASE_LOAD_GUESS },
	{ LIB "json/__init__.py", "loads", PHASE_LOAD_GUESS },
	{ LIB "gzip.py", "GzipFile.read", PHASE_LOAD_GUESS },
	{ "/home/u/etl.py", "tokenize", PHASE_LOAD_GUESS },
	{ "/home/u/etl.py", "preprocess_rows", PHASE_LOAD_GUESS },
	{ LIB "multiprocessing/queues.py", "get", PHASE_QUEUE_GET },
	{ LIB "queue.py", "Queue.get", PHASE_QUEUE_GET },
	{ LIB "logging/__init__.py", "Logger.info", PHASE_LOG },
	{ LIB "subprocess.py", "Popen._wait", PHASE_LAUNCH },
	{ LIB "threading.py", "Thread.join", PHASE_JOIN },
	/* plain programs */
	{ "/home/u/data.py", "ImageDataset.__getitem__", PHASE_LOAD },
	{ "/home/u/data.py", "main.<locals>.MyDataset.__getitem__", PHASE_LOAD },
	{ "/home/u/data.py", "__getitem__", PHASE_LOAD_GUESS },
	{ "/home/u/data.py", "collate_images", PHASE_LOAD },
	{ "/home/u/data.py", "next_batch", PHASE_LOAD },
	{ "/home/u/data.py", "batches", PHASE_LOAD },
	{ "/home/u/data.py", "Table.__getitem__", PHASE_LOAD_GUESS },
	{ "/home/u/train.py", "train", PHASE_NONE },
	{ "/home/u/train.py", "<module>", PHASE_NONE },
	/* folders and files of a user that are called like modules */
	{ "/home/u/datasets/train.py", "train", PHASE_NONE },
	{ "/home/u/torch/train.py", "train", PHASE_NONE },
	{ "/home/u/wandb/train.py", "train", PHASE_NONE },
	{ "/home/u/queue.py", "get", PHASE_NONE },
	/* ...and a source tree of torch */
	{ "/home/u/pytorch/torch/nn/modules/linear.py", "Linear.forward", PHASE_DISPATCH },
};

static enum phase phase_of(const struct place *p, bool line)
{
	int row = phase_match(p, line);

	return row < 0 ? PHASE_NONE : phase_rules[row].phase;
}

static void frames_of_real_programs(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++) {
		const struct place p = { .function = frames[i].function,
					 .file = frames[i].file,
					 .source = "" };

		if (phase_of(&p, false) != frames[i].phase)
			fail_msg("%s of %s is %s", p.function, p.file,
				 phase_name(phase_of(&p, false)));
	}
}

static void lines(void **state)
{
	static const struct {
		const char *source;
		enum phase phase;
	} rows[] = {
		{ "total += loss.item()", PHASE_DEVICE_SYNC },
		{ "print(f'loss {loss.item()}')", PHASE_DEVICE_SYNC },
		{ "x = x.to(device, non_blocking=True)", PHASE_TRANSFER },
		{ "y = y.to('cpu')", PHASE_DEVICE_SYNC },
		{ "loss.backward()", PHASE_ENGINE },
		{ "print(step)", PHASE_LOG },
		{ "fingerprint(step)", PHASE_NONE },
		{ "# print(step)", PHASE_NONE },
		{ "for k, v in d.items():", PHASE_NONE },
		{ "", PHASE_NONE },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct place p = { .function = "train",
					 .file = "/home/u/train.py",
					 .source = rows[i].source };

		if (phase_of(&p, true) != rows[i].phase)
			fail_msg("'%s' is %s", p.source, phase_name(phase_of(&p, true)));
	}
}

static void native(void **state)
{
	static const struct {
		const char *file, *symbol;
		enum phase phase;
	} rows[] = {
		{ "/usr/lib/x86_64-linux-gnu/libcuda.so.535.54", "cuStreamSynchronize",
		  PHASE_DEVICE_SYNC },
		{ "/opt/lib/libcudart.so.12", "cudaDeviceSynchronize", PHASE_DEVICE_SYNC },
		{ "/opt/rocm/lib/libamdhip64.so.6", "hipMemcpyAsync", PHASE_TRANSFER },
		{ "/usr/lib/libcuda.so.1", "cuMemcpyHtoD_v2", PHASE_TRANSFER },
		{ "/usr/lib/libcuda.so.1", "cuLaunchKernel", PHASE_DRIVER },
		{ "/usr/lib/libcuda.so.1", "", PHASE_DRIVER },
		{ "/usr/lib/libnccl.so.2", "", PHASE_COMM },
		{ "/usr/lib/libtorch_cuda.so", "ncclAllReduce", PHASE_COMM },
		{ "/usr/lib/libtorch_cpu.so.1.13.0", "_ZN4c10d7Reducer17finalize_backwardEv",
		  PHASE_COMM },
		{ "/usr/lib/libgomp.so.1", "", PHASE_POOL },
		{ "/usr/lib/libpython3.11.so.1.0", "_PyEval_EvalFrameDefault", PHASE_HOST },
		{ "/usr/lib/libjpeg.so.62", "jpeg_read_scanlines", PHASE_NONE },
		{ "", "", PHASE_NONE },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct place p = { .kind = PLACE_NATIVE,
					 .function = rows[i].symbol,
					 .file = rows[i].file,
					 .source = "" };

		if (phase_of(&p, false) != rows[i].phase)
			fail_msg("%s %s is %s", p.file, p.function,
				 phase_name(phase_of(&p, false)));
	}
}

static void globs(void **state)
{
	(void)state;
	assert_true(phase_glob("a*b*c", 5, "axxbyybzc", 9));
	assert_false(phase_glob("a*b*c", 5, "axxbyybz", 8));
	assert_true(phase_glob("*", 1, "", 0));
	assert_true(phase_glob("", 0, "", 0));
	assert_false(phase_glob("a", 1, "", 0));
	/* no blow-up: a thousand letters against many stars */
	char text[1001];

	memset(text, 'a', 1000);
	assert_false(phase_glob("*a*a*a*a*a*a*a*a*b", 18, text, 1000));
	/* hostile names */
	assert_false(phase_function("A.b", "", true));
	assert_false(phase_function("A.b", "...", true));
	assert_true(phase_function("A.b", "x.<locals>.A.b", true));
	assert_true(phase_function("A.b", "b", true));
	assert_false(phase_function("A.b", "b", false));
	assert_false(phase_function("A.b", "B.b", true));
	assert_false(phase_file("queue.py", ""));
}

/* Every phase that says something about time says it for every kind of waiting. */
static void states_are_complete(void **state)
{
	static const enum phase mute[] = { PHASE_NONE, PHASE_USER, PHASE_POOL, PHASE_HOST };

	(void)state;
	for (int p = 0; p < PHASES; p++) {
		bool says = true;

		for (size_t i = 0; i < sizeof(mute) / sizeof(mute[0]); i++)
			says &= p != (int)mute[i];
		for (int k = 0; k < WAIT_KINDS; k++) {
			enum time_state s = TIME_STATES;

			assert_int_equal(phase_state((enum phase)p, (enum wait_kind)k, false, &s),
					 says);
			assert_true(!says || s < TIME_STATES);
		}
	}
}

static void steps(void **state)
{
	(void)state;
	assert_int_equal(phase_step(PHASE_LOAD, PHASE_DISPATCH, PHASE_BY_FRAME), PHASE_LOAD);
	assert_int_equal(phase_step(PHASE_LOAD, PHASE_QUEUE_GET, PHASE_BY_FRAME),
			 PHASE_LOADER_WAIT);
	assert_int_equal(phase_step(PHASE_WORKER, PHASE_QUEUE_GET, PHASE_BY_FRAME),
			 PHASE_WORK_WAIT);
	assert_int_equal(phase_step(PHASE_LOAD, PHASE_TRANSFER, PHASE_BY_LINE), PHASE_LOAD);
	assert_int_equal(phase_step(PHASE_LOAD, PHASE_TRANSFER, PHASE_BY_FRAME), PHASE_TRANSFER);
	assert_int_equal(phase_step(PHASE_LOAD, PHASE_TRANSFER, PHASE_BY_NATIVE), PHASE_TRANSFER);
	assert_int_equal(phase_step(PHASE_LOAD_GUESS, PHASE_DISPATCH, PHASE_BY_FRAME),
			 PHASE_DISPATCH);
	assert_int_equal(phase_step(PHASE_DISPATCH, PHASE_USER, PHASE_BY_FRAME), PHASE_USER);
	assert_int_equal(phase_step(PHASE_USER, PHASE_LOAD, PHASE_BY_FRAME), PHASE_LOAD);
	assert_int_equal(phase_step(PHASE_NONE, PHASE_HOST, PHASE_BY_NATIVE), PHASE_NONE);
	assert_int_equal(phase_step(PHASE_DEVICE_SYNC, PHASE_HOST, PHASE_BY_NATIVE), PHASE_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_row_is_shadowed),
		cmocka_unit_test(nothing_of_our_own_making),
		cmocka_unit_test(frames_of_real_programs),
		cmocka_unit_test(lines),
		cmocka_unit_test(native),
		cmocka_unit_test(globs),
		cmocka_unit_test(states_are_complete),
		cmocka_unit_test(steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
