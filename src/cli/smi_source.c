/* SPDX-License-Identifier: MIT */
#include "cli/smi.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/text.h"
#include "collect/host.h"
#include "gpu/client.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A GPU whose call hangs costs the deadline of that call (2 s; 10 s while the driver is being loaded,
 * which takes seconds on a sleeping machine) and a new start of the helper, and several may hang one
 * after the other. */
#define PATIENCE_NS (30 * NS_PER_S)
#define FAST_NS     (200 * NS_PER_MS) /* the helper's own pace */
#define SLICE_NS    (150 * NS_PER_MS) /* how long a signal may go unseen */

struct smi_gpus {
	struct host host;
	struct gpu_client *client;
	struct gpu_snapshot *silent; /* made up when the driver does not answer */
	bool told_silence;           /* this time: said already */
	bool is_silent, is_stopped;
	bool (*asked_to_stop)(void);
};

int smi_open(const struct smi_source_options *o, struct smi_gpus **ret, struct err *e)
{
	struct gpu_client_options co = { .nvml = o->nvml ? o->nvml : getenv("SPOTTER_NVML"),
					 .fixture = o->root != NULL,
					 .depth = o->deep ? GPU_ALL : GPU_SLOW };
	struct smi_gpus *g = calloc(1, sizeof(*g));
	int r;

	if (!g)
		return err_set(e, -ENOMEM, "out of memory");
	if (o->period_ns && o->period_ns < FAST_NS)
		co.period_ns = o->period_ns;
	g->asked_to_stop = o->asked_to_stop;
	g->host.root = g->host.base = -1;
	r = host_open(&g->host, o->root, e);
	if (r == 0)
		r = gpu_client_open(&co, &g->client, e);
	if (r < 0) {
		smi_close(g);
		return r;
	}
	*ret = g;
	return 0;
}

/* The driver did not answer for all: nothing of what was known before is shown as if it were new, and who
 * was not read at all is waited for still. What was read (is_new) of the others holds. */
static const struct gpu_snapshot *say_hung(struct smi_gpus *g, const struct gpu_snapshot *last,
					   bool is_new)
{
	if (!g->silent)
		g->silent = malloc(sizeof(*g->silent));
	if (!g->silent)
		return NULL;
	memcpy(g->silent, last, sizeof(*last));
	if (!is_new)
		g->silent->n_processes = 0;
	for (int i = 0; i < last->n_devices; i++) {
		uint8_t *state = &g->silent->device[i].state;

		if (*state == GPU_NOT_ASKED || (*state == GPU_KNOWN && !is_new))
			*state = GPU_HUNG;
	}
	return g->silent;
}

static const struct gpu_snapshot *read_fixture(struct smi_gpus *g, bool to_end,
					       int64_t *ret_wall_ns)
{
	const struct gpu_snapshot *s;
	int64_t mono, boot;

	do {
		host_clock(&g->host, &mono, ret_wall_ns, &boot);
		s = gpu_client_poll(g->client, g->host.root, mono);
	} while (to_end && host_advance(&g->host));
	return s;
}

static bool is_new(const struct gpu_snapshot *s, int64_t from_ns)
{
	return s && s->taken_ns >= from_ns;
}

/* In slices, so that a signal is seen while the driver hangs. Each asks the helper anew: a reading that
 * takes longer than a slice answers one of the slices before, which will do. False: nothing came. */
static bool wait_for_reading(struct smi_gpus *g, int64_t from_ns)
{
	int64_t until = from_ns + PATIENCE_NS;

	for (int64_t now = from_ns; now < until; now = clock_mono_ns()) {
		int64_t slice = until - now < SLICE_NS ? until - now : SLICE_NS;
		const struct gpu_snapshot *s;

		if (gpu_client_wait(g->client, slice) == 0)
			return true;
		s = gpu_client_last(g->client);
		if (is_new(s, from_ns) && s->whole)
			return true;
		g->is_stopped = g->asked_to_stop && g->asked_to_stop();
		/* Back before its time: no helper is left to wait for. */
		if (g->is_stopped || clock_mono_ns() - now < slice)
			return false;
	}
	return false;
}

