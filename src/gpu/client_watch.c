/* SPDX-License-Identifier: MIT
 *
 * Looking after helpers, once a poll: a call that does not return, a helper that died, memory that
 * was written over. Each costs a helper; how many there are in a run stands in client.h.
 */
#include "gpu/client_state.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/text.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>

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

static bool about_none(const struct gpu_call *call)
{
	return call->index < 0 && !call->pci[0];
}

/* What a call was about; false: it was written over. */
static bool subject(const struct gpu_call *call, struct gpu_skip *ret)
{
	*ret = (struct gpu_skip){ .vendor = (int16_t)call->vendor, .index = (int16_t)call->index };
	if ((unsigned)call->vendor >= GPU_VENDORS || call->index >= GPU_DEVICES)
		return false;
	text_safe_copy(ret->pci, sizeof(ret->pci), call->pci);
	text_safe_copy(ret->call, sizeof(ret->call), call->what);
	ret->vendor_whole = about_none(call);
	if (call->index < 0)
		ret->index = -1;
	return true;
}

static bool same_subject(const struct gpu_skip *a, const struct gpu_skip *b)
{
	return a->vendor == b->vendor && a->index == b->index && strcmp(a->pci, b->pci) == 0;
}

/* It is left out by the next helper. */
static void skip_subject(struct gpu_client *c, const struct gpu_call *call)
{
	struct gpu_skip s;

	if (!subject(call, &s))
		return;
	s.of = gpus_of(c, call->vendor);
	for (int i = 0; i < c->n_skips; i++)
		if (same_subject(&c->skip[i], &s))
			return;
	if (c->n_skips < GPU_DEVICES)
		c->skip[c->n_skips++] = s;
	gpu_mark_skipped(c);
}

/* How often has it hung, with this time? */
static int count_hang(struct gpu_client *c, const struct gpu_call *call)
{
	struct gpu_skip s;

	if (about_none(call) || !subject(call, &s))
		return GPU_HANGS;
	for (int i = 0; i < c->n_hung; i++)
		if (same_subject(&c->hung[i].who, &s))
			return ++c->hung[i].times;
	if (c->n_hung == GPU_HELPERS)
		return GPU_HANGS;
	c->hung[c->n_hung].who = s;
	return c->hung[c->n_hung++].times = 1;
}

static void give_up(struct gpu_client *c)
{
	c->gave_up = true;
	gpu_tell(c, GPU_EVENT_GAVE_UP,
		 "GPUs are read no more: %d helpers have hung or died in driver calls",
		 c->n_started);
}

