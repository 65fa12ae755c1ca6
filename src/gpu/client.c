/* SPDX-License-Identifier: MIT */
#include "gpu/client_state.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/scan.h"
#include "gpu/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PERIOD_NS   (200 * NS_PER_MS)
#define DEADLINE_NS (2 * NS_PER_S)
#define CLOSE_NS    (50 * NS_PER_MS) /* how long closing waits for helpers to be gone */

int gpu_client_open(const struct gpu_client_options *o, struct gpu_client **ret, struct err *e)
{
	struct gpu_client *c = calloc(1, sizeof(*c));
	int error = 0;

	if (!c)
		return err_set(e, -ENOMEM, "out of memory");
	c->o = *o;
	c->o.nvml = c->o.program = NULL;
	if (c->o.period_ns <= 0)
		c->o.period_ns = PERIOD_NS;
	if (c->o.deadline_ns <= 0)
		c->o.deadline_ns = DEADLINE_NS;
	c->current = -1;
	c->root = -1;
	c->thrift = 1;
	c->last = calloc(1, sizeof(*c->last));
	c->next = calloc(1, sizeof(*c->next));
	if (o->nvml && *o->nvml)
		c->nvml = strdup(o->nvml);
	if (o->program)
		c->program = strdup(o->program);
	if (o->fixture) {
		c->world = calloc(1, sizeof(*c->world));
		error = c->world ? gpu_reader_open(c->world, &c->reader) : -ENOMEM;
	}
	if (!c->last || !c->next || error < 0 || (o->nvml && *o->nvml && !c->nvml) ||
	    (o->program && !c->program)) {
		gpu_client_close(c);
		return err_set(e, -ENOMEM, "out of memory");
	}
	*ret = c;
	return 0;
}

static const struct gpu_snapshot *give(struct gpu_client *c, struct gpu_helper *h)
{
	struct gpu_snapshot *given = c->next;

	gpu_keep_known(c);
	if (h)
		gpu_tell_notes(c, h, given);
	given->number = ++c->given;
	c->next = c->last;
	c->last = given;
	return given;
}

static const struct gpu_snapshot *poll_fixture(struct gpu_client *c, int root, int64_t now_ns)
{
	if (root < 0 && root != AT_FDCWD)
		return NULL;
	c->root = c->world->root = root;
	gpu_snapshot_copy(c->next, gpu_reader_read(c->reader, c->o.depth, now_ns));
	return give(c, &c->helper[0]);
}

const struct gpu_snapshot *gpu_client_poll(struct gpu_client *c, int root, int64_t now_ns)
{
	struct gpu_helper *h;
	uint64_t asked;

	if (c->reader)
		return poll_fixture(c, root, now_ns);
	gpu_watch(c, now_ns);
	if (c->current < 0)
		return NULL;
	h = &c->helper[c->current];
	if (!gpu_take(h->shared, &h->seen, c->next, &asked))
		return NULL;
	c->start_failures = 0;
	if (!c->next->whole) {
		gpu_take_part(c);
		return NULL;
	}
	c->answered = asked;
	return give(c, h);
}

const struct gpu_snapshot *gpu_client_last(const struct gpu_client *c)
{
	return c->given ? c->last : NULL;
}

bool gpu_client_stale(const struct gpu_client *c, int64_t now_ns)
{
	int64_t period = c->o.period_ns * c->thrift, reading;

	if (!c->given)
		return true;
	/* What the reading itself took is no sign of trouble, but a wrong clock is. */
	reading = c->last->ended_ns - c->last->taken_ns;
	if (reading < 0 || reading > c->o.deadline_ns)
		reading = 0;
	return now_ns - c->last->taken_ns > 2 * period + reading ||
	       c->last->taken_ns > now_ns + NS_PER_S;
}