const struct gpu_snapshot *smi_read(struct smi_gpus *g, bool to_end, int64_t *ret_wall_ns)
{
	const struct gpu_snapshot *s;
	int64_t from_ns = clock_mono_ns();

	g->is_silent = g->told_silence = g->is_stopped = false;
	if (!g->host.live)
		return read_fixture(g, to_end, ret_wall_ns);
	g->is_silent = !wait_for_reading(g, from_ns) && !g->is_stopped;
	*ret_wall_ns = clock_wall_ns();
	s = gpu_client_last(g->client);
	if (g->is_stopped)
		return NULL;
	return g->is_silent && s ? say_hung(g, s, is_new(s, from_ns)) : s;
}

bool smi_stopped(const struct smi_gpus *g)
{
	return g->is_stopped;
}

bool smi_trouble(struct smi_gpus *g, char *ret, size_t size)
{
	struct gpu_event event;

	while (gpu_client_event(g->client, &event)) {
		/* One that was replaced is none of the user's business; why it was, is. */
		if (event.kind == GPU_EVENT_REPLACED || event.kind == GPU_EVENT_BACK)
			continue;
		g->told_silence |= event.kind == GPU_EVENT_GAVE_UP; /* it says why */
		text_safe_copy(ret, size, event.text);
		return true;
	}
	if (!g->is_silent || g->told_silence)
		return false;
	g->told_silence = true;
	text_safe_copy(ret, size, "the GPU drivers do not answer");
	return true;
}

bool smi_driver_there(const struct smi_gpus *g)
{
	return faccessat(g->host.root, "proc/driver/nvidia/version", F_OK, 0) == 0 ||
	       faccessat(g->host.root, "dev/nvidiactl", F_OK, 0) == 0;
}

/* What gpu/nvml.c says when NVML cannot be used, and what nvidia-smi does then. */
static const struct {
	const char *words; /* in the problem; "" any other */
	int status;
	const char *says;
} reasons[] = {
	{ "cannot load", SMI_NO_LIBRARY, NULL },
	{ "calls are missing", SMI_NO_LIBRARY, NULL },
	{ "not loaded", SMI_NO_DRIVER,
	  "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure "
	  "that the latest NVIDIA driver is installed and running.\n" },
	{ "no permission", SMI_NO_PERMISSION,
	  "Failed to initialize NVML: Insufficient Permissions" },
	{ "differ", SMI_MISMATCH, "Failed to initialize NVML: Driver/library version mismatch" },
	{ "", SMI_OTHER, "Failed to initialize NVML: Unknown Error" },
};

static int no_library(struct buf *out)
{
	buf_str(out, "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system. Please make "
		     "sure that the NVIDIA Display Driver is properly installed and present in "
		     "your system.\nPlease also try adding directory that contains "
		     "libnvidia-ml.so to your system PATH.\n\n");
	return SMI_NO_LIBRARY;
}

int smi_no_gpus(const struct gpu_snapshot *s, bool driver_there, struct buf *out)
{
	const char *problem = s ? s->problem[GPU_NVIDIA] : "";
	size_t i = 0;

	if (!s)
		problem = "not loaded, as far as one can tell: it does not answer";
	if (!*problem && driver_there)
		return no_library(out); /* not even an attempt failed: there is nothing to load */
	if (!*problem) {
		buf_str(out, "No devices were found\n");
		return SMI_NO_DEVICE;
	}
	while (!strstr(problem, reasons[i].words))
		i++;
	if (!reasons[i].says)
		return no_library(out);
	buf_printf(out, "%s\n", reasons[i].says);
	return reasons[i].status;
}

int smi_root(const struct smi_gpus *g)
{
	return g->host.root;
}

bool smi_advance(struct smi_gpus *g)
{
	return host_advance(&g->host);
}

void smi_close(struct smi_gpus *g)
{
	if (!g)
		return;
	gpu_client_close(g->client);
	host_close(&g->host);
	free(g->silent);
	free(g);
}
