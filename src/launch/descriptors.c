/* SPDX-License-Identifier: MIT */
#include "launch/descriptors.h"

#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Without /dev (a bare chroot) a path-only descriptor does as well: nothing can be read from it or
 * written to it. */
static int open_nothing(void)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC | O_NOCTTY);

	return fd >= 0 ? fd : open("/", O_PATH | O_CLOEXEC);
}

int descriptors_plug(void)
{
	int fd;

	/* The lowest free number is given each time: the first one above 2 says that all is full. */
	do {
		fd = open_nothing();
		if (fd < 0)
			return -errno;
	} while (fd <= STDERR_FILENO);
	close(fd);
	return 0;
}

/* close_range() is Linux 5.9; before, one by one. */
static void close_from_to(unsigned from, unsigned to)
{
	struct io_dir dir;
	int64_t fd;

	if (from > to || syscall(SYS_close_range, from, to, 0) == 0)
		return;
	if (io_dir_open(&dir, AT_FDCWD, "/proc/self/fd") < 0)
		return;
	while ((fd = io_dir_next_number(&dir)) > 0)
		if (fd >= from && fd <= to && fd != dir.fd)
			close((int)fd);
	io_dir_close(&dir);
}

void descriptors_close_others(const int *keep, size_t n)
{
	unsigned from = STDERR_FILENO + 1;

	for (;;) {
		unsigned next = UINT_MAX;

		for (size_t i = 0; i < n; i++)
			if (keep[i] >= (int)from && (unsigned)keep[i] < next)
				next = (unsigned)keep[i];
		if (next == UINT_MAX)
			break;
		if (next > from)
			close_from_to(from, next - 1);
		from = next + 1;
	}
	close_from_to(from, UINT_MAX);
}

void descriptors_silence(bool keep_stderr)
{
	int fd = open_nothing();

	if (fd < 0)
		return;
	dup2(fd, STDIN_FILENO);
	dup2(fd, STDOUT_FILENO);
	if (!keep_stderr)
		dup2(fd, STDERR_FILENO);
	if (fd > STDERR_FILENO)
		close(fd);
}