/* Our own failure, not the driver's: out of processes or memory, that may pass. */
static void start_failed(struct gpu_client *c, int error, int64_t now_ns)
{
	int64_t wait_s = c->start_failures < 6 ? 1 << c->start_failures : 60;

	c->restart_ns = now_ns + wait_s * NS_PER_S;
	c->start_failures++;
	if (error == EFBIG) {
		c->gave_up = true;
		gpu_tell(
		    c, GPU_EVENT_GAVE_UP,
		    "GPUs are not read: the GPU helper could not be started: the limit of file "
		    "sizes (ulimit -f) is below the %zu KB that it shares with us",
		    sizeof(struct gpu_shared) / 1024);
	} else if (c->start_failures == GPU_START_TRIES) {
		gpu_tell(c, GPU_EVENT_GAVE_UP,
			 "GPUs are not read: the GPU helper could not be started: %s%s",
			 error ? strerror(error) : "it ended before it began",
			 error == EAGAIN ? " (look at 'ulimit -u')" : "");
	}
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
	if (c->n_started >= GPU_HELPERS || c->n_other > GPU_SPARES) {
		give_up(c);
		return;
	}
	error = gpu_start_helper(c, h, now_ns);
	if (error < 0) {
		start_failed(c, -error, now_ns);
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
	c->n_other += count_hang(c, call) > 1;
	skip_subject(c, call);
	/* A slow initialisation may still come to its end: then that helper is taken back. */
	if (!about_none(call))
		atomic_store(&h->shared->calls.retired, (uint32_t)lane + 1);
}

/* The same call as in the last poll. One long time without a poll says nothing: the machine may have been
 * paused. Two do: with polls every 2 s a hang is told by the third. */
static void count_same(const struct gpu_client *c, struct gpu_helper *h, int lane, int64_t now_ns)
{
	int64_t ns = now_ns - c->polled_ns;

	if (ns <= c->o.deadline_ns / 2) {
		h->call_same_ns[lane] += ns;
		return;
	}
	h->call_same_ns[lane] = 0;
	h->gaps[lane]++;
}

/* For how long has this lane been in one call, by both clocks? -1: in none. */
static int64_t blocked_ns(struct gpu_client *c, struct gpu_helper *h, int lane,
			  struct gpu_call *call, int64_t now_ns)
{
	if (!gpu_call_read(&h->shared->calls, lane, call)) {
		h->call_started[lane] = 0;
		return -1;
	}
	if (call->started_ns != h->call_started[lane]) {
		h->call_started[lane] = call->started_ns;
		h->call_seen_ns[lane] = now_ns;
		h->call_same_ns[lane] = 0;
		h->gaps[lane] = 0;
	} else {
		count_same(c, h, lane, now_ns);
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

		if (ns < deadline ||
		    (h->call_same_ns[lane] < c->o.deadline_ns / 2 && h->gaps[lane] < 2))
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

	if (beat != h->heartbeat || h->call_started[0]) {
		h->heartbeat = beat;
		h->heart_still_ns = 0;
	} else {
		int64_t ns = now_ns - c->polled_ns;

		h->heart_still_ns += ns < c->o.deadline_ns ? ns : c->o.deadline_ns;
	}
	if (h->heart_still_ns < patience)
		return;
	gpu_tell_call(c, GPU_EVENT_HANG, &(struct gpu_call){ .index = -1 }, h->heart_still_ns);
	gpu_kill_helper(h);
	c->n_other++;
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
	bool of_none = in_call && about_none(call);

	gpu_tell_death(c, in_call ? call : NULL, status);
	/* A library that crashed once while it was loaded may have been in the middle of an update. */
	if (in_call && (!of_none || c->crashes_of_none++ > 0))
		skip_subject(c, call);
	c->current = -1;
	c->restart_ns = now_ns + c->n_other++ * NS_PER_S;
}

/* It never came to load anything. */
static bool never_started(const struct gpu_helper *h, bool in_call)
{
	return !in_call && !atomic_load(&h->shared->published);
}

static void check_current(struct gpu_client *c, struct gpu_helper *h, int64_t now_ns)
{
	/* Looked at in this order: a call seen while it lived need not be the one it died in. */
	bool ended = gpu_helper_ended(h);
	struct gpu_call call;
	bool in_call = ended && fatal_call(h, &call);
	bool early = ended && never_started(h, in_call);
	int error = atomic_load(&h->shared->start_error), status;

	if (ended && gpu_bury_helper(c, h, &status)) {
		if (early && WIFEXITED(status) &&
		    (WEXITSTATUS(status) == GPU_HELPER_NO_START ||
		     WEXITSTATUS(status) == GPU_HELPER_NO_EXEC)) {
			gpu_forget_helper(h);
			c->n_started--;
			c->current = -1;
			start_failed(c, error > 0 && error < 4096 ? error : 0, now_ns);
			return;
		}
		died(c, in_call, &call, status, now_ns);
		return;
	}
	if (!gpu_shared_intact(h->shared)) {
		gpu_tell(c, GPU_EVENT_DIED,
			 "the GPU helper has written over its memory and is ended");
		gpu_kill_helper(h);
		c->current = -1;
		c->restart_ns = now_ns + c->n_other++ * NS_PER_S;
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

/* What the call was about may be asked again, unless somebody else still waits for it, or it has hung too
 * often. */
static void unskip(struct gpu_client *c, const struct gpu_helper *from)
{
	struct gpu_skip s, other;
	int kept = 0;

	if (!subject(&from->call, &s))
		return;
	for (int i = 0; i < GPU_HELPERS; i++)
		if (&c->helper[i] != from && c->helper[i].role == GPU_ROLE_STUCK &&
		    subject(&c->helper[i].call, &other) && same_subject(&s, &other))
			return;
	for (int i = 0; i < c->n_hung; i++)
		if (same_subject(&c->hung[i].who, &s) && c->hung[i].times >= GPU_HANGS)
			return;
	for (int i = 0; i < c->n_skips; i++)
		if (!same_subject(&c->skip[i], &s))
			c->skip[kept++] = c->skip[i];
	c->n_skips = kept;
}

static void tell_skips(struct gpu_client *c)
{
	const struct gpu_helper *h = &c->helper[c->current];

	gpu_write_skips(h->shared, c->skip, c->n_skips);
	gpu_wake_helper(h);
}

static void take_back(struct gpu_client *c, struct gpu_helper *h)
{
	h->role = GPU_ROLE_CURRENT;
	h->heart_still_ns = 0;
	memset(h->call_started, 0, sizeof(h->call_started));
	c->current = (int)(h - c->helper);
	c->gave_up = false;
	if (c->ask)
		atomic_store(&h->shared->ask, c->ask);
	atomic_store(&h->shared->thrift, c->thrift);
	tell_skips(c);
	atomic_store(&h->shared->calls.retired, 0);
}

/* Its call came back after all. About one GPU: the others are read elsewhere by now, and it is too from
 * now on; when nobody reads any more, by this one. About the vendor as a whole (a slow start): it knows
 * more than the one that took its place. */
static void came_back(struct gpu_client *c, struct gpu_helper *h, int64_t took_ns)
{
	gpu_tell_call(c, GPU_EVENT_RETURNED, &h->call, took_ns);
	unskip(c, h);
	if (c->current >= 0 && !about_none(&h->call)) {
		gpu_kill_helper(h);
		tell_skips(c);
		return;
	}
	if (c->current >= 0)
		gpu_kill_helper(&c->helper[c->current]);
	take_back(c, h);
}

static void check_stuck(struct gpu_client *c, struct gpu_helper *h, int64_t now_ns)
{
	/* In this order, as above. */
	bool ended = gpu_helper_ended(h);
	bool returned =
	    atomic_load(&h->shared->calls.lane[h->lane].started_ns) != h->call.started_ns;
	int64_t took = gpu_call_took_ns(&h->shared->calls, h->lane, h->call.started_ns);
	int64_t ns = now_ns - h->call.started_ns;
	int status;

	if (took < 0 || took > ns)
		took = ns;
	if (ended && gpu_bury_helper(c, h, &status)) {
		/* Somebody has killed it, or the library has ended it. */
		if (!returned) {
			gpu_tell_death(c, &h->call, status);
			return;
		}
		gpu_tell_call(c, GPU_EVENT_RETURNED, &h->call, took);
		unskip(c, h);
		if (c->current >= 0)
			tell_skips(c);
	} else if (returned) {
		came_back(c, h, took);
	} else {
		retell(c, h, ns);
	}
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
