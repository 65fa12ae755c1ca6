/* SPDX-License-Identifier: MIT
 *
 * The virtual libnvidia-ml.so.1 as a stranger sees it: layouts, names, codes, and bytes that must not
 * be touched. $VGPU_NVML is the library.
 */
#include "../unit.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu/nvml_abi.h"
#include "vgpu.h"

/* Any function of the library: it takes fewer arguments than it is given, which the ABI allows. */
typedef int (*any)(const void *, const void *, const void *, const void *, const void *,
		   const void *);

struct world {
	void *library;
	char scenario[64];
};

static const char *const names[] = {
#define NVML_REAL(name)   #name,
#define NVML_DEVICE(name) #name,
#define NVML_OTHER(name)  #name,
#include "nvml_symbols.def"
#undef NVML_REAL
#undef NVML_DEVICE
#undef NVML_OTHER
};

static void *find(struct world *w, const char *name)
{
	void *f = dlsym(w->library, name);

	if (!f)
		fail_msg("%s is not exported", name);
	return f;
}

static int call(struct world *w, const char *name, const void *a, const void *b, const void *c)
{
	any f = find(w, name);

	return f(a, b, c, NULL, NULL, NULL);
}

static void begin(struct world *w, const char *text)
{
	char state[32];
	int fd;

	snprintf(w->scenario, sizeof(w->scenario), "/tmp/vgpu-test-XXXXXX");
	fd = mkstemp(w->scenario);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	snprintf(state, sizeof(state), "unit-%d", getpid());
	setenv("VGPU_SCENARIO", w->scenario, 1);
	setenv("VGPU_STATE", state, 1);
	vgpu_remove();
	assert_int_equal(call(w, "nvmlInit_v2", 0, 0, 0), NVML_SUCCESS);
}

static void end(struct world *w)
{
	assert_int_equal(call(w, "nvmlShutdown", 0, 0, 0), NVML_SUCCESS);
	vgpu_remove();
	unlink(w->scenario);
}

static nvml_device gpu(struct world *w, unsigned int index)
{
	int (*by_index)(unsigned int, nvml_device *) = find(w, "nvmlDeviceGetHandleByIndex_v2");
	nvml_device h = NULL;

	assert_int_equal(by_index(index, &h), NVML_SUCCESS);
	return h;
}

static int setup(void **state)
{
	static struct world w;
	const char *path = getenv("VGPU_NVML");

	if (!path)
		return -1;
	w.library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!w.library)
		return -1;
	*state = &w;
	return 0;
}

/* What a failed test left. */
static int teardown(void **state)
{
	struct world *w = *state;

	if (!w) /* there was no library */
		return 0;
	vgpu_remove();
	unlink(w->scenario);
	return dlclose(w->library);
}

/* As measured with the vendor's header; the compiler checks ours in nvml_abi.h, this says which. */
static void test_layouts(void **state)
{
	(void)state;
	assert_int_equal(sizeof(struct nvml_pci), 68);
	assert_int_equal(offsetof(struct nvml_pci, domain), 16);
	assert_int_equal(offsetof(struct nvml_pci, pci_id), 28);
	assert_int_equal(offsetof(struct nvml_pci, subsystem_id), 32);
	assert_int_equal(offsetof(struct nvml_pci, bus_id), 36);
	assert_int_equal(offsetof(struct nvml_memory_v2, total), 8);
	assert_int_equal(offsetof(struct nvml_memory_v2, reserved), 16);
	assert_int_equal(offsetof(struct nvml_memory_v2, free), 24);
	assert_int_equal(offsetof(struct nvml_process, memory), 8);
	assert_int_equal(offsetof(struct nvml_process, ci), 20);
	assert_int_equal(offsetof(struct nvml_process_detail, protected_memory), 24);
	assert_int_equal(offsetof(struct nvml_process_sample, time_us), 8);
	assert_int_equal(offsetof(struct nvml_process_sample, sm), 16);
	assert_int_equal(offsetof(struct nvml_process_sample, decoder), 28);
	assert_int_equal(offsetof(struct nvml_field_value, time_us), 8);
	assert_int_equal(offsetof(struct nvml_field_value, latency_us), 16);
	assert_int_equal(offsetof(struct nvml_field_value, type), 24);
	assert_int_equal(offsetof(struct nvml_field_value, result), 28);
	assert_int_equal(NVML_VERSION(struct nvml_memory_v2, 2), 0x02000028);
	assert_int_equal(NVML_VERSION(struct nvml_process_detail_list, 1), 0x01000018);
	assert_int_equal(NVML_VERSION(struct nvml_processes_usage, 1), 0x01000018);
	assert_int_equal(NVML_VERSION(struct nvml_temperature, 1), 0x0100000c);
}