int gpu_client_wait(struct gpu_client *c, int64_t timeout_ns)
{
	int64_t until = clock_mono_ns() + timeout_ns;
	const struct timespec pause = { 0, 2 * NS_PER_MS };

	if (c->reader)
		return gpu_client_poll(c, c->root, clock_mono_ns()) ? 0 : -ENOENT;
	c->ask++;
	if (c->current >= 0) {
		atomic_store(&c->helper[c->current].shared->ask, c->ask);
		gpu_wake_helper(&c->helper[c->current]);
	}
	for (;;) {
		int64_t now = clock_mono_ns();

		if (gpu_client_poll(c, -1, now) && c->answered == c->ask && c->last->whole)
			return 0;
		if (now >= until || c->gave_up || c->start_failures >= GPU_START_TRIES)
			return -ETIMEDOUT;
		(void)nanosleep(&pause, NULL);
	}
}

void gpu_client_set_thrift(struct gpu_client *c, unsigned thrift)
{
	c->thrift = thrift < 1 ? 1 : thrift > 64 ? 64 : thrift;
	if (c->current >= 0)
		atomic_store(&c->helper[c->current].shared->thrift, c->thrift);
}

/* As its keeper wrote it down; anything may stand there, so it is good for looking only. */
static pid_t helper_pid(const struct gpu_helper *h)
{
	int32_t pid = h->role == GPU_ROLE_NONE ? 0 : atomic_load(&h->shared->pid);

	return pid > 1 ? pid : 0;
}

int64_t gpu_client_cpu_ns(const struct gpu_client *c)
{
	int64_t sum = c->dead_cpu_ns;

	if (!c->n_started)
		return -1;
	for (int i = 0; i < GPU_HELPERS; i++) {
		pid_t pid = helper_pid(&c->helper[i]);
		int64_t ns = pid ? clock_pid_cpu_ns(pid) : 0;

		if (ns > 0)
			sum += ns;
	}
	return sum;
}

/* "/proc/PID/statm": "5231 1204 ..." pages: all, resident, ... */
static int64_t rss_bytes(pid_t pid)
{
	char path[32], text[128];
	uint64_t all, resident;
	struct scan s;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
	n = io_read(AT_FDCWD, path, text, sizeof(text));
	if (n < 0)
		return 0;
	s = scan_of(text, (size_t)n);
	if (!scan_u64(&s, &all) || !scan_u64(&s, &resident) || resident > UINT32_MAX)
		return 0;
	return (int64_t)resident * sysconf(_SC_PAGESIZE);
}

int64_t gpu_client_rss_bytes(const struct gpu_client *c)
{
	int64_t sum = 0;

	if (!c->n_started)
		return -1;
	for (int i = 0; i < GPU_HELPERS; i++) {
		pid_t pid = helper_pid(&c->helper[i]);

		if (pid)
			sum += rss_bytes(pid);
	}
	return sum;
}

static void end_helpers(struct gpu_client *c)
{
	int64_t until = clock_mono_ns() + CLOSE_NS;
	const struct timespec pause = { 0, NS_PER_MS };
	bool left;
	int status;

	for (int i = 0; i < GPU_HELPERS; i++)
		gpu_kill_helper(&c->helper[i]);
	for (;;) {
		left = false;
		for (int i = 0; i < GPU_HELPERS; i++)
			if (c->helper[i].role != GPU_ROLE_NONE)
				left |= !gpu_bury_helper(c, &c->helper[i], &status);
		if (!left || clock_mono_ns() >= until)
			break;
		(void)nanosleep(&pause, NULL);
	}
	gpu_reap_helpers(c);
	for (int i = 0; i < GPU_HELPERS; i++) {
		struct gpu_helper *h = &c->helper[i];

		if (h->role == GPU_ROLE_NONE)
			continue;
		gpu_shared_unmap(h->shared);
	}
}

void gpu_client_close(struct gpu_client *c)
{
	if (!c)
		return;
	end_helpers(c);
	gpu_reader_close(c->reader);
	free(c->world);
	free(c->last);
	free(c->next);
	free(c->nvml);
	free(c->program);
	free(c);
}
