/* SPDX-License-Identifier: MIT
 *
 * NVIDIA through NVML: the library and its devices.
 */
#include "gpu/nvml.h"

#include "base/auto.h"
#include "base/err.h"
#include "base/scan.h"
#include "base/text.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const symbol_names[NVML_SYMBOLS] = {
#define SYMBOL(id, names, ...) [NVML_S_##id] = names,
#include "gpu/nvml_symbols.def"
#undef SYMBOL
};

void nvml_begin(const struct nvml_at *a, enum nvml_symbol s)
{
	gpu_call_begin(a->w, a->lane, a->n->lib.found_as[s], a->g ? a->g->pci : NULL,
		       a->g ? a->g->index : -1);
}

int nvml_end(const struct nvml_at *a, int result)
{
	gpu_call_end(a->w, a->lane);
	/* Another lane never changes what the reading one goes by. */
	if (a->lane != 0)
		return result;
	if (a->g && (result == NVML_ERROR_GPU_IS_LOST || result == NVML_ERROR_RESET_REQUIRED))
		a->g->state = nvml_have(result);
	if (result == NVML_ERROR_UNINITIALIZED || result == NVML_ERROR_DRIVER_NOT_LOADED)
		a->n->dead = result;
	return result;
}

bool nvml_may_call(const struct nvml_at *a, enum nvml_symbol s)
{
	return a->depth >= GPU_SLOW || !a->g->refused[s];
}

int nvml_note_result(const struct nvml_at *a, enum nvml_symbol s, int result)
{
	a->g->refused[s] = result == NVML_ERROR_NOT_SUPPORTED ||
			   result == NVML_ERROR_FUNCTION_NOT_FOUND ||
			   result == NVML_ERROR_DEPRECATED;
	return result;
}

enum gpu_have nvml_have(int result)
{
	switch (result) {
	case NVML_SUCCESS:
		return GPU_KNOWN;
	case NVML_ERROR_NOT_SUPPORTED:
	case NVML_ERROR_FUNCTION_NOT_FOUND:
		return GPU_NOT_SUPPORTED;
	case NVML_ERROR_NO_PERMISSION:
		return GPU_NO_PERMISSION;
	case NVML_ERROR_DEPRECATED:
		return GPU_DEPRECATED;
	case NVML_ERROR_GPU_IS_LOST:
		return GPU_LOST;
	case NVML_ERROR_RESET_REQUIRED:
		return GPU_NEEDS_RESET;
	default:
		return GPU_FAILED;
	}
}

/* The first of "nvmlX_v2 nvmlX" that the library has. */
static void *find_symbol(struct nvml_library *l, enum nvml_symbol s)
{
	struct scan words = scan_of(symbol_names[s], strlen(symbol_names[s]));
	const char *word;
	size_t n;

	while (scan_word(&words, &word, &n)) {
		void *found;

		snprintf(l->found_as[s], sizeof(l->found_as[s]), "%.*s", (int)n, word);
		found = dlsym(l->opened, l->found_as[s]);
		if (found)
			return found;
	}
	return NULL;
}

static int load(struct gpu_world *w, struct nvml_library *l, struct err *e)
{
	static const char *const usual[] = { "libnvidia-ml.so.1", "libnvidia-ml.so" };

	gpu_call_begin(w, 0, "dlopen of libnvidia-ml.so.1", NULL, -1);
	if (w->nvml) {
		l->opened = dlopen(w->nvml, RTLD_NOW | RTLD_LOCAL);
		if (!l->opened)
			return err_set(e, -EINVAL, "cannot load '%s': %s", w->nvml, dlerror());
	}
	for (size_t i = 0; i < ARRAY_LEN(usual) && !l->opened; i++)
		l->opened = dlopen(usual[i], RTLD_NOW | RTLD_LOCAL);
	gpu_call_end(w, 0);
	if (!l->opened)
		return -ENOENT;
#define SYMBOL(id, ...) *(void **)(void *)&l->id = find_symbol(l, NVML_S_##id);
#include "gpu/nvml_symbols.def"
#undef SYMBOL
	if (l->init && l->count)
		return 0;
	return err_set(e, -EINVAL, "'%s' is no NVIDIA management library: calls are missing",
		       w->nvml ? w->nvml : usual[0]);
}