static bool needs_no_init(const char *name)
{
	static const char *const free_ones[] = { "nvmlInit",          "nvmlInit_v2",
						 "nvmlInitWithFlags", "nvmlErrorString",
						 "nvmlVirtualDriver", "nvmlEventSetFree",
						 "nvmlGpmSampleFree" };

	for (size_t i = 0; i < sizeof(free_ones) / sizeof(free_ones[0]); i++)
		if (!strcmp(free_ones[i], name))
			return true;
	return false;
}

static bool takes_gpu(const char *name)
{
	return !strncmp(name, "nvmlDevice", 10) && !strstr(name, "HandleBy") &&
	       !strstr(name, "nvmlDeviceGetCount");
}

static void test_every_name_before_init(void **state)
{
	struct world *w = *state;

	assert_true(sizeof(names) / sizeof(names[0]) > 400);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		int rc;

		if (needs_no_init(names[i]))
			continue;
		rc = call(w, names[i], 0, 0, 0);
		if (rc != NVML_ERROR_UNINITIALIZED)
			fail_msg("%s answers %d before nvmlInit", names[i], rc);
	}
}

/* No pointer, and then a GPU and no other pointer: an error code or an answer, never a crash. */
static void test_every_name_without_pointers(void **state)
{
	struct world *w = *state;
	nvml_device h;

	begin(w, "gpu \"NVIDIA H100 80GB HBM3\"\n  nvlinks 18\n  fan\n");
	h = gpu(w, 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		any f = find(w, names[i]);
		int rc;

		if (needs_no_init(names[i]) || !strcmp(names[i], "nvmlShutdown"))
			continue;
		rc = f(0, 0, 0, 0, 0, 0);
		if (rc != NVML_ERROR_INVALID_ARGUMENT && rc != NVML_ERROR_NOT_SUPPORTED)
			fail_msg("%s answers %d without arguments", names[i], rc);
		if (!takes_gpu(names[i]))
			continue;
		rc = f(h, 0, 0, 0, 0, 0);
		if (rc < 0 || (rc > NVML_ERROR_INVALID_STATE && rc != NVML_ERROR_UNKNOWN))
			fail_msg("%s answers %d without a place for the answer", names[i], rc);
		assert_int_equal(f("not a handle", 0, 0, 0, 0, 0) == NVML_SUCCESS, 0);
	}
	end(w);
}

static void test_count_of_inits(void **state)
{
	struct world *w = *state;
	unsigned int n = 0;

	begin(w, "gpu \"NVIDIA A100-SXM4-80GB\" x 3\n");
	assert_int_equal(call(w, "nvmlInit_v2", 0, 0, 0), NVML_SUCCESS);
	assert_int_equal(call(w, "nvmlShutdown", 0, 0, 0), NVML_SUCCESS);
	assert_int_equal(call(w, "nvmlDeviceGetCount_v2", &n, 0, 0), NVML_SUCCESS);
	assert_int_equal(n, 3);
	end(w);
	assert_int_equal(call(w, "nvmlShutdown", 0, 0, 0), NVML_ERROR_UNINITIALIZED);
}

