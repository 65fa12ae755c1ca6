/* SPDX-License-Identifier: MIT */
#include "base/io.h"

#include "base/auto.h"
#include "base/scan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int io_open(int root, const char *path)
{
	/* A fixture may hold anything: without O_NONBLOCK a fifo would wait for its writer for ever. */
	int fd = openat(root, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	return fd < 0 ? -errno : fd;
}

int io_find(const char *folder, const char *path, bool in_root)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC,
				.resolve =
				    RESOLVE_NO_MAGICLINKS | (in_root ? RESOLVE_IN_ROOT : 0) };
	auto_close int dir = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	long fd = dir < 0 ? -1 : syscall(SYS_openat2, dir, path, &how, sizeof(how));

	return fd < 0 ? -errno : (int)fd;
}

ssize_t io_pread(int fd, char *buf, size_t size)
{
	size_t n = 0;

	/* /proc gives at most a page or what one record needs per call: go on until it says 0 or
	 * until a short answer shows that there is no more. */
	while (n + 1 < size) {
		ssize_t got = pread(fd, buf + n, size - 1 - n, (off_t)n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		n += (size_t)got;
		if (n < 1024)
			break;
	}
	buf[n] = '\0';
	return (ssize_t)n;
}

ssize_t io_read(int root, const char *path, char *buf, size_t size)
{
	auto_close int fd = io_open(root, path);

	return fd < 0 ? fd : io_pread(fd, buf, size);
}

char *io_slurp(int root, const char *path, size_t max, size_t *ret_n, int *ret_err)
{
	auto_close int fd = io_open(root, path);
	auto_free char *data = NULL;
	size_t n = 0, cap = 0;

	*ret_err = fd < 0 ? fd : 0;
	while (!*ret_err) {
		ssize_t got;

		if (n > max) {
			*ret_err = -EFBIG;
			break;
		}
		if (n + 1 >= cap) {
			size_t cap2 = cap ? cap * 2 : 4096;
			char *p = realloc(data, cap2);

			if (!p) {
				*ret_err = -ENOMEM;
				break;
			}
			data = p;
			cap = cap2;
		}
		got = read(fd, data + n, cap - 1 - n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			*ret_err = -errno;
		if (got <= 0)
			break;
		n += (size_t)got;
	}
	if (*ret_err)
		return NULL;
	data[n] = '\0';
	*ret_n = n;
	return steal_ptr(&data);
}

int io_read_u64(int root, const char *path, uint64_t *ret)
{
	char text[64];
	ssize_t n = io_read(root, path, text, sizeof(text));
	struct scan s;

	if (n < 0)
		return (int)n;
	s = scan_of(text, (size_t)n);
	if (scan_lit(&s, "max"))
		return -ERANGE;
	return scan_u64(&s, ret) ? 0 : -EINVAL;
}

ssize_t io_readlink(int root, const char *path, char *buf, size_t size)
{
	ssize_t n = readlinkat(root, path, buf, size - 1);

	if (n < 0)
		return -errno;
	buf[n] = '\0';
	return n;
}

struct dirent64_raw {
	uint64_t ino;
	int64_t off;
	unsigned short reclen;
	unsigned char type;
	char name[];
};

int io_dir_open(struct io_dir *d, int root, const char *path)
{
	d->n = d->at = 0;
	d->fd = openat(root, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return d->fd < 0 ? -errno : 0;
}

void io_dir_begin(struct io_dir *d, int fd)
{
	io_dir_begin_at(d, fd, 0);
}

void io_dir_begin_at(struct io_dir *d, int fd, int64_t position)
{
	d->fd = fd;
	d->n = d->at = 0;
	d->next = position;
	lseek(fd, position, SEEK_SET);
}

const char *io_dir_next(struct io_dir *d)
{
	for (;;) {
		const struct dirent64_raw *e;

		if (d->at >= d->n) {
			d->n = syscall(SYS_getdents64, d->fd, d->raw, sizeof(d->raw));
			d->at = 0;
			if (d->n <= 0)
				return NULL;
		}
		e = (const void *)(d->raw + d->at);
		d->at += e->reclen;
		d->next = e->off;
		if (strcmp(e->name, ".") != 0 && strcmp(e->name, "..") != 0)
			return e->name;
	}
}

void io_dir_close(struct io_dir *d)
{
	if (d->fd >= 0)
		close(d->fd);
	d->fd = -1;
}

int64_t io_dir_next_number(struct io_dir *d)
{
	const char *name;

	while ((name = io_dir_next(d))) {
		int64_t v = 0;
		const char *p = name;

		for (; *p >= '0' && *p <= '9' && p - name < 10; p++)
			v = v * 10 + (*p - '0');
		if (!*p && v > 0 && name[0] != '0')
			return v;
	}
	return 0;
}

int io_write_all(int fd, const void *p, size_t n)
{
	const char *q = p;

	while (n) {
		ssize_t put = write(fd, q, n);

		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0)
			return -errno;
		q += put;
		n -= (size_t)put;
	}
	return 0;
}
