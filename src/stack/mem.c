/* SPDX-License-Identifier: MIT */
#include "stack/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/uio.h>
#include <unistd.h>

/* IOV_MAX on Linux since ever; the kernel refuses longer lists. */
#define PIECES_A_CALL 1024
/* A sample of a few threads. Lists for 1024 are 32 KB of stack: pages that are cold at every tick. */
#define PIECES_FEW 96

void mem_open(struct mem *m, pid_t pid)
{
	*m = (struct mem){ .pid = pid, .fd = -1 };
}

void mem_open_source(struct mem *m, int (*source)(void *, struct mem_piece *, size_t), void *arg)
{
	*m = (struct mem){ .fd = -1, .source = source, .arg = arg };
}

void mem_close(struct mem *m)
{
	if (m->fd >= 0)
		close(m->fd);
	m->fd = -1;
}

/* The descriptor stays bound to the memory it was opened for: behind an execve it reads nothing. */
static int open_file(struct mem *m)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)m->pid);
	m->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (m->fd < 0)
		return errno == ENOENT || errno == ESRCH ? -ESRCH : -EPERM;
	m->by_file = true;
	return 0;
}

static int read_file(struct mem *m, struct mem_piece *pieces, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct mem_piece *p = &pieces[i];
		ssize_t got;

		p->failed = true;
		if (p->at > INT64_MAX)
			continue;
		m->calls++;
		got = pread(m->fd, p->to, p->n, (off_t)p->at);
		/* EIO: not mapped. EPERM: a filter that refuses this, too. */
		if (got < 0 && (errno == EPERM || errno == EACCES || errno == ENOSYS))
			return -EPERM;
		p->failed = got != (ssize_t)p->n;
		/* 0 at a mapped address: the memory behind the descriptor is gone (exit, execve). */
		if (got == 0 && p->n)
			return -ESRCH;
	}
	return 0;
}

/* How many pieces from the front are covered by `got` bytes. */
static size_t pieces_read(const struct mem_piece *pieces, size_t n, size_t got)
{
	size_t i = 0;

	while (i < n && got >= pieces[i].n) {
		got -= pieces[i].n;
		i++;
	}
	return i;
}

/* One call for all pieces; on the first that is not mapped the kernel stops, and we go on behind it. The
 * lists have room for n. */
static int read_call(struct mem *m, struct mem_piece *pieces, size_t n, struct iovec *ours,
		     struct iovec *theirs)
{
	size_t at = 0;

	for (size_t i = 0; i < n; i++) {
		ours[i] = (struct iovec){ pieces[i].to, pieces[i].n };
		theirs[i] = (struct iovec){ (void *)(uintptr_t)pieces[i].at, pieces[i].n };
		pieces[i].failed = false;
	}
	while (at < n) {
		ssize_t got;

		m->calls++;
		got = process_vm_readv(m->pid, &ours[at], n - at, &theirs[at], n - at, 0);
		/* EINVAL: an address so absurd that the kernel did not even look it up. */
		if (got < 0 && errno != EFAULT && errno != EINVAL)
			return -errno;
		at += pieces_read(&pieces[at], n - at, got > 0 ? (size_t)got : 0);
		if (at < n)
			pieces[at++].failed = true;
	}
	return 0;
}

__attribute__((noinline)) static int read_few(struct mem *m, struct mem_piece *pieces, size_t n)
{
	struct iovec ours[PIECES_FEW], theirs[PIECES_FEW];

	return read_call(m, pieces, n, ours, theirs);
}

__attribute__((noinline)) static int read_many(struct mem *m, struct mem_piece *pieces, size_t n)
{
	struct iovec ours[PIECES_A_CALL], theirs[PIECES_A_CALL];

	return read_call(m, pieces, n, ours, theirs);
}

static int read_some(struct mem *m, struct mem_piece *pieces, size_t n)
{
	int r;

	if (m->source)
		return m->calls++, m->source(m->arg, pieces, n);
	if (m->by_file)
		return read_file(m, pieces, n);
	r = n <= PIECES_FEW ? read_few(m, pieces, n) : read_many(m, pieces, n);
	/* Docker's older profiles answer EPERM, gVisor and some sandboxes ENOSYS. */
	if (r == -EPERM || r == -ENOSYS || r == -EACCES)
		return open_file(m) == 0 ? read_file(m, pieces, n) : -EPERM;
	return r;
}

int mem_read_pieces(struct mem *m, struct mem_piece *pieces, size_t n)
{
	for (size_t i = 0; i < n; i++)
		m->bytes += pieces[i].n;
	while (n) {
		size_t part = n < PIECES_A_CALL ? n : PIECES_A_CALL;
		int r = read_some(m, pieces, part);

		if (r < 0)
			return r;
		pieces += part;
		n -= part;
	}
	return 0;
}

int mem_read(struct mem *m, uint64_t at, void *to, size_t n)
{
	struct mem_piece piece = { .at = at, .to = to, .n = (uint32_t)n };
	int r = n > UINT32_MAX ? -EFAULT : mem_read_pieces(m, &piece, 1);

	if (r < 0)
		return r;
	return piece.failed ? -EFAULT : 0;
}

int mem_read_u64(struct mem *m, uint64_t at, uint64_t *ret)
{
	uint64_t value;
	int r = mem_read(m, at, &value, sizeof(value));

	if (r == 0)
		*ret = value;
	return r;
}
