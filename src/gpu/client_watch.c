/* SPDX-License-Identifier: MIT
 *
 * Looking after helpers, once a poll: a call that does not return, a helper that died, memory that
 * was written over. Each costs a helper; there are GPU_HELPERS of them in a run.
 */
#include "gpu/client_state.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/text.h"

#include <string.h>

enum {
	PATIENCE = 5,        /* deadlines for the calls that initialise a library */
	HEART_PATIENCE = 10, /* deadlines without a turn of the loop, though no call is in flight */
};

static const int64_t retell_ns[] = { 10 * NS_PER_S, 60 * NS_PER_S };
#define RETELL_NS (600 * NS_PER_S)

/* Rows that the driver counts no more are among them: then no number is trusted. */
static int16_t gpus_of(const struct gpu_client *c, int vendor)
{
	int n = 0;

	for (int i = 0; c->given && i < c->last->n_devices; i++)
		n += c->last->device[i].vendor == vendor && c->last->device[i].partition < 0;
	return n ? (int16_t)n : -1;
}

/* What a call was about is left out by the next helper. */
static void skip_subject(struct gpu_client *c, const struct gpu_call *call)
{
	struct gpu_skip s = { .vendor = (int16_t)call->vendor, .index = (int16_t)call->index };

	if ((unsigned)call->vendor >= GPU_VENDORS || call->index >= GPU_DEVICES)
		return; /* written over */
	s.of = gpus_of(c, call->vendor);
	text_safe_copy(s.pci, sizeof(s.pci), call->pci);
	text_safe_copy(s.call, sizeof(s.call), call->what);
	s.vendor_whole = call->index < 0 && !call->pci[0];
	if (call->index < 0)
		s.index = -1;
	for (int i = 0; i < c->n_skips; i++)
		if (c->skip[i].vendor == s.vendor && c->skip[i].index == s.index &&
		    strcmp(c->skip[i].pci, s.pci) == 0)
			return;
	if (c->n_skips < GPU_DEVICES)
		c->skip[c->n_skips++] = s;
}

static void start_next(struct gpu_client *c, int64_t now_ns)
{
	struct gpu_helper *h = NULL;
	int error;

	for (int i = 0; i < GPU_HELPERS && !h; i++)
		if (c->helper[i].role == GPU_ROLE_NONE && !c->helper[i].pid)
			h = &c->helper[i];
	if (c->gave_up || now_ns < c->restart_ns || (!h && c->n_started < GPU_HELPERS))
		return;
	if (c->n_started >= GPU_HELPERS) {
		c->gave_up = true;
		gpu_tell(c, GPU_EVENT_GAVE_UP,
			 "GPUs are read no more: %d helpers have hung or died in driver calls",
			 GPU_HELPERS);
		return;
	}
	error = gpu_start_helper(c, h, now_ns);
	if (error < 0) {
		c->restart_ns = now_ns + NS_PER_S; /* out of processes or memory: that may pass */
		return;
	}
	c->current = (int)(h - c->helper);
	c->n_started++;
	if (c->n_started > 1)
		gpu_tell(c, GPU_EVENT_REPLACED, "the GPU helper was replaced (%d of %d)%s",
			 c->n_started, GPU_HELPERS,
			 c->n_skips ? "; what hung or crashed it is left alone" : "");
}

static void hung(struct gpu_client *c, struct gpu_helper *h, int lane, const struct gpu_call *call,
		 int64_t blocked_ns)
{
	h->lane = lane;
	h->call = *call;
	h->told_ns = blocked_ns;
	h->role = GPU_ROLE_STUCK;
	c->current = -1;
	gpu_tell_call(c, GPU_EVENT_HANG, call, blocked_ns);
	skip_subject(c, call);
	/* A slow initialisation may still come to its end: then that helper is taken back. */
	if (call->index >= 0 || call->pci[0])
		atomic_store(&h->shared->calls.retired, (uint32_t)lane + 1);
}

