/* SPDX-License-Identifier: MIT
 *
 * The helper's body. It lives for its parent alone: it ends when the control pipe does, and the
 * kernel kills it when the thread that started it ends (PR_SET_PDEATHSIG), even in a driver call that
 * can be interrupted. All it says goes through the shared memory.
 */
#include "gpu/client.h"

#include "base/clock.h"
#include "base/num.h"
#include "gpu/reader.h"
#include "gpu/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#define MIDDLE_NS (1 * NS_PER_S)
#define SLOW_NS   (5 * NS_PER_S)

struct helper {
	struct gpu_shared *shared;
	struct gpu_orders orders; /* a copy: the library may write over the original */
	struct gpu_world world, crawl_world;
	const char *skip[GPU_DEVICES + 1];
	struct gpu_skip_index skip_index[GPU_DEVICES];
	struct gpu_reader *reader;
	int64_t fast_due, middle_due, slow_due;
	uint64_t answered; /* value of shared->ask that was last answered */
	uint64_t orders_seen;
	bool crawling, first_done;
};

/* A signal handler has nothing but what is global. */
static struct {
	struct gpu_calls *calls;
	pthread_t crawler;
	volatile sig_atomic_t has_crawler;
} faults;

/* Which lane's call it was that crashed the library; then the fault takes its usual way. */
static void note_fault(int sig)
{
	bool crawler = faults.has_crawler && pthread_equal(pthread_self(), faults.crawler);

	(void)sig;
	atomic_store(&faults.calls->crashed, crawler ? 2u : 1u);
}

static void catch_faults(struct gpu_calls *calls)
{
	static const int signals[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT };
	struct sigaction act = { .sa_handler = note_fault, .sa_flags = (int)SA_RESETHAND };
	struct rlimit none = { 0, 0 };

	faults.calls = calls;
	(void)setrlimit(RLIMIT_CORE, &none); /* the user's folder is no place for a vendor's core */
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		(void)sigaction(signals[i], &act, NULL);
}

static uint32_t thrift(const struct helper *h)
{
	uint32_t t = atomic_load_explicit(&h->shared->thrift, memory_order_relaxed);

	return t < 1 ? 1 : t > 64 ? 64 : t;
}

static void *crawl(void *arg)
{
	struct helper *h = arg;

	/* By itself, before its first call: whoever started it may come to it only later. */
	faults.crawler = pthread_self();
	faults.has_crawler = 1;
	for (;;) {
		int64_t begun = clock_mono_ns(), rest;
		struct timespec pause;

		gpu_reader_crawl(h->reader, &h->crawl_world);
		rest = begun + NS_PER_S * thrift(h) - clock_mono_ns();
		if (rest < NS_PER_S / 10)
			rest = NS_PER_S / 10;
		pause = (struct timespec){ rest / NS_PER_S, rest % NS_PER_S };
		(void)nanosleep(&pause, NULL);
	}
	return NULL;
}

static void start_crawling(struct helper *h)
{
	pthread_t thread;

	if (h->crawling || !gpu_reader_crawls(h->reader))
		return;
	h->crawling = true;
	if (pthread_create(&thread, NULL, crawl, h) != 0)
		return;
	(void)pthread_detach(thread);
}

/* The first reading is cheap, so that there is something to show at once, unless somebody waits for
 * a deep one. */
static enum gpu_depth due(struct helper *h, int64_t now, bool asked)
{
	enum gpu_depth depth = GPU_FAST;
	int64_t t = thrift(h);

	if (asked)
		depth = (enum gpu_depth)h->orders.depth;
	else if (h->first_done && now >= h->slow_due)
		depth = h->orders.depth > GPU_SLOW ? (enum gpu_depth)h->orders.depth : GPU_SLOW;
	else if (h->first_done && now >= h->middle_due)
		depth = GPU_MIDDLE;
	if ((int)depth > h->orders.depth)
		depth = (enum gpu_depth)h->orders.depth;
	h->fast_due = h->first_done || asked ? now + h->orders.period_ns * t : now;
	if (depth >= GPU_MIDDLE)
		h->middle_due = now + MIDDLE_NS * t;
	if (depth >= GPU_SLOW)
		h->slow_due = now + SLOW_NS * t;
	h->first_done = true;
	return depth;
}

static void read_once(struct helper *h, uint64_t ask)
{
	int64_t now = clock_mono_ns();
	enum gpu_depth depth = due(h, now, ask != h->answered);

	gpu_publish(h->shared, gpu_reader_read(h->reader, depth, now), ask);
	if (h->world.progress)
		gpu_reader_tell(h->reader, NULL, NULL);
	h->answered = ask;
	atomic_fetch_add_explicit(&h->shared->heartbeat, 1, memory_order_relaxed);
	start_crawling(h);
}