static int why_init(int result, struct err *e)
{
	switch (result) {
	case NVML_ERROR_DRIVER_NOT_LOADED:
		return err_set(e, -ENODEV,
			       "the NVIDIA driver is not loaded: try 'modprobe nvidia', or "
			       "look at 'dmesg' for why it failed");
	case NVML_ERROR_LIB_RM_VERSION_MISMATCH:
		return err_set(e, -EPROTO,
			       "the NVIDIA driver was updated while it was loaded (library and "
			       "kernel module differ): reboot, or reload the module");
	case NVML_ERROR_NO_PERMISSION:
		return err_set(e, -EACCES,
			       "no permission to use the NVIDIA driver: look at the rights of "
			       "/dev/nvidiactl");
	case NVML_ERROR_UNINITIALIZED:
		return err_set(e, -EIO,
			       "the NVIDIA driver takes no calls: it says it is not initialised, "
			       "right after it was; look at 'dmesg'");
	default:
		return err_set(e, -EIO, "the NVIDIA driver cannot be used: nvmlInit says %d",
			       result);
	}
}

/* "535.54.03": the rows of processes were 32 bytes in 535.43 up to 535.86. */
static int row_size(const char *driver)
{
	struct scan s = scan_of(driver, strlen(driver));
	uint64_t major, minor;

	if (scan_u64(&s, &major) && scan_lit(&s, ".") && scan_u64(&s, &minor) && major == 535 &&
	    minor >= 43 && minor < 86)
		return sizeof(struct nvml_process_detail);
	return sizeof(struct nvml_process);
}

static void read_versions(struct nvml_at *a)
{
	struct nvml *n = a->n;
	char text[NVML_SYSTEM_VERSION_MAX + 1] = "";

	if (NVML_CALL(a, driver_version, text, NVML_SYSTEM_VERSION_MAX) == 0)
		text_safe_copy(n->driver, sizeof(n->driver), text);
	if (NVML_CALL(a, cuda_version, &n->cuda_version) == 0 && n->cuda_version > 0)
		snprintf(n->cuda, sizeof(n->cuda), "CUDA %d.%d", n->cuda_version / 1000,
			 n->cuda_version % 1000 / 10);
	n->process_size = row_size(n->driver);
}

/* "00000000:83:00.0", as the driver and nvidia-smi write it. */
static void find_pci(struct nvml_at *a)
{
	struct nvml_pci pci = { 0 };

	if (NVML_CALL(a, pci, a->g->handle, &pci) != 0)
		return;
	pci.bus_id[sizeof(pci.bus_id) - 1] = '\0';
	if (pci.bus_id[0])
		text_safe_copy(a->g->pci, sizeof(a->g->pci), pci.bus_id);
	else
		snprintf(a->g->pci, sizeof(a->g->pci), "%08X:%02X:%02X.0", pci.domain,
			 pci.bus & 0xff, pci.device & 0xff);
}

static void find_gpu(struct nvml_at *a)
{
	struct nvml_gpu *g = a->g;
	char text[NVML_NAME_MAX + 1] = "";
	int result;

	g->state = GPU_KNOWN;
	atomic_store(&g->open, NULL);
	result = NVML_CALL(a, handle, (unsigned)g->index, &g->handle);
	if (result != 0) {
		g->state = nvml_have(result);
		g->handle = NULL;
		return;
	}
	find_pci(a);
	g->skipped = gpu_skipped(a->w, g->pci);
	if (g->skipped)
		return;
	if (NVML_CALL(a, name, g->handle, text, NVML_NAME_MAX) == 0)
		text_safe_copy(g->name, sizeof(g->name), text);
	memset(text, 0, sizeof(text));
	if (NVML_CALL(a, uuid, g->handle, text, NVML_UUID_MAX) == 0)
		text_safe_copy(g->uuid, sizeof(g->uuid), text);
	atomic_store(&g->open, g->handle);
	nvml_watch_events(a);
}

