/* SPDX-License-Identifier: MIT
 *
 * The table of roles: each row has an example that it takes and that no row above takes, and threads of
 * real programs are what they should be.
 */
#include "../unit.h"

#include "explain/ledger/roles.h"

#include <stdbool.h>

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

static int match_example(const struct role_rule *r, const char *file, const char *name)
{
	char path[256];
	size_t n = strlen(file);
	const struct place p = { .function = name, .file = path, .source = "" };

	if (r->by != ROLE_BY_FRAME)
		return role_of_text(r->by, name);
	snprintf(path, sizeof(path), "/usr/lib/python3.11/site-packages/%s%s", file,
		 n && file[n - 1] == '/' ? "some.py" : "");
	return role_of_place(&p);
}

static void no_row_is_shadowed(void **state)
{
	(void)state;
	for (size_t i = 0; i < n_role_rules; i++) {
		const struct role_rule *r = &role_rules[i];
		bool own = false;
		char file[160], name[160];

		assert_null(strstr(r->name, "vgpu"));
		for (size_t f = 0; alternative(r->file, f, file, sizeof(file)); f++)
			for (size_t k = 0; alternative(r->name, k, name, sizeof(name)); k++) {
				int row = match_example(r, file, name);

				if (row < 0 || role_rules[row].role != r->role)
					fail_msg("row %zu (%s, %s) is taken by row %d", i, file,
						 name, row);
				own |= row == (int)i;
				/* the kernel keeps 15 bytes of a thread's name */
				assert_true(r->by != ROLE_BY_THREAD || strlen(name) <= 15);
			}
		if (!own)
			fail_msg("row %zu (%s, %s) is never reached", i, r->file, r->name);
	}
}

static void texts(void **state)
{
	static const struct {
		enum role_by by;
		const char *text;
		int role; /* -1: none */
	} rows[] = {
		{ ROLE_BY_THREAD, "pt_autograd_0", ROLE_FRAMEWORK_THREADS },
		{ ROLE_BY_THREAD, "pt_main_thread", -1 },
		{ ROLE_BY_THREAD, "pt_nccl_watchdg", ROLE_COMM_THREADS },
		{ ROLE_BY_THREAD, "NCCL I/O", ROLE_COMM_THREADS },
		{ ROLE_BY_THREAD, "gloo", ROLE_COMM_THREADS },
		{ ROLE_BY_THREAD, "tf_data_private", ROLE_LOADER_WORKER },
		{ ROLE_BY_THREAD, "tf_Compute", ROLE_FRAMEWORK_THREADS },
		{ ROLE_BY_THREAD, "cuda-EvtHandlr", ROLE_FRAMEWORK_THREADS },
		{ ROLE_BY_THREAD, "rayon-3", ROLE_TOKENIZER_THREADS },
		{ ROLE_BY_THREAD, "iou-wrk-4711", ROLE_KERNEL_SIDE },
		{ ROLE_BY_THREAD, "python3", -1 },
		{ ROLE_BY_THREAD, "", -1 },
		{ ROLE_BY_SYMBOL, "_ZN4c10d16ProcessGroupGloo7runLoopEi", ROLE_COMM_THREADS },
		{ ROLE_BY_SYMBOL, "_ZN2at8internal15invoke_parallelElll", -1 },
		{ ROLE_BY_LIBRARY, "libgomp.so.1", ROLE_BLAS_THREADS },
		{ ROLE_BY_LIBRARY, "libopenblas64_p-r0-0cf96a72.3.23.dev.so", ROLE_BLAS_THREADS },
		{ ROLE_BY_LIBRARY, "libc.so.6", -1 },
		{ ROLE_BY_PROGRAM, "ptxas", ROLE_CHILD },
		{ ROLE_BY_PROGRAM, "cc1plus", ROLE_CHILD },
		{ ROLE_BY_PROGRAM, "python3", -1 },
		{ ROLE_BY_COMMAND,
		  "python3 -c from multiprocessing.resource_tracker import main;main(5)",
		  ROLE_CHILD },
		{ ROLE_BY_COMMAND, "python3 train.py", -1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int row = role_of_text(rows[i].by, rows[i].text);

		if ((row < 0 ? -1 : (int)role_rules[row].role) != rows[i].role)
			fail_msg("'%s' is row %d", rows[i].text, row);
	}
}

static void frames(void **state)
{
	static const struct {
		const char *file, *function;
		int role;
	} rows[] = {
		{ "/x/site-packages/torch/utils/data/_utils/worker.py", "_worker_loop",
		  ROLE_LOADER_WORKER },
		{ "/x/site-packages/torch/utils/data/_utils/worker.py", "_process_worker_loop",
		  ROLE_LOADER_WORKER },
		{ "/x/site-packages/torch/utils/data/_utils/worker.py", "_base_worker_loop",
		  ROLE_LOADER_WORKER },
		{ "/x/site-packages/torch/utils/data/_utils/pin_memory.py", "_pin_memory_loop",
		  ROLE_PIN_THREAD },
		{ "/usr/lib/python3.10/multiprocessing/pool.py", "worker", ROLE_LOADER_WORKER },
		{ "/usr/lib/python3.10/multiprocessing/pool.py", "_handle_results",
		  ROLE_FRAMEWORK_THREADS },
		{ "/usr/lib/python3.10/multiprocessing/process.py", "BaseProcess._bootstrap", -1 },
		{ "/home/u/train.py", "worker", -1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct place p = { .function = rows[i].function,
					 .file = rows[i].file,
					 .source = "" };
		int row = role_of_place(&p);

		if ((row < 0 ? -1 : (int)role_rules[row].role) != rows[i].role)
			fail_msg("%s of %s is row %d", p.function, p.file, row);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_row_is_shadowed),
		cmocka_unit_test(texts),
		cmocka_unit_test(frames),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