/* False when the parent is gone. */
static bool rest(const struct helper *h)
{
	struct pollfd p = { .fd = GPU_HELPER_CONTROL_FD, .events = POLLIN };
	int64_t ns = h->fast_due - clock_mono_ns();
	struct timespec wait = { 0 };
	char bytes[64];
	int n;

	if (ns > 0)
		wait = (struct timespec){ ns / NS_PER_S, ns % NS_PER_S };
	n = ppoll(&p, 1, &wait, NULL);
	if (n <= 0)
		return n == 0 || errno == EINTR;
	return read(GPU_HELPER_CONTROL_FD, bytes, sizeof(bytes)) > 0;
}

static void take_skips(struct helper *h)
{
	struct gpu_orders *o = &h->orders;

	if (o->n_skips < 0 || o->n_skips > GPU_DEVICES)
		o->n_skips = 0;
	for (int i = 0; i < o->n_skips; i++) {
		struct gpu_skip *s = &o->skip[i];

		s->pci[sizeof(s->pci) - 1] = s->call[sizeof(s->call) - 1] = '\0';
		h->skip[i] = s->pci;
		h->skip_index[i] = (struct gpu_skip_index){ .vendor = (enum gpu_vendor)s->vendor,
							    .index = s->index,
							    .pci_known = s->pci[0],
							    .of = s->of };
	}
	h->skip[o->n_skips] = NULL;
	h->world.n_skip_indices = o->n_skips;
}

static void leave_alone(struct helper *h)
{
	for (int i = 0; i < h->orders.n_skips; i++) {
		const struct gpu_skip *s = &h->orders.skip[i];
		char why[160];

		if (!s->vendor_whole || (unsigned)s->vendor >= GPU_VENDORS)
			continue;
		snprintf(why, sizeof(why), "the driver did not answer: %s is blocked or crashed",
			 s->call);
		gpu_reader_leave_alone(h->reader, (enum gpu_vendor)s->vendor, why);
	}
}

/* A call that was given up has come back: its GPU is read again. */
static void take_new_skips(struct helper *h)
{
	struct gpu_skip before[GPU_DEVICES];
	int n = h->orders.n_skips;

	memcpy(before, h->orders.skip, sizeof(before));
	if (!gpu_take_skips(h->shared, &h->orders_seen, &h->orders))
		return;
	/* We are the one that has come back, and nobody else hung: what is open stays so. */
	if (h->orders.n_skips == n &&
	    memcmp(before, h->orders.skip, sizeof(before[0]) * (size_t)n) == 0)
		return;
	take_skips(h);
	gpu_reader_restart(h->reader);
	leave_alone(h);
}

/* What is known while the first reading is still being made: it may never end. */
static void publish_part(void *arg, const struct gpu_snapshot *s)
{
	struct helper *h = arg;

	gpu_publish(h->shared, s, h->answered);
}

static void take_orders(struct helper *h)
{
	struct gpu_orders *o = &h->orders;

	*o = h->shared->orders;
	o->nvml[sizeof(o->nvml) - 1] = '\0';
	h->world = (struct gpu_world){
		.root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC),
		.live = true,
		.nvml = o->nvml[0] ? o->nvml : NULL,
		.skip = h->skip,
		.skip_index = h->skip_index,
		.calls = &h->shared->calls,
	};
	take_skips(h);
	h->crawl_world = h->world;
}

static int start(struct helper *h)
{
	int error = gpu_shared_map(GPU_HELPER_MEMORY_FD, &h->shared);

	if (error < 0)
		return error;
	close(GPU_HELPER_MEMORY_FD);
	if (!gpu_shared_intact(h->shared))
		return -EBADMSG;
	(void)prctl(PR_SET_NAME, "spotter-gpu", 0, 0, 0);
	(void)fcntl(GPU_HELPER_CONTROL_FD, F_SETFD, FD_CLOEXEC);
	catch_faults(&h->shared->calls);
	take_orders(h);
	error = gpu_reader_open(&h->world, &h->reader);
	if (error < 0)
		return error;
	leave_alone(h);
	gpu_reader_tell(h->reader, publish_part, h);
	return 0;
}

int gpu_helper_main(int argc, char **argv)
{
	struct helper *h = calloc(1, sizeof(*h));

	(void)argc, (void)argv;
	if (!h || start(h) < 0)
		return GPU_HELPER_NO_START;
	do {
		/* First: an answer is never older than the orders that were given before the question. */
		uint64_t ask = atomic_load_explicit(&h->shared->ask, memory_order_acquire);

		take_new_skips(h);
		read_once(h, ask);
	} while (rest(h));
	/* Not closed: a library may block in its shutdown, and the kernel frees all of it. */
	_exit(0);
}