static void test_handle_in_a_child(void **state)
{
	struct world *w = *state;
	nvml_device h;
	char name[NVML_NAME_MAX] = "";
	int status;
	pid_t child;

	begin(w, "gpu \"NVIDIA A100-SXM4-80GB\" x 2\n");
	h = gpu(w, 1);
	child = fork();
	if (!child) {
		int rc = call(w, "nvmlDeviceGetName", h, name, (void *)(uintptr_t)sizeof(name));

		_exit(rc || strcmp(name, "NVIDIA A100-SXM4-80GB") != 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	end(w);
}

/* Every layout: the rows asked for and not a byte more; too little place gives the number needed. */
static void layout(struct world *w, const char *word, const char *symbol, size_t row, int wanted)
{
	char text[160];
	unsigned char rows[8 * 32];
	unsigned int count = 0, pid;
	nvml_device h;

	snprintf(text, sizeof(text),
		 "%sgpu \"NVIDIA A100-SXM4-80GB\"\n  process 40 \"a\" memory 1G x 3\n", word);
	begin(w, text);
	h = gpu(w, 0);
	if (wanted == NVML_SUCCESS) {
		assert_int_equal(call(w, symbol, h, &count, NULL), NVML_ERROR_INSUFFICIENT_SIZE);
		assert_int_equal(count, 3);
		count = 2;
		assert_int_equal(call(w, symbol, h, &count, rows), NVML_ERROR_INSUFFICIENT_SIZE);
	}
	memset(rows, 0xa5, sizeof(rows));
	count = 8;
	assert_int_equal(call(w, symbol, h, &count, rows), wanted);
	for (size_t i = wanted ? 0 : 3 * row; i < sizeof(rows); i++)
		assert_int_equal(rows[i], 0xa5);
	if (!wanted) {
		unsigned long long memory;

		assert_int_equal(count, 3);
		memcpy(&pid, rows + 2 * row, sizeof(pid));
		memcpy(&memory, rows + 2 * row + 8, sizeof(memory));
		assert_int_equal(pid, 42);
		assert_int_equal(memory, 1ull << 30);
	}
	end(w);
}

static void test_process_layouts(void **state)
{
	struct world *w = *state;

	layout(w, "", "nvmlDeviceGetComputeRunningProcesses", 16, 0);
	layout(w, "", "nvmlDeviceGetComputeRunningProcesses_v2", 24, 0);
	layout(w, "", "nvmlDeviceGetComputeRunningProcesses_v3", 24, 0);
	layout(w, "process_layout 535\n", "nvmlDeviceGetComputeRunningProcesses_v3", 32, 0);
	layout(w, "process_layout 2\n", "nvmlDeviceGetComputeRunningProcesses_v3", 24, 13);
	layout(w, "process_layout 1\n", "nvmlDeviceGetComputeRunningProcesses_v2", 24, 13);
	layout(w, "process_layout 1\n", "nvmlDeviceGetComputeRunningProcesses", 16, 0);
}

static void test_strict_versions(void **state)
{
	struct world *w = *state;
	struct nvml_memory_v2 m = { .version = 2 };
	nvml_device h;

	begin(w, "strict_versions\ngpu \"NVIDIA A100-SXM4-80GB\"\n");
	h = gpu(w, 0);
	assert_int_equal(call(w, "nvmlDeviceGetMemoryInfo_v2", h, &m, 0),
			 NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
	assert_int_equal(m.total, 0);
	m.version = 0x02000028;
	assert_int_equal(call(w, "nvmlDeviceGetMemoryInfo_v2", h, &m, 0), NVML_SUCCESS);
	assert_int_equal(m.total, m.used + m.free + m.reserved);
	end(w);
}

/* GPM: a load of the scenario comes back as the metric, and the array ends where the caller says. */
static void test_gpm(void **state)
{
	struct world *w = *state;
	union {
		struct nvml_gpm_get get;
		unsigned char
		    bytes[sizeof(struct nvml_gpm_get) + 4 * sizeof(struct nvml_gpm_metric)];
	} u;
	struct nvml_gpm_metric *m = u.get.metrics;
	nvml_gpm_sample a, b;
	nvml_device h;

	begin(w, "gpu \"NVIDIA H100 80GB HBM3\"\n  load 0.5 sm 0.4 tensor 0.2\n");
	h = gpu(w, 0);
	assert_int_equal(call(w, "nvmlGpmSampleAlloc", &a, 0, 0), NVML_SUCCESS);
	assert_int_equal(call(w, "nvmlGpmSampleAlloc", &b, 0, 0), NVML_SUCCESS);
	assert_int_equal(call(w, "nvmlGpmSampleGet", h, a, 0), NVML_SUCCESS);
	usleep(50000);
	assert_int_equal(call(w, "nvmlGpmSampleGet", h, b, 0), NVML_SUCCESS);
	memset(&u, 0xa5, sizeof(u));
	u.get.version = NVML_GPM_VERSION;
	u.get.n = 3;
	u.get.before = a;
	u.get.after = b;
	m[0].id = NVML_GPM_GRAPHICS_UTIL;
	m[1].id = NVML_GPM_ANY_TENSOR_UTIL;
	m[2].id = 250;
	assert_int_equal(call(w, "nvmlGpmMetricsGet", &u.get, 0, 0), NVML_SUCCESS);
	assert_int_equal(m[0].result, NVML_SUCCESS);
	assert_true(near(m[0].value, 50, 0.02));
	assert_int_equal(m[1].result, NVML_SUCCESS);
	assert_true(m[1].value > 5 && m[1].value < 25);
	assert_int_equal(m[2].result, NVML_ERROR_NOT_SUPPORTED);
	for (size_t i = sizeof(struct nvml_gpm_get) + 3 * sizeof(m[0]); i < sizeof(u.bytes); i++)
		assert_int_equal(u.bytes[i], 0xa5);
	assert_int_equal(call(w, "nvmlGpmSampleFree", a, 0, 0), NVML_SUCCESS);
	assert_int_equal(call(w, "nvmlGpmSampleFree", b, 0, 0), NVML_SUCCESS);
	end(w);
}

static void test_xid_event(void **state)
{
	struct world *w = *state;
	int (*wait_v1)(nvml_event_set, void *, unsigned int);
	int (*register_events)(nvml_device, unsigned long long, nvml_event_set);
	struct nvml_event e[2];
	nvml_event_set set;
	nvml_device h;

	begin(w, "gpu \"NVIDIA A100-SXM4-80GB\"\n  xid 79 from 150ms\n");
	wait_v1 = find(w, "nvmlEventSetWait");
	register_events = find(w, "nvmlDeviceRegisterEvents");
	h = gpu(w, 0);
	assert_int_equal(call(w, "nvmlEventSetCreate", &set, 0, 0), NVML_SUCCESS);
	assert_int_equal(register_events(h, NVML_EVENT_XID, set), NVML_SUCCESS);
	memset(e, 0xa5, sizeof(e));
	assert_int_equal(wait_v1(set, e, 5000), NVML_SUCCESS);
	assert_ptr_equal(e[0].device, h);
	assert_int_equal(e[0].type, NVML_EVENT_XID);
	assert_int_equal(e[0].data, 79);
	assert_int_equal(e[0].gi, 0xa5a5a5a5); /* the first version's struct ends before it */
	assert_int_equal(wait_v1(set, e, 10), NVML_ERROR_TIMEOUT);
	assert_int_equal(call(w, "nvmlEventSetFree", set, 0, 0), NVML_SUCCESS);
	end(w);
}

/* Heat by software and by hardware are counted apart. */
static void test_heat_fields(void **state)
{
	struct world *w = *state;
	struct nvml_field_value f[2] = {
		{ .id = NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN },
		{ .id = NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN }
	};

	begin(w, "gpu \"NVIDIA H100 80GB HBM3\"\n  load 1\n  slow hw_thermal clock 500\n");
	usleep(10000);
	assert_int_equal(call(w, "nvmlDeviceGetFieldValues", gpu(w, 0), (void *)2, f),
			 NVML_SUCCESS);
	assert_int_equal(f[0].result, NVML_SUCCESS);
	assert_int_equal(f[1].result, NVML_SUCCESS);
	assert_int_equal(f[0].value.ull, 0);
	assert_true(f[1].value.ull >= 10000000);
	end(w);
}

static void test_mig(void **state)
{
	struct world *w = *state;
	int (*by_index)(nvml_device, unsigned int, nvml_device *);
	struct nvml_utilization use;
	struct nvml_memory m;
	nvml_device h, part, parent;
	char name[NVML_NAME_MAX];
	unsigned int is = 0;

	begin(w, "gpu \"NVIDIA H100 80GB HBM3\"\n  mig 3g.40gb 2g.20gb\n"
		 "  process 4711 a memory 3G gi 1\n  process 4712 b memory 5G gi 2\n");
	h = gpu(w, 0);
	by_index = find(w, "nvmlDeviceGetMigDeviceHandleByIndex");
	assert_int_equal(call(w, "nvmlDeviceGetUtilizationRates", h, &use, 0),
			 NVML_ERROR_NOT_SUPPORTED);
	assert_int_equal(by_index(h, 2, &part), NVML_ERROR_NOT_FOUND);
	assert_int_equal(by_index(h, 0, &part), NVML_SUCCESS);
	assert_int_equal(call(w, "nvmlDeviceIsMigDeviceHandle", part, &is, 0), NVML_SUCCESS);
	assert_int_equal(is, 1);
	assert_int_equal(call(w, "nvmlDeviceGetName", part, name, (void *)sizeof(name)),
			 NVML_SUCCESS);
	assert_string_equal(name, "NVIDIA H100 80GB HBM3 MIG 3g.40gb");
	assert_int_equal(call(w, "nvmlDeviceGetMemoryInfo", part, &m, 0), NVML_SUCCESS);
	assert_true(m.total > 30ull << 30 && m.total <= 40ull << 30);
	assert_int_equal(m.used, 3ull << 30);
	assert_int_equal(call(w, "nvmlDeviceGetDeviceHandleFromMigDeviceHandle", part, &parent, 0),
			 NVML_SUCCESS);
	assert_ptr_equal(parent, h);
	end(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layouts),
		cmocka_unit_test(test_every_name_before_init),
		cmocka_unit_test(test_every_name_without_pointers),
		cmocka_unit_test(test_count_of_inits),
		cmocka_unit_test(test_handle_in_a_child),
		cmocka_unit_test(test_process_layouts),
		cmocka_unit_test(test_strict_versions),
		cmocka_unit_test(test_gpm),
		cmocka_unit_test(test_xid_event),
		cmocka_unit_test(test_heat_fields),
		cmocka_unit_test(test_mig),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