static int find_gpus(struct nvml_at *a, struct err *e)
{
	struct nvml *n = a->n;
	unsigned count = 0;
	int result = NVML_CALL(a, count, &count);

	if (result != 0)
		return err_set(e, -EIO, "the NVIDIA driver does not count its GPUs: error %d",
			       result);
	n->n_gpus = count > GPU_DEVICES ? GPU_DEVICES : (int)count;
	n->has_events = NVML_CALL(a, event_create, &n->events) == 0;
	for (int i = 0; i < n->n_gpus; i++) {
		a->g = &n->gpu[i];
		a->g->index = i;
		a->g->told = GPU_KNOWN;
		atomic_store(&a->g->pcie_tx, -1 - (int64_t)GPU_NOT_ASKED);
		atomic_store(&a->g->pcie_rx, -1 - (int64_t)GPU_NOT_ASKED);
		a->g->skipped = gpu_skipped_index(a->w, i, n->n_gpus);
		if (!a->g->skipped)
			find_gpu(a);
	}
	a->g = NULL;
	return 0;
}

static void close_nvml(void *state)
{
	struct nvml *n = state;

	for (int i = 0; n->initialised && i < n->n_gpus; i++) {
		nvml_gpm_done(n, &n->gpu[i].gpm);
		for (int k = 0; k < n->gpu[i].n_parts; k++)
			nvml_gpm_done(n, &n->gpu[i].part[k].gpm);
	}
	if (n->has_events && n->lib.event_free)
		(void)n->lib.event_free(n->events);
	if (n->initialised && n->lib.shutdown)
		(void)n->lib.shutdown();
	free(n->rows);
	free(n->samples);
	/* The library stays loaded: its threads may still run. */
	memset(n, 0, sizeof(*n));
}

static int open_nvml(struct gpu_world *w, void *state, struct err *e)
{
	struct nvml *n = state;
	struct nvml_at a = { .w = w, .n = n, .depth = GPU_SLOW };
	int error, result;

	if (!w->live)
		return -ENOENT;
	error = load(w, &n->lib, e);
	if (error < 0)
		return error;
	result = NVML_CALL(&a, init);
	if (result != 0) {
		memset(n, 0, sizeof(*n));
		return why_init(result, e);
	}
	n->initialised = true;
	n->simulated = dlsym(n->lib.opened, "nvmlVirtualDriver") != NULL;
	read_versions(&a);
	error = find_gpus(&a, e);
	if (n->dead) /* without this its GPUs would just not be there */
		error = why_init(n->dead, e);
	if (error < 0)
		close_nvml(n);
	return error;
}

static void note_change(struct nvml_at *a)
{
	struct nvml_gpu *g = a->g;
	bool lost = g->state == GPU_LOST || g->state == GPU_NEEDS_RESET;
	bool was = g->told == GPU_LOST || g->told == GPU_NEEDS_RESET;

	if (lost && !was)
		gpu_note(a->s, GPU_NOTE_LOST, a->row,
			 g->state == GPU_LOST ? NVML_ERROR_GPU_IS_LOST : NVML_ERROR_RESET_REQUIRED);
	else if (was && !lost)
		gpu_note(a->s, GPU_NOTE_BACK, a->row, 0);
	g->told = g->state;
}