/* For how long has this lane been in one call, by both clocks? -1: in none. */
static int64_t blocked_ns(struct gpu_client *c, struct gpu_helper *h, int lane,
			  struct gpu_call *call, int64_t now_ns)
{
	if (!gpu_call_read(&h->shared->calls, lane, call)) {
		h->call_started[lane] = 0;
		return -1;
	}
	if (call->started_ns != h->call_started[lane] ||
	    now_ns - c->polled_ns > c->o.deadline_ns / 2) {
		h->call_started[lane] = call->started_ns;
		h->call_seen_ns[lane] = now_ns;
	}
	if (call->started_ns < h->started_ns)
		return now_ns - h->started_ns; /* before it was there: written over */
	/* In the future: written over as well, and as good as any other call that does not end. */
	if (call->started_ns > now_ns + NS_PER_S)
		return now_ns - h->call_seen_ns[lane];
	return now_ns - call->started_ns;
}

static void check_calls(struct gpu_client *c, struct gpu_helper *h, int64_t now_ns)
{
	for (int lane = 0; lane < GPU_LANES; lane++) {
		struct gpu_call call;
		int64_t ns = blocked_ns(c, h, lane, &call, now_ns);
		int64_t deadline = c->o.deadline_ns * (ns >= 0 && call.patient ? PATIENCE : 1);

		if (ns < deadline || now_ns - h->call_seen_ns[lane] < c->o.deadline_ns / 2)
			continue;
		hung(c, h, lane, &call, ns);
		return;
	}
}

static void check_heart(struct gpu_client *c, struct gpu_helper *h, int64_t now_ns)
{
	uint64_t beat = atomic_load_explicit(&h->shared->heartbeat, memory_order_relaxed);
	int64_t period = c->o.period_ns * c->thrift;
	int64_t patience = HEART_PATIENCE * c->o.deadline_ns + 2 * period;

	if (beat != h->heartbeat || h->call_started[0] ||
	    now_ns - c->polled_ns > c->o.deadline_ns / 2) {
		h->heartbeat = beat;
		h->heartbeat_ns = now_ns;
	}
	if (now_ns - h->heartbeat_ns < patience)
		return;
	gpu_tell_call(c, GPU_EVENT_HANG, &(struct gpu_call){ .index = -1 },
		      now_ns - h->heartbeat_ns);
	gpu_kill_helper(h);
	c->current = -1;
}

/* The call that crashed it: in the lane the fault handler saw, else in whichever is in one. */
static bool fatal_call(struct gpu_helper *h, struct gpu_call *ret)
{
	uint32_t lane = atomic_load(&h->shared->calls.crashed);

	if (lane >= 1 && lane <= GPU_LANES)
		return gpu_call_read(&h->shared->calls, (int)lane - 1, ret);
	return gpu_call_read(&h->shared->calls, 0, ret) || gpu_call_read(&h->shared->calls, 1, ret);
}

static void died(struct gpu_client *c, bool in_call, const struct gpu_call *call, int status,
		 int64_t now_ns)
{
	bool of_none = in_call && call->index < 0 && !call->pci[0];

	gpu_tell_death(c, in_call ? call : NULL, status);
	/* A library that crashed once while it was loaded may have been in the middle of an update. */
	if (in_call && (!of_none || c->crashes_of_none++ > 0))
		skip_subject(c, call);
	c->current = -1;
	c->restart_ns = now_ns + (c->n_started - 1) * NS_PER_S;
}

static void check_current(struct gpu_client *c, struct gpu_helper *h, int64_t now_ns)
{
	/* Looked at in this order: a call seen while it lived need not be the one it died in. */
	bool ended = gpu_helper_ended(h);
	struct gpu_call call;
	bool in_call = ended && fatal_call(h, &call);
	int status;

	if (ended && gpu_bury_helper(c, h, &status)) {
		died(c, in_call, &call, status, now_ns);
		return;
	}
	if (!gpu_shared_intact(h->shared)) {
		gpu_tell(c, GPU_EVENT_DIED,
			 "the GPU helper has written over its memory and is ended");
		gpu_kill_helper(h);
		c->current = -1;
		c->restart_ns = now_ns + (c->n_started - 1) * NS_PER_S;
		return;
	}
	check_calls(c, h, now_ns);
	if (h->role == GPU_ROLE_CURRENT)
		check_heart(c, h, now_ns);
}

