/* SPDX-License-Identifier: MIT
 *
 * Sampled instruction pointers: per thread an event on the CPU clock and a small ring that the kernel
 * writes backwards and over (perf_event_attr.write_backward, Linux 4.7): what data_head points to is
 * the newest record, and nobody is woken, by no signal and no poll. We look when it suits us.
 *
 * A record of ours (PERF_RECORD_SAMPLE): header, u64 ip, u32 pid, u32 tid, u64 time, u64 n, u64 ips[n];
 * among ips are marks (PERF_CONTEXT_USER) that are no addresses.
 */
#include "base/err.h"
#include "base/map.h"
#include "base/vec.h"
#include "stack/native/native.h"
#include "stack/native/perf_refusal.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CHAIN_MAX  NATIVE_FRAMES_MAX
#define RECORD_MAX (48 + 8 * (CHAIN_MAX + 8)) /* a few marks besides */
#define RECORDS    16                         /* looked at for a sample; throttling makes others */

struct watched {
	pid_t tid;
	int fd;
	uint8_t *ring; /* a page of control, a page of data */
	int64_t last_ns;
};

struct native_perf {
	double hz;
	size_t max;
	long page;
	VEC(struct watched) threads;
	struct map by_tid;
	int refused; /* -errno of the last one that was not permitted, 0 */
};

/* The shortest period the kernel's software clock has. */
#define ON_DEMAND_NS 10000

/* hz 0: on demand. */
static int open_once(pid_t tid, double hz, uint16_t frames)
{
	struct perf_event_attr a = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(a),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.freq = 1,
		.sample_freq = hz < 1       ? 1
			       : hz > 10000 ? 10000
					    : (uint64_t)(hz + 0.5),
		.sample_type =
		    PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.exclude_callchain_kernel = 1,
		.sample_max_stack = frames,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.write_backward = 1,
		.watermark = 1,
		.wakeup_watermark = 1u << 30, /* never */
	};
	long fd;

	if (hz <= 0) {
		a.freq = 0;
		a.sample_period = ON_DEMAND_NS;
		a.disabled = 1;
	}
	fd = syscall(SYS_perf_event_open, &a, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : (int)fd;
}

/* Kernels that found themselves too slow lower kernel.perf_event_max_sample_rate, and refuse more. */
static int open_event(pid_t tid, double hz)
{
	uint16_t frames = CHAIN_MAX;
	int fd;

	for (;; hz /= 2) {
		fd = open_once(tid, hz, frames);
		if (fd ==
		    -EOVERFLOW) { /* more than kernel.perf_event_max_stack: as many as it has */
			frames = 0;
			fd = open_once(tid, hz, frames);
		}
		if (fd != -EINVAL || hz < 10)
			return fd;
	}
}

/* What the kernel answers, as what it means to our caller. */
static int meaning(int r)
{
	switch (r) {
	case -ESRCH:
		return r;
	case -ENOMEM:
	case -EMFILE:
	case -ENFILE:
	case -ENOSPC:
		return -ENOSPC;
	case -EACCES: /* either nothing is permitted, or this one is another's */
		return perf_permitted() ? -EACCES : -EPERM;
	default: /* seccomp; no such call, or event, in this kernel */
		return -EPERM;
	}
}

static int begin(struct watched *ret, pid_t tid, double hz, long page)
{
	void *ring;
	int fd = open_event(tid, hz);

	if (fd < 0)
		return fd;
	/* Readable only is what makes the kernel write over what we did not look at. */
	ring = mmap(NULL, (size_t)page * 2, PROT_READ, MAP_SHARED, fd, 0);
	if (ring == MAP_FAILED) {
		int r = errno == EPERM || errno == EAGAIN || errno == ENOMEM ? -ENOSPC : -errno;

		close(fd);
		return r; /* EPERM: more than kernel.perf_event_mlock_kb and RLIMIT_MEMLOCK */
	}
	*ret = (struct watched){ .tid = tid, .fd = fd, .ring = ring, .last_ns = INT64_MIN };
	return 0;
}

static void end(struct watched *w, long page)
{
	munmap(w->ring, (size_t)page * 2);
	close(w->fd);
}

int native_perf_open(struct native_perf **ret, double hz, size_t threads)
{
	struct native_perf *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->hz = hz;
	p->max = threads;
	p->page = sysconf(_SC_PAGESIZE);
	*ret = p;
	return 0;
}

void native_perf_close(struct native_perf *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->threads.n; i++)
		end(&p->threads.v[i], p->page);
	vec_done(&p->threads);
	map_done(&p->by_tid);
	free(p);
}

int native_perf_watch(struct native_perf *p, pid_t tid)
{
	struct watched one, *slot;
	uint32_t at;
	int r;

	if (tid <= 0)
		return -ESRCH;
	if (map_get(&p->by_tid, (uint64_t)tid, &at))
		return 0;
	if (p->threads.n >= p->max || !vec_reserve(&p->threads, p->threads.n + 1))
		return -ENOSPC;
	r = begin(&one, tid, p->hz, p->page);
	if (r < 0) {
		int means = meaning(r);

		if (means == -EPERM || means == -EACCES)
			p->refused = means == -EACCES ? PERF_OTHER_USER : r;
		return means;
	}
	if (!map_put(&p->by_tid, (uint64_t)tid, (uint32_t)p->threads.n)) {
		end(&one, p->page);
		return -ENOSPC;
	}
	slot = vec_push(&p->threads);
	*slot = one;
	p->refused = 0;
	return 0;
}

