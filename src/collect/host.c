/* SPDX-License-Identifier: MIT */
#include "collect/host.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/scan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int open_dir(int at, const char *path)
{
	int fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int open_state(const struct host *h, unsigned state)
{
	char name[16];

	snprintf(name, sizeof(name), "t%u", state);
	return open_dir(h->base, name);
}

int host_open(struct host *h, const char *dir, struct err *e)
{
	char why[80];

	*h = (struct host){ .base = -1, .live = !dir };
	h->page_bytes = sysconf(_SC_PAGESIZE);
	h->ticks_per_s = sysconf(_SC_CLK_TCK);
	if (!dir) {
		h->self = getpid();
		h->root = open_dir(AT_FDCWD, "/");
		return h->root < 0 ? err_set(e, h->root, "cannot open '/'") : 0;
	}
	h->base = open_dir(AT_FDCWD, dir);
	if (h->base < 0)
		return err_set(e, h->base, "cannot open root '%s': %s", dir,
			       err_name(h->base, why, sizeof(why)));
	h->page_bytes = 4096;
	h->ticks_per_s = 100;
	h->root = open_state(h, 0);
	if (h->root < 0)
		h->root = dup(h->base);
	return h->root < 0 ? err_set(e, -errno, "cannot open root '%s'", dir) : 0;
}

void host_close(struct host *h)
{
	if (h->root >= 0)
		close(h->root);
	if (h->base >= 0)
		close(h->base);
	h->root = h->base = -1;
}

bool host_advance(struct host *h)
{
	int next;

	if (h->live)
		return true;
	next = open_state(h, h->state + 1);
	if (next < 0)
		return false;
	close(h->root);
	h->root = next;
	h->state++;
	return true;
}

void host_clock(const struct host *h, int64_t *ret_mono_ns, int64_t *ret_wall_ns,
		int64_t *ret_boot_ns)
{
	char text[128];
	ssize_t n;
	struct scan s;

	if (h->live) {
		*ret_mono_ns = clock_mono_ns();
		*ret_wall_ns = clock_wall_ns();
		*ret_boot_ns = clock_boot_ns();
		return;
	}
	*ret_mono_ns = *ret_boot_ns = (1000 + (int64_t)h->state) * NS_PER_S;
	*ret_wall_ns = (1700000000ll + h->state) * NS_PER_S;
	n = io_read(h->root, "clock", text, sizeof(text));
	s = scan_of(text, n > 0 ? (size_t)n : 0);
	if (scan_i64(&s, ret_mono_ns) && scan_i64(&s, ret_wall_ns))
		(void)scan_i64(&s, ret_boot_ns);
}

ssize_t host_read(const struct host *h, struct host_file *f, const char *path, char *buf,
		  size_t size)
{
	ssize_t n;

	if (!h->live)
		return io_read(h->root, path, buf, size);
	if (f->fd < 0) {
		f->fd = io_open(h->root, path);
		if (f->fd < 0) {
			int r = f->fd;

			f->fd = -1;
			return r;
		}
	}
	n = io_pread(f->fd, buf, size);
	if (n < 0)
		host_file_close(f);
	return n;
}

void host_file_close(struct host_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
}
