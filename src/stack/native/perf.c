/* SPDX-License-Identifier: MIT
 *
 * Sampled instruction pointers: per thread an event on the CPU clock and a small ring that the kernel
 * writes backwards and over (perf_event_attr.write_backward, Linux 4.7): what data_head points to is
 * the newest record, and nobody is woken, by no signal and no poll. We look when it suits us.
 *
 * A record of ours (PERF_RECORD_SAMPLE): header, u64 ip, u32 pid, u32 tid, u64 time, u64 n, u64 ips[n];
 * among ips are marks (PERF_CONTEXT_USER) that are no addresses. Of a thread whose callers are asked for
 * there are registers and a copy of the stack instead of ips: see sample.c.
 */
#include "base/err.h"
#include "base/map.h"
#include "base/vec.h"
#include "stack/native/native.h"
#include "stack/native/perf_refusal.h"
#include "stack/native/sample.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CHAIN_MAX  NATIVE_FRAMES_MAX
#define RECORD_MAX (48 + 8 * (CHAIN_MAX + 8)) /* a few marks besides */
#define RECORDS    16                         /* looked at for a sample; throttling makes others */

/* Of threads whose callers are asked for. 516 KB for each CPU are what a user may lock for all rings
 * (kernel.perf_event_mlock_kb). */
#define CALLERS_RING 32768 /* a whole record, and room for the next */
#define CALLERS_MAX  8
/* Of the thread's CPU time, from arming to the sample: nobody waits for it. */
#define CALLERS_NS 200000

struct watched {
	pid_t tid;
	int fd;
	bool callers;
	uint8_t *ring;    /* a page of control, then data */
	uint64_t data;    /* bytes of it, a power of two */
	uint64_t asked_n; /* when it was last armed: count of armings */
	int64_t last_ns;
};

struct native_perf {
	double hz;
	size_t max;
	long page;
	VEC(struct watched) threads;
	struct map by_tid;
	int refused;    /* -errno of the last one that was not permitted, 0 */
	int no_callers; /* ... of the last one whose callers were not */
	size_t callers_max;
	uint64_t asked;
	uint8_t record[NATIVE_RECORD_MAX];
};

/* The kernel's software clock can do 10 us. But in a virtual machine an interrupt takes as long: the thread
 * then never leaves the kernel while it is armed (seen: 0.3 s, on a machine so busy that we were not back to
 * disarm it), and no sample is taken there. */
#define ON_DEMAND_NS 20000

/* What callers need: the kernel takes registers and stack at the moment of the sample, in the interrupt;
 * copying 15 KB takes it about one microsecond. */
static int open_callers(pid_t tid)
{
	struct perf_event_attr a = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(a),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = CALLERS_NS,
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			       PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
		.sample_regs_user = native_sample_registers(),
		.sample_stack_user = NATIVE_COPY,
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.write_backward = 1,
		.watermark = 1,
		.wakeup_watermark = 1u << 30, /* never */
	};
	long fd;

	if (!a.sample_regs_user)
		return -EOPNOTSUPP;
	fd = syscall(SYS_perf_event_open, &a, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : (int)fd;
}

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

static int begin(struct watched *ret, pid_t tid, double hz, long page, bool callers)
{
	uint64_t data = callers && page < CALLERS_RING ? CALLERS_RING : (uint64_t)page;
	void *ring;
	int fd = callers ? open_callers(tid) : open_event(tid, hz);

	if (fd < 0)
		return fd;
	/* Readable only is what makes the kernel write over what we did not look at. */
	ring = mmap(NULL, (size_t)page + data, PROT_READ, MAP_SHARED, fd, 0);
	if (ring == MAP_FAILED) {
		int r = errno == EPERM || errno == EAGAIN || errno == ENOMEM ? -ENOSPC : -errno;

		close(fd);
		return r; /* EPERM: more than kernel.perf_event_mlock_kb and RLIMIT_MEMLOCK */
	}
	*ret = (struct watched){ .tid = tid,
				 .fd = fd,
				 .callers = callers,
				 .ring = ring,
				 .data = data,
				 .last_ns = INT64_MIN };
	return 0;
}

static void end(struct watched *w, long page)
{
	munmap(w->ring, (size_t)page + w->data);
	close(w->fd);
}

