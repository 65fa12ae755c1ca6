/* SPDX-License-Identifier: MIT
 *
 * Who is on a GPU: compute, graphics and MPS clients in one list, a row a process.
 *
 * Rows differ: 16 bytes without a suffix, 24 with _v2 and _v3, 32 with _v3 in drivers 535.43 to 535.86.
 */
#include "gpu/nvml.h"

#include "base/clock.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS_FIRST = 64, ROWS_MAX = 4096, SAMPLES_FIRST = 256, SAMPLES_MAX = 4096 };

#define USAGE_KEPT_NS (2500 * NS_PER_MS) /* the driver's samples are up to a second apart */
#define SAMPLE_OLD_US 10000000ll

enum kind { COMPUTE, GRAPHICS, MPS, KINDS };

static int call(struct nvml_at *a, enum kind k, int version, nvml_device h, unsigned *n)
{
	void *rows = a->n->rows;

	switch (k * 4 + version) {
	case COMPUTE * 4 + 3:
		return NVML_CALL(a, compute_v3, h, n, rows);
	case COMPUTE * 4 + 2:
		return NVML_CALL(a, compute_v2, h, n, rows);
	case COMPUTE * 4 + 1:
		return NVML_CALL(a, compute_v1, h, n, rows);
	case GRAPHICS * 4 + 3:
		return NVML_CALL(a, graphics_v3, h, n, rows);
	case GRAPHICS * 4 + 2:
		return NVML_CALL(a, graphics_v2, h, n, rows);
	case GRAPHICS * 4 + 1:
		return NVML_CALL(a, graphics_v1, h, n, rows);
	case MPS * 4 + 3:
		return NVML_CALL(a, mps_v3, h, n, rows);
	case MPS * 4 + 2:
		return NVML_CALL(a, mps_v2, h, n, rows);
	default:
		return NVML_CALL(a, mps_v1, h, n, rows);
	}
}

static bool make_room(struct nvml *n, unsigned rows)
{
	void *more;

	if (rows <= n->max_rows)
		return true;
	if (rows > ROWS_MAX)
		rows = ROWS_MAX;
	/* The largest row there is, so that a driver whose version was misread stays inside. */
	more = realloc(n->rows, rows * sizeof(struct nvml_process_detail));
	if (!more)
		return n->rows != NULL;
	n->rows = more;
	n->max_rows = rows;
	return true;
}

/* All rows of a kind: the result, and how many and how long they are. */
static int list(struct nvml_at *a, enum kind k, nvml_device h, unsigned *ret_n, size_t *ret_size)
{
	int result = NVML_ERROR_FUNCTION_NOT_FOUND;

	if (!make_room(a->n, ROWS_FIRST))
		return NVML_ERROR_MEMORY;
	for (int version = 3; version >= 1 && result == NVML_ERROR_FUNCTION_NOT_FOUND; version--) {
		/* Processes come and go between two tries; an answer that is always "more" ends. */
		for (int try = 0; try < 4; try++) {
			unsigned n = a->n->max_rows;

			memset(a->n->rows, 0, n * sizeof(struct nvml_process_detail));
			result = call(a, k, version, h, &n);
			*ret_n = n < a->n->max_rows ? n : a->n->max_rows;
			if (result != NVML_ERROR_INSUFFICIENT_SIZE || a->n->max_rows >= ROWS_MAX ||
			    !make_room(a->n, n > ROWS_MAX / 2 ? ROWS_MAX : n * 2 + 8))
				break;
		}
		*ret_size = version == 3   ? (size_t)a->n->process_size
			    : version == 2 ? sizeof(struct nvml_process)
					   : sizeof(struct nvml_process_v1);
	}
	return result;
}

static struct nvml_seen *seen(struct nvml *n, int gpu, unsigned pid, bool add)
{
	for (int i = 0; i < n->n_seen; i++)
		if (n->seen[i].pid == pid && n->seen[i].gpu == gpu)
			return &n->seen[i];
	if (!add || n->n_seen >= NVML_SEEN)
		return NULL;
	n->seen[n->n_seen] = (struct nvml_seen){ .pid = pid, .gpu = gpu };
	return &n->seen[n->n_seen++];
}

/* Asked once a process: it costs a look into /proc of the driver's pid namespace. */
static void put_name(struct nvml_at *a, struct gpu_process *p, struct nvml_seen *s)
{
	char text[1024] = "";

	if (!s->named && NVML_CALL(a, process_name, s->pid, text, sizeof(text) - 1) == 0)
		text_safe_copy(s->name, sizeof(s->name), text);
	s->named = true;
	memcpy(p->name, s->name, sizeof(p->name));
}

static struct gpu_process *find_row(struct nvml_at *a, unsigned pid)
{
	for (int i = a->s->n_processes - 1; i >= 0; i--) {
		struct gpu_process *p = &a->s->process[i];

		if (p->device == a->row && p->pid == (int32_t)pid)
			return p;
	}
	return NULL;
}