static void retell(struct gpu_client *c, struct gpu_helper *h, int64_t ns)
{
	int64_t next = h->told_ns - h->told_ns % RETELL_NS + RETELL_NS;

	for (size_t i = 0; i < ARRAY_LEN(retell_ns); i++) {
		if (h->told_ns >= retell_ns[i])
			continue;
		next = retell_ns[i];
		break;
	}
	if (ns < next)
		return;
	h->told_ns = ns;
	gpu_tell_call(c, GPU_EVENT_HANG, &h->call, ns);
}

static void unskip_vendor(struct gpu_client *c, int vendor)
{
	int kept = 0;

	for (int i = 0; i < c->n_skips; i++)
		if (!c->skip[i].vendor_whole || c->skip[i].vendor != vendor)
			c->skip[kept++] = c->skip[i];
	c->n_skips = kept;
}

/* Its call came back after all. About one GPU: the helper has ended on its own, for the others are
 * read elsewhere by now. About the vendor as a whole (a slow start): it knows more than the one that
 * took its place. */
static void came_back(struct gpu_client *c, struct gpu_helper *h, int64_t took_ns)
{
	bool whole = h->call.index < 0 && !h->call.pci[0];

	gpu_tell_call(c, GPU_EVENT_RETURNED, &h->call, took_ns);
	if (!whole) {
		gpu_kill_helper(h);
		return;
	}
	if (c->current >= 0)
		gpu_kill_helper(&c->helper[c->current]);
	unskip_vendor(c, h->call.vendor);
	h->role = GPU_ROLE_CURRENT;
	h->heartbeat_ns = h->call_seen_ns[0] = h->call_seen_ns[1] = c->polled_ns;
	c->current = (int)(h - c->helper);
	if (c->ask) {
		atomic_store(&h->shared->ask, c->ask);
		gpu_wake_helper(h);
	}
}

static void check_stuck(struct gpu_client *c, struct gpu_helper *h, int64_t now_ns)
{
	int64_t took = gpu_call_took_ns(&h->shared->calls, h->lane, h->call.started_ns);
	int64_t ns = now_ns - h->call.started_ns;
	struct gpu_call call;
	int status;

	if (took < 0 || took > ns)
		took = ns;
	if (gpu_bury_helper(c, h, &status)) {
		/* Ended in gpu_call_end(), or killed by somebody. */
		gpu_tell_call(c, GPU_EVENT_RETURNED, &h->call, took);
		return;
	}
	if (gpu_call_read(&h->shared->calls, h->lane, &call) &&
	    call.started_ns == h->call.started_ns)
		retell(c, h, ns);
	else if (atomic_load(&h->shared->calls.lane[h->lane].started_ns) != h->call.started_ns)
		came_back(c, h, took);
}

void gpu_client_retell(struct gpu_client *c, int64_t now_ns)
{
	for (int i = 0; i < GPU_HELPERS; i++) {
		struct gpu_helper *h = &c->helper[i];
		int64_t ns = now_ns - h->call.started_ns;

		if (h->role != GPU_ROLE_STUCK || ns < h->told_ns + NS_PER_S)
			continue;
		h->told_ns = ns;
		gpu_tell_call(c, GPU_EVENT_HANG, &h->call, ns);
	}
}

void gpu_watch(struct gpu_client *c, int64_t now_ns)
{
	int status;

	if (!c->polled_ns)
		c->polled_ns = now_ns;
	for (int i = 0; i < GPU_HELPERS; i++) {
		struct gpu_helper *h = &c->helper[i];

		if (h->role == GPU_ROLE_CURRENT)
			check_current(c, h, now_ns);
		else if (h->role == GPU_ROLE_STUCK)
			check_stuck(c, h, now_ns);
		else if (h->role == GPU_ROLE_LEFT)
			(void)gpu_bury_helper(c, h, &status);
	}
	if (c->current < 0)
		start_next(c, now_ns);
	c->polled_ns = now_ns;
}
