/* SPDX-License-Identifier: MIT
 *
 * Which GPUs can be read. A driver that hangs costs this check its patience and nothing else.
 */
#include "cli/doctor.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/text.h"
#include "cli/nvml.h"
#include "gpu/client.h"
#include "gpu/owner.h"

#include <stdio.h>
#include <string.h>

/* A library that loads has 10 s, a call 2 s: three GPUs that hang one after the other take 7. */
enum { PATIENCE_S = 12 };

static const char *problem_of(const struct gpu_snapshot *s)
{
	for (int v = 0; v < GPU_VENDORS; v++)
		if (s->problem[v][0])
			return s->problem[v];
	return NULL;
}

/* NULL: nothing at all is known. */
static const struct gpu_snapshot *read_gpus(const struct doctor *d, struct gpu_client *c)
{
	const struct gpu_snapshot *s;
	bool late;

	if (!d->host->live)
		return gpu_client_poll(c, d->host->root, 0);
	late = gpu_client_wait(c, PATIENCE_S * NS_PER_S) < 0;
	s = gpu_client_last(c);
	/* "None" is believed only of those who had the time to look; some GPUs are better than none. */
	return late && s && !s->n_devices && !problem_of(s) ? NULL : s;
}

/* "2 x NVIDIA H100 80GB HBM3 (590.48.01, CUDA 13.1, simulated)" for each kind of GPU. */
static void list(const struct gpu_snapshot *s, char *ret, size_t size)
{
	size_t n = 0;

	ret[0] = '\0';
	for (int i = 0; i < s->n_devices; i++) {
		const struct gpu_device *g = &s->device[i];
		int same = 0;
		bool told = false;

		if (g->partition >= 0)
			continue;
		for (int k = 0; k < s->n_devices; k++) {
			bool like =
			    s->device[k].partition < 0 && strcmp(s->device[k].name, g->name) == 0;

			told |= like && k < i;
			same += like;
		}
		if (told || n >= size)
			continue;
		n += (size_t)snprintf(ret + n, size - n, "%s%d x %s (%s%s%s%s%s)", n ? "; " : "",
				      same, g->name[0] ? g->name : gpu_vendor_name(g->vendor),
				      g->driver[0] ? g->driver : "driver not known",
				      g->runtime[0] ? ", " : "", g->runtime,
				      g->partitioned ? ", partitioned" : "",
				      g->simulated ? ", simulated" : "");
	}
}

static int first_bad(const struct gpu_snapshot *s)
{
	for (int i = 0; i < s->n_devices; i++)
		if (s->device[i].state != GPU_KNOWN)
			return i;
	return -1;
}

static void tell_bad(const struct gpu_snapshot *s, int row, struct gpu_client *c,
		     struct doctor_row *r)
{
	struct gpu_event e;

	while (gpu_client_event(c, &e))
		if (e.kind == GPU_EVENT_HANG) {
			doctor_effect(r, "%s: it is left alone", e.text);
			return;
		}
	doctor_effect(r, "GPU %d (%s) does not answer", gpu_number(s, row), s->device[row].pci);
	doctor_unlock(r, "sudo dmesg | grep -i -e xid -e amdgpu -e i915");
}

static void tell(const struct gpu_snapshot *s, struct gpu_client *c, struct doctor_row *r)
{
	int bad = first_bad(s);
	const char *problem = problem_of(s);
	char all[200];

	if (!s->n_devices && problem) {
		doctor_set(r, DOCTOR_MISSING, "no GPU can be read");
		doctor_effect(r, "%s", problem);
		return;
	}
	if (!s->n_devices) {
		doctor_set(r, DOCTOR_OK, "none found (NVIDIA by NVML, AMD and Intel by sysfs)");
		return;
	}
	list(s, all, sizeof(all));
	doctor_set(r, bad >= 0 || problem ? DOCTOR_LIMITED : DOCTOR_OK, "%s", all);
	if (bad >= 0)
		tell_bad(s, bad, c, r);
	else if (problem)
		doctor_effect(r, "%s", problem);
}

static void tell_silence(struct gpu_client *c, struct doctor_row *r)
{
	struct gpu_event e;

	doctor_set(r, DOCTOR_MISSING, "the driver does not answer within %d s", PATIENCE_S);
	doctor_effect(r, "records have no GPU figures until it does");
	while (gpu_client_event(c, &e))
		if (e.kind == GPU_EVENT_GAVE_UP) {
			doctor_set(r, DOCTOR_MISSING, "not read");
			doctor_effect(r, "%s", e.text);
		}
}

static void look_gpus(const struct doctor *d, struct doctor_row *r)
{
	struct gpu_client_options o = { .nvml = nvml_path(NULL),
					.fixture = !d->host->live,
					.depth = GPU_SLOW };
	const struct gpu_snapshot *s;
	struct gpu_client *c = NULL;
	struct err e = { 0 };

	if (gpu_client_open(&o, &c, &e) < 0) {
		doctor_set(r, DOCTOR_UNKNOWN, "%s", e.text);
		return;
	}
	s = read_gpus(d, c);
	if (s) {
		tell(s, c, r);
	} else {
		tell_silence(c, r);
	}
	gpu_client_close(c);
}

/* Drivers list processes as the machine counts them: in a container those are other numbers. */
static void look_owners(const struct doctor *d, struct doctor_row *r)
{
	if (gpu_first_namespace(d->host->root)) {
		doctor_set(r, DOCTOR_OK, "process ids of GPU drivers are those seen here");
		return;
	}
	doctor_set(r, DOCTOR_LIMITED, "this is a container with process ids of its own");
	doctor_effect(r, "GPU drivers list processes by the machine's ids: whose work it is can be "
			 "told only where a driver translates them");
	doctor_unlock(r, "docker run --pid=host ... (or hostPID: true in Kubernetes)");
}

const struct doctor_check doctor_gpu_checks[] = {
	{ "gpus", "GPUs", false, look_gpus },
	{ "gpu_owners", "GPU processes", true, look_owners },
	{ NULL, NULL, false, NULL },
};