static void add_row(struct nvml_at *a, enum kind k, const void *row, size_t size)
{
	struct nvml_process r = { 0 };
	struct gpu_process *p;
	struct nvml_seen *s;
	int64_t kb;

	memcpy(&r, row, size < sizeof(r) ? size : sizeof(r));
	if (r.pid == 0 || r.pid > INT32_MAX)
		return;
	p = find_row(a, r.pid);
	if (p)
		p->graphics &= k == GRAPHICS;
	else if ((p = gpu_add_process(a->s, a->row, (int32_t)r.pid)))
		p->graphics = k == GRAPHICS;
	if (!p)
		return;
	kb = r.memory == NVML_NO_MEMORY_VALUE ? -1 : (int64_t)(r.memory / 1024);
	/* More than there is: a row misread, or a driver's mistake. Not a number to show. */
	if (a->g->memory_total > 0 && kb > a->g->memory_total)
		kb = -1;
	if (kb > p->memory_kb)
		p->memory_kb = kb;
	s = seen(a->n, a->g->index, r.pid, true);
	if (!s)
		return;
	s->used = true;
	put_name(a, p, s);
}

/* Several a process, oldest first or in any order. */
static void take_sample(struct nvml_at *a, const struct nvml_process_sample *v, int64_t now_ns)
{
	struct nvml_seen *s = seen(a->n, a->g->index, v->pid, false);

	if (!s || v->time_us <= s->sample_us || v->sm > 100 || v->encoder > 100 || v->decoder > 100)
		return;
	s->sample_us = v->time_us;
	s->sampled_ns = now_ns;
	s->busy = (int)v->sm * 100;
	s->encoder = (int)v->encoder * 100;
	s->decoder = (int)v->decoder * 100;
}

static bool room_for_samples(struct nvml *n, unsigned samples)
{
	struct nvml_process_sample *more;

	if (samples > SAMPLES_MAX)
		samples = SAMPLES_MAX;
	if (samples <= n->max_samples)
		return false;
	more = realloc(n->samples, samples * sizeof(*more));
	if (!more)
		return false;
	n->samples = more;
	n->max_samples = samples;
	return true;
}

/* The samples newer than `last`; how many. None when there are none (NOT_FOUND), or too many. */
static unsigned list_samples(struct nvml_at *a, unsigned long long last)
{
	struct nvml *n = a->n;

	if (!n->samples && !room_for_samples(n, SAMPLES_FIRST))
		return 0;
	for (;;) {
		unsigned got = n->max_samples;
		int result;

		memset(n->samples, 0, got * sizeof(*n->samples));
		result = NVML_TRY(a, process_usage, a->g->handle, n->samples, &got, last);
		if (result == 0)
			return got < n->max_samples ? got : n->max_samples;
		/* The room grows each time, up to its bound: this ends. */
		if (result != NVML_ERROR_INSUFFICIENT_SIZE ||
		    !room_for_samples(n, got > SAMPLES_MAX / 2  ? SAMPLES_MAX
					 : got > n->max_samples ? got + got / 4
								: n->max_samples * 2))
			return 0;
	}
}

static void read_usage(struct nvml_at *a)
{
	unsigned long long last = a->g->usage_seen_us;
	int64_t now = clock_mono_ns(), wall_us = clock_wall_ns() / 1000;
	unsigned n = list_samples(a, last);

	for (unsigned i = 0; i < n; i++) {
		const struct nvml_process_sample *v = &a->n->samples[i];

		/* Since 1970; the very first look gets what the driver has kept, however old. */
		if (v->time_us <= last || (int64_t)v->time_us < wall_us - SAMPLE_OLD_US)
			continue;
		take_sample(a, v, now);
		if (v->time_us > a->g->usage_seen_us)
			a->g->usage_seen_us = v->time_us;
	}
}

static void put_usage(struct nvml_at *a, int from)
{
	int64_t now = clock_mono_ns();

	for (int i = from; i < a->s->n_processes; i++) {
		struct gpu_process *p = &a->s->process[i];
		struct nvml_seen *s = seen(a->n, a->g->index, (unsigned)p->pid, false);

		if (!s || !s->sampled_ns || now - s->sampled_ns > USAGE_KEPT_NS)
			continue;
		p->busy = s->busy;
		p->encoder = s->encoder;
		p->decoder = s->decoder;
	}
}

void nvml_read_processes(struct nvml_at *a, nvml_device handle, bool usage)
{
	int from = a->s->n_processes, first_result = 0;

	for (int k = 0; k < KINDS; k++) {
		unsigned n = 0;
		size_t size = 0;
		int result = list(a, (enum kind)k, handle, &n, &size);

		if (k == COMPUTE)
			first_result = result;
		for (unsigned i = 0; result == 0 && i < n; i++)
			add_row(a, (enum kind)k, (const char *)a->n->rows + i * size, size);
	}
	if (first_result != 0)
		gpu_lacks(nvml_row(a), M_GPU_PROCESSES, nvml_have(first_result));
	if (usage && a->s->n_processes > from) {
		read_usage(a);
		put_usage(a, from);
	}
}

/* Those that were in no list of this reading. */
void nvml_forget_processes(struct nvml *n)
{
	int kept = 0;

	for (int i = 0; i < n->n_seen; i++) {
		if (!n->seen[i].used)
			continue;
		n->seen[kept] = n->seen[i];
		n->seen[kept++].used = false;
	}
	n->n_seen = kept;
}