/* One that was lost is asked one thing, once a second. */
static void probe(struct nvml_at *a)
{
	struct nvml_gpu *g = a->g;
	struct nvml_utilization u;
	enum gpu_have was = g->state;
	int result;

	if (a->depth < GPU_MIDDLE)
		return;
	if (!g->handle) {
		find_gpu(a);
		return;
	}
	g->state = GPU_KNOWN;
	result = NVML_CALL(a, utilization, g->handle, &u);
	if (result != 0 && result != NVML_ERROR_NOT_SUPPORTED)
		g->state = was;
}

static void add_gpu(struct nvml_at *a)
{
	struct nvml_gpu *g = a->g;
	struct gpu_device *d = gpu_add_device(a->s, GPU_NVIDIA);

	if (!d)
		return;
	a->row = (int)(d - a->s->device);
	d->index = (int16_t)g->index;
	d->simulated = a->n->simulated;
	text_safe_copy(d->driver, sizeof(d->driver), a->n->driver);
	text_safe_copy(d->runtime, sizeof(d->runtime), a->n->cuda);
	if (g->skipped) {
		text_safe_copy(d->pci, sizeof(d->pci), g->pci);
		d->state = GPU_HUNG;
		return;
	}
	if (g->state != GPU_KNOWN)
		probe(a);
	if (g->state == GPU_KNOWN)
		nvml_read_device(a);
	text_safe_copy(d->name, sizeof(d->name), g->name);
	text_safe_copy(d->uuid, sizeof(d->uuid), g->uuid);
	text_safe_copy(d->pci, sizeof(d->pci), g->pci);
	d->unified = g->unified;
	d->partitioned = g->mig;
	d->state = (uint8_t)g->state;
	nvml_tell_events(a);
	note_change(a);
	if (g->state == GPU_KNOWN)
		nvml_read_parts(a);
}

static int read_nvml(struct gpu_world *w, void *state, enum gpu_depth depth, struct gpu_snapshot *s)
{
	struct nvml *n = state;
	struct nvml_at a = { .w = w, .n = n, .depth = depth, .s = s };
	int first = s->n_devices;

	if (depth >= GPU_MIDDLE)
		nvml_take_events(&a);
	for (int i = 0; i < n->n_gpus; i++) {
		a.g = &n->gpu[i];
		add_gpu(&a);
	}
	if (depth >= GPU_MIDDLE)
		nvml_forget_processes(n);
	if (!n->dead)
		return 0;
	/* Said of the GPUs first: then the driver is opened again, and says why it cannot be. */
	if (n->told_dead)
		return -ENODEV;
	n->told_dead = true;
	for (int i = first; i < s->n_devices; i++)
		s->device[i].state = GPU_FAILED;
	return 0;
}

static int64_t throughput(struct nvml_at *a, nvml_device handle, unsigned direction)
{
	unsigned kb = 0;
	int result = NVML_CALL(a, pcie_throughput, handle, direction, &kb);

	return result == 0 ? (int64_t)kb : -1 - (int64_t)nvml_have(result);
}

/* 20 ms a call: "querying a byte counter over a 20ms interval". */
static void crawl_nvml(struct gpu_world *w, void *state)
{
	struct nvml *n = state;
	struct nvml_at a = { .w = w, .n = n, .lane = 1, .depth = GPU_SLOW };

	for (int i = 0; i < n->n_gpus; i++) {
		nvml_device handle = atomic_load(&n->gpu[i].open);

		a.g = &n->gpu[i];
		if (!handle)
			continue;
		atomic_store(&a.g->pcie_tx, throughput(&a, handle, NVML_PCIE_TX));
		atomic_store(&a.g->pcie_rx, throughput(&a, handle, NVML_PCIE_RX));
	}
}

extern const struct gpu_backend nvml_backend;
const struct gpu_backend nvml_backend = {
	.name = "nvml",
	.vendor = GPU_NVIDIA,
	.state_size = sizeof(struct nvml),
	.open = open_nvml,
	.read = read_nvml,
	.crawl = crawl_nvml,
	.identify = nvml_identify,
	.close = close_nvml,
};
