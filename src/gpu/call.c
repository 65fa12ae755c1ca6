/* SPDX-License-Identifier: MIT */
#include "gpu/call.h"

#include "base/clock.h"
#include "base/text.h"
#include "gpu/backend.h"

#include <string.h>
#include <time.h>

bool gpu_skipped(const struct gpu_world *w, const char *pci)
{
	for (const char *const *p = w->skip; p && *p; p++)
		if (**p && strcmp(*p, pci) == 0)
			return true;
	return false;
}

bool gpu_skipped_index(const struct gpu_world *w, int index, int count)
{
	for (int i = 0; i < w->n_skip_indices; i++) {
		const struct gpu_skip_index *s = &w->skip_index[i];

		if (s->vendor == w->vendor && s->index == index &&
		    (!s->pci_known || s->of == count))
			return true;
	}
	return false;
}

void gpu_call_begin(struct gpu_world *w, int lane, const char *what, const char *pci, int index)
{
	struct gpu_call_cell *c;
	uint32_t sequence;

	if (lane == 0 && w->progress && w->progress_index != index) {
		w->progress_index = index;
		w->progress(w->progress_arg);
	}
	if (!w->calls)
		return;
	c = &w->calls->lane[lane];
	sequence = atomic_load_explicit(&c->sequence, memory_order_relaxed) | 1;
	atomic_store_explicit(&c->sequence, sequence, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	c->vendor = (int32_t)w->vendor;
	c->index = index;
	c->patient = w->opening;
	(void)text_copy(c->what, sizeof(c->what), what ? what : "");
	(void)text_copy(c->pci, sizeof(c->pci), pci ? pci : "");
	atomic_store_explicit(&c->started_ns, clock_mono_ns(), memory_order_relaxed);
	atomic_store_explicit(&c->sequence, sequence + 1, memory_order_release);
}

void gpu_call_end(struct gpu_world *w, int lane)
{
	struct gpu_call_cell *c;
	const struct timespec pause = { 0, 5 * NS_PER_MS };
	int64_t started, took;

	if (!w->calls)
		return;
	c = &w->calls->lane[lane];
	started = atomic_load_explicit(&c->started_ns, memory_order_relaxed);
	took = clock_mono_ns() - started;
	if (started && took > GPU_SLOW_CALL_NS) {
		atomic_store_explicit(&c->slow_ns, took, memory_order_relaxed);
		atomic_store_explicit(&c->slow_started_ns, started, memory_order_release);
	}
	atomic_store_explicit(&c->started_ns, 0, memory_order_release);
	/* The others are read elsewhere by now. Our keeper ends us when the client is gone. */
	while (atomic_load_explicit(&w->calls->retired, memory_order_relaxed) == (uint32_t)lane + 1)
		(void)nanosleep(&pause, NULL);
}

bool gpu_call_read(struct gpu_calls *calls, int lane, struct gpu_call *ret)
{
	struct gpu_call_cell *c = &calls->lane[lane];
	uint32_t before = atomic_load_explicit(&c->sequence, memory_order_acquire);

	ret->started_ns = atomic_load_explicit(&c->started_ns, memory_order_acquire);
	if (!ret->started_ns || (before & 1))
		return false;
	ret->vendor = c->vendor;
	ret->index = c->index;
	ret->patient = *(volatile uint8_t *)&c->patient != 0;
	memcpy(ret->what, c->what, sizeof(ret->what));
	memcpy(ret->pci, c->pci, sizeof(ret->pci));
	ret->what[sizeof(ret->what) - 1] = ret->pci[sizeof(ret->pci) - 1] = '\0';
	atomic_thread_fence(memory_order_acquire);
	return atomic_load_explicit(&c->sequence, memory_order_relaxed) == before;
}

int64_t gpu_call_took_ns(struct gpu_calls *calls, int lane, int64_t started_ns)
{
	struct gpu_call_cell *c = &calls->lane[lane];

	if (atomic_load_explicit(&c->slow_started_ns, memory_order_acquire) != started_ns)
		return -1;
	return atomic_load_explicit(&c->slow_ns, memory_order_relaxed);
}
