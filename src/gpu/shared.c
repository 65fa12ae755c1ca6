/* SPDX-License-Identifier: MIT */
#include "gpu/shared.h"

#include "base/auto.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Beyond the limit of file sizes (ulimit -f) the kernel kills, unless the signal is blocked: then it says
 * EFBIG. A memfd is a file to it. */
static int set_size(int fd, off_t size)
{
	const struct timespec none = { 0 };
	sigset_t limit, old, pending;
	bool was_pending;
	int error;

	sigemptyset(&limit);
	sigaddset(&limit, SIGXFSZ);
	(void)pthread_sigmask(SIG_BLOCK, &limit, &old);
	(void)sigpending(&pending);
	was_pending = sigismember(&pending, SIGXFSZ) == 1;
	error = ftruncate(fd, size) < 0 ? -errno : 0;
	if (error == -EFBIG && !was_pending)
		(void)sigtimedwait(&limit, NULL, &none);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	return error;
}

int gpu_shared_create(struct gpu_shared **ret, int *ret_fd)
{
	auto_close int fd = memfd_create("spotter-gpu", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int error;

	if (fd < 0)
		return -errno;
	error = set_size(fd, sizeof(**ret));
	if (error < 0)
		return error;
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return -errno;
	error = gpu_shared_map(fd, ret);
	if (error < 0)
		return error;
	(*ret)->magic = GPU_SHARED_MAGIC;
	(*ret)->size = sizeof(**ret);
	(*ret)->version = GPU_SHARED_VERSION;
	*ret_fd = steal_fd(&fd);
	return 0;
}

int gpu_shared_map(int fd, struct gpu_shared **ret)
{
	struct stat st;
	void *p;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size != (off_t)sizeof(**ret))
		return -EBADMSG;
	p = mmap(NULL, sizeof(**ret), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	*ret = p;
	return 0;
}

void gpu_shared_unmap(struct gpu_shared *s)
{
	if (s)
		(void)munmap(s, sizeof(*s));
}

bool gpu_shared_intact(const struct gpu_shared *s)
{
	return s->magic == GPU_SHARED_MAGIC && s->size == sizeof(*s) &&
	       s->version == GPU_SHARED_VERSION;
}

void gpu_write_skips(struct gpu_shared *s, const struct gpu_skip *skip, int n)
{
	uint64_t number = atomic_load_explicit(&s->orders_number, memory_order_relaxed) | 1;

	atomic_store_explicit(&s->orders_number, number, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	memcpy(s->orders.skip, skip, sizeof(*skip) * (size_t)n);
	s->orders.n_skips = n;
	atomic_store_explicit(&s->orders_number, number + 1, memory_order_release);
}

bool gpu_take_skips(struct gpu_shared *s, uint64_t *seen, struct gpu_orders *ret)
{
	uint64_t number = atomic_load_explicit(&s->orders_number, memory_order_acquire);
	struct gpu_skip skip[GPU_DEVICES];
	int32_t n;

	if (number == *seen || (number & 1))
		return false;
	memcpy(skip, s->orders.skip, sizeof(skip));
	n = s->orders.n_skips;
	atomic_thread_fence(memory_order_acquire);
	/* Written again meanwhile: the next look has it. */
	if (atomic_load_explicit(&s->orders_number, memory_order_relaxed) != number)
		return false;
	memcpy(ret->skip, skip, sizeof(skip));
	ret->n_skips = n;
	*seen = number;
	return true;
}

static int bounded(int32_t n, int max)
{
	return n < 0 || n > max ? 0 : n;
}

void gpu_snapshot_copy(struct gpu_snapshot *to, const struct gpu_snapshot *from)
{
	/* Read once: the other side may change them between a check and a use. */
	int devices = bounded(*(const volatile int32_t *)&from->n_devices, GPU_DEVICES);
	int processes = bounded(*(const volatile int32_t *)&from->n_processes, GPU_PROCESSES);

	memcpy(to, from, offsetof(struct gpu_snapshot, device));
	to->n_devices = devices;
	to->n_processes = processes;
	memcpy(to->device, from->device, sizeof(to->device[0]) * (size_t)devices);
	memcpy(to->process, from->process, sizeof(to->process[0]) * (size_t)processes);
	memcpy(to->note, from->note, sizeof(to->note));
	memcpy(to->problem, from->problem, sizeof(to->problem));
}

void gpu_publish(struct gpu_shared *s, const struct gpu_snapshot *from, uint64_t asked)
{
	uint64_t number = atomic_load_explicit(&s->published, memory_order_relaxed) + 1;
	struct gpu_slot *slot = &s->slot[number % 2];
	uint64_t sequence = atomic_load_explicit(&slot->sequence, memory_order_relaxed) | 1;

	atomic_store_explicit(&slot->sequence, sequence, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	gpu_snapshot_copy(&slot->snapshot, from);
	slot->asked = asked;
	atomic_store_explicit(&slot->sequence, sequence + 1, memory_order_release);
	atomic_store_explicit(&s->published, number, memory_order_release);
}

bool gpu_take(struct gpu_shared *s, uint64_t *seen, struct gpu_snapshot *ret, uint64_t *ret_asked)
{
	/* The writer needs two more readings to come back to this slot: a second try is enough. */
	for (int try = 0; try < 3; try++) {
		uint64_t number = atomic_load_explicit(&s->published, memory_order_acquire);
		struct gpu_slot *slot = &s->slot[number % 2];
		uint64_t before, asked;

		if (number == *seen)
			return false;
		before = atomic_load_explicit(&slot->sequence, memory_order_acquire);
		if (before & 1)
			continue;
		gpu_snapshot_copy(ret, &slot->snapshot);
		asked = slot->asked;
		atomic_thread_fence(memory_order_acquire);
		if (atomic_load_explicit(&slot->sequence, memory_order_relaxed) != before)
			continue;
		*seen = number;
		*ret_asked = asked;
		gpu_snapshot_check(ret);
		return true;
	}
	return false;
}