int native_perf_open(struct native_perf **ret, double hz, size_t threads)
{
	struct native_perf *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->hz = hz;
	p->max = threads;
	p->callers_max = CALLERS_MAX;
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

/* A slot for one more, and the event itself. */
static int watch(struct native_perf *p, pid_t tid, bool callers)
{
	struct watched one, *slot;
	int r;

	if (p->threads.n >= p->max || !vec_reserve(&p->threads, p->threads.n + 1))
		return -ENOSPC;
	r = begin(&one, tid, p->hz, p->page, callers);
	if (r < 0)
		return r;
	if (!map_put(&p->by_tid, (uint64_t)tid, (uint32_t)p->threads.n)) {
		end(&one, p->page);
		return -ENOSPC;
	}
	slot = vec_push(&p->threads);
	*slot = one;
	slot->asked_n = p->asked;
	p->refused = 0;
	return 0;
}

static int watch_leaf(struct native_perf *p, pid_t tid)
{
	int r = watch(p, tid, false), means = r < 0 ? meaning(r) : 0;

	if (means == -EPERM || means == -EACCES)
		p->refused = means == -EACCES ? PERF_OTHER_USER : r;
	return means;
}

int native_perf_watch(struct native_perf *p, pid_t tid)
{
	uint32_t at;

	if (tid <= 0)
		return -ESRCH;
	if (map_get(&p->by_tid, (uint64_t)tid, &at)) {
		if (!p->threads.v[at].callers)
			return 0;
		native_perf_forget(p, tid);
	}
	return watch_leaf(p, tid);
}

/* Of those with callers, when there are as many as may be: who was asked longest ago goes. */
static size_t make_room(struct native_perf *p, size_t max)
{
	const struct watched *oldest = NULL;
	size_t n = 0;

	for (size_t i = 0; i < p->threads.n; i++) {
		const struct watched *w = &p->threads.v[i];

		n += w->callers;
		if (w->callers && (!oldest || w->asked_n < oldest->asked_n))
			oldest = w;
	}
	if (oldest && (n >= max || p->threads.n >= p->max))
		native_perf_forget(p, oldest->tid);
	return n;
}

/* Where memory or descriptors end, as many as there are must do; where there is none, there are none. */
static int watch_stack(struct native_perf *p, pid_t tid)
{
	size_t n = make_room(p, p->callers_max);
	int r = watch(p, tid, true);

	if (r < 0 && meaning(r) == -ENOSPC && n) {
		p->callers_max = n;
		(void)make_room(p, 0);
		r = watch(p, tid, true);
	}
	return r;
}

int native_perf_watch_callers(struct native_perf *p, pid_t tid)
{
	uint32_t at;
	int r = 0, means;

	if (tid <= 0)
		return -ESRCH;
	if (map_get(&p->by_tid, (uint64_t)tid, &at)) {
		if (p->threads.v[at].callers || p->no_callers)
			return 0;
		native_perf_forget(p, tid);
	}
	if (!p->no_callers) {
		r = watch_stack(p, tid);
		if (r == 0 || r == -ESRCH)
			return r;
	}
	/* Nothing is permitted, or just this is not: that is told by asking for less. */
	means = watch_leaf(p, tid);
	if (means == 0 && r)
		p->no_callers = r;
	return means;
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

/* The newest sample: its length, 0: none. The kernel may be writing at this moment: what was copied holds
 * only if the head has not come round to it since. A record in the making is not counted in the head
 * yet, so room for one is left. */
static size_t newest(const struct watched *w, long page, uint8_t *to)
{
	struct perf_event_mmap_page *control = (void *)w->ring;
	struct perf_event_header record;
	const uint8_t *data = w->ring + page;
	uint64_t most = w->callers ? NATIVE_RECORD_MAX : RECORD_MAX, head, now, at;

	head = __atomic_load_n(&control->data_head, __ATOMIC_ACQUIRE);
	at = head;
	for (unsigned i = 0; head && i < RECORDS && at - head < w->data - most * 2; i++) {
		if (at == 0) /* the first ever: it began at the end of the number range */
			return 0;
		take(data, w->data, at, &record, sizeof(record));
		if (record.size < sizeof(record) || record.size > most)
			return 0;
		take(data, w->data, at, to, record.size);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		now = __atomic_load_n(&control->data_head, __ATOMIC_RELAXED);
		if (at + record.size - now > w->data - most)
			return 0;
		if (record.type == PERF_RECORD_SAMPLE)
			return record.size;
		at += record.size;
	}
	return 0;
}

void native_perf_arm(struct native_perf *p, pid_t tid)
{
	uint32_t at;
	struct watched *w;

	if (!map_get(&p->by_tid, (uint64_t)tid, &at))
		return;
	w = &p->threads.v[at];
	w->asked_n = ++p->asked;
	/* One more sample, then it disarms itself: more of them would only cost the thread time. */
	(void)ioctl(w->fd, w->callers ? PERF_EVENT_IOC_REFRESH : PERF_EVENT_IOC_ENABLE,
		    w->callers ? 1 : 0);
}

void native_perf_disarm(struct native_perf *p, pid_t tid)
{
	uint32_t at;

	/* Fails for a thread that has ended, which does not matter. */
	if (map_get(&p->by_tid, (uint64_t)tid, &at))
		(void)ioctl(p->threads.v[at].fd, PERF_EVENT_IOC_DISABLE, 0);
}

/* A new sample of a thread, in p->record: NULL, none. */
static struct watched *next_record(struct native_perf *p, pid_t tid, struct native_sample *ret)
{
	struct watched *w;
	uint32_t at;
	size_t n;

	if (!map_get(&p->by_tid, (uint64_t)tid, &at))
		return NULL;
	w = &p->threads.v[at];
	n = newest(w, p->page, p->record);
	if (!n || !native_sample_read(p->record, n, w->callers, ret) || ret->ns <= w->last_ns)
		return NULL;
	w->last_ns = ret->ns;
	return w;
}

bool native_perf_sample(struct native_perf *p, pid_t tid, struct native_sample *ret)
{
	return next_record(p, tid, ret) != NULL;
}

size_t native_perf_newest(struct native_perf *p, pid_t tid, uint64_t *addresses, size_t max,
			  int64_t *ret_ns)
{
	struct native_sample sample;
	const struct watched *w = max ? next_record(p, tid, &sample) : NULL;

	if (!w)
		return 0;
	*ret_ns = sample.ns;
	addresses[0] = sample.pc;
	return w->callers ? 1 : native_sample_chain(p->record, addresses, max);
}

bool native_perf_refused(const struct native_perf *p, struct err *e)
{
	if (!p->refused)
		return false;
	perf_refusal(p->refused, e);
	return true;
}

bool native_perf_no_callers(const struct native_perf *p, struct err *e)
{
	if (p->no_callers)
		perf_no_callers(p->no_callers, e);
	return p->no_callers != 0;
}

int native_perf_try(struct err *e)
{
	struct watched one;
	long page = sysconf(_SC_PAGESIZE);
	int r = begin(&one, 0, 49, page, false);

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