void native_perf_forget(struct native_perf *p, pid_t tid)
{
	uint32_t at;

	if (!map_get(&p->by_tid, (uint64_t)tid, &at))
		return;
	end(&p->threads.v[at], p->page);
	map_del(&p->by_tid, (uint64_t)tid);
	p->threads.n--;
	if (at == p->threads.n)
		return;
	p->threads.v[at] = p->threads.v[p->threads.n];
	(void)map_put(&p->by_tid, (uint64_t)p->threads.v[at].tid, at); /* is in it: cannot fail */
}

/* Bytes of the ring, which ends and goes on at its beginning. */
static void take(const uint8_t *data, uint64_t size, uint64_t at, void *to, size_t n)
{
	size_t first = (size_t)(size - at % size);

	first = first < n ? first : n;
	memcpy(to, data + at % size, first);
	memcpy((uint8_t *)to + first, data, n - first);
}

struct record {
	struct perf_event_header head;
	uint64_t ip;
	uint32_t pid, tid;
	uint64_t time, n;
	uint64_t chain[CHAIN_MAX + 8];
};

/* The newest sample: false, none. The kernel may be writing at this moment: what was copied holds
 * only if the head has not come round to it since. A record in the making is not counted in the head
 * yet, so room for one is left. */
static bool newest(const struct watched *w, long page, struct record *ret)
{
	struct perf_event_mmap_page *control = (void *)w->ring;
	const uint8_t *data = w->ring + page;
	uint64_t size = (uint64_t)page, head, now, at;

	head = __atomic_load_n(&control->data_head, __ATOMIC_ACQUIRE);
	at = head;
	for (unsigned i = 0; head && i < RECORDS && at - head < size - RECORD_MAX * 2; i++) {
		if (at == 0) /* the first ever: it began at the end of the number range */
			return false;
		take(data, size, at, &ret->head, sizeof(ret->head));
		if (ret->head.size < sizeof(ret->head) || ret->head.size > sizeof(*ret))
			return false;
		take(data, size, at, ret, ret->head.size);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		now = __atomic_load_n(&control->data_head, __ATOMIC_RELAXED);
		if (at + ret->head.size - now > size - RECORD_MAX)
			return false;
		if (ret->head.type == PERF_RECORD_SAMPLE)
			return ret->head.size >= offsetof(struct record, chain) &&
			       ret->n <= (ret->head.size - offsetof(struct record, chain)) / 8;
		at += ret->head.size;
	}
	return false;
}

static void switch_event(const struct native_perf *p, pid_t tid, unsigned long how)
{
	uint32_t at;

	/* Fails for a thread that has ended, which does not matter. */
	if (map_get(&p->by_tid, (uint64_t)tid, &at))
		(void)ioctl(p->threads.v[at].fd, how, 0);
}

void native_perf_arm(struct native_perf *p, pid_t tid)
{
	switch_event(p, tid, PERF_EVENT_IOC_ENABLE);
}

void native_perf_disarm(struct native_perf *p, pid_t tid)
{
	switch_event(p, tid, PERF_EVENT_IOC_DISABLE);
}

size_t native_perf_newest(struct native_perf *p, pid_t tid, uint64_t *addresses, size_t max,
			  int64_t *ret_ns)
{
	struct watched *w;
	struct record record;
	uint32_t at;
	size_t n = 0;

	if (!max || !map_get(&p->by_tid, (uint64_t)tid, &at))
		return 0;
	w = &p->threads.v[at];
	if (!newest(w, p->page, &record) || (int64_t)record.time <= w->last_ns)
		return 0;
	w->last_ns = (int64_t)record.time;
	*ret_ns = w->last_ns;
	addresses[n++] = record.ip;
	for (uint64_t i = 0; i < record.n && n < max; i++) {
		uint64_t ip = record.chain[i];

		/* Marks are the largest numbers there are; the chain begins with the pointer itself. */
		if (ip >= (uint64_t)PERF_CONTEXT_MAX || ip == 0 || (n == 1 && ip == record.ip))
			continue;
		addresses[n++] = ip;
	}
	return n;
}

bool native_perf_refused(const struct native_perf *p, struct err *e)
{
	if (!p->refused)
		return false;
	perf_refusal(p->refused, e);
	return true;
}

int native_perf_try(struct err *e)
{
	struct watched one;
	long page = sysconf(_SC_PAGESIZE);
	int r = begin(&one, 0, 49, page);

	if (r == 0)
		end(&one, page);
	else
		perf_refusal(r, e);
	return r;
}

bool perf_permitted(void)
{
	int fd = open_event(0, 49);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}
