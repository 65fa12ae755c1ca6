/* SPDX-License-Identifier: MIT */
#include "engine/mark_folder.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/scan.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

static const char memory_folder[] = "/dev/shm";
static const char prefix[] = "spotter-";

enum {
	RANDOM_LETTERS = 6,
	STALE_S = 60, /* longer than it takes from making a folder to holding it */
};

static const char *temporary_folder(void)
{
	const char *path = getenv("TMPDIR");

	return path && path[0] == '/' ? path : NULL;
}

static int make_in(const char *parent, char *path, size_t size)
{
	int n = snprintf(path, size, "%s/%sXXXXXX", parent, prefix);

	if (n < 0 || (size_t)n >= size)
		return -ENAMETOOLONG;
	if (!mkdtemp(path))
		return -errno;
	/* Whatever the umask is. */
	return chmod(path, 0700) < 0 ? -errno : 0;
}

int mark_folder_make(char *path, size_t size)
{
	const char *other = temporary_folder();
	int r = make_in(memory_folder, path, size);

	if (r < 0 && other)
		r = make_in(other, path, size);
	if (r < 0)
		path[0] = '\0';
	return r;
}

int mark_folder_hold(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	/* Where there are no locks the folder is only less safe from the sweep of another. */
	(void)flock(fd, LOCK_SH | LOCK_NB);
	return fd;
}

static bool is_number(const char **p, unsigned long long *ret)
{
	const char *from = *p;
	unsigned long long v = 0;

	for (; **p >= '0' && **p <= '9'; (*p)++)
		if (__builtin_mul_overflow(v, 10, &v) ||
		    __builtin_add_overflow(v, (unsigned)(**p - '0'), &v))
			return false;
	*ret = v;
	return *p > from;
}

bool mark_folder_parse(const char *file, long *ret_pid, unsigned long long *ret_ticks)
{
	unsigned long long pid;

	if (!is_number(&file, &pid) || !pid || pid > INT_MAX || *file++ != '-')
		return false;
	*ret_pid = (long)pid;
	return is_number(&file, ret_ticks) && strcmp(file, ".ring") == 0;
}

/* A ring, or one that was never finished: ".4242.new". */
static bool is_ours(const char *file)
{
	unsigned long long n;
	long pid;

	if (mark_folder_parse(file, &pid, &n))
		return true;
	return *file++ == '.' && is_number(&file, &n) && strcmp(file, ".new") == 0;
}

static bool only_ours(int fd)
{
	struct io_dir d;
	const char *name;

	io_dir_begin(&d, fd);
	while ((name = io_dir_next(&d)))
		if (!is_ours(name))
			return false;
	return true;
}

/* A listing from which things are removed may leave some out: until one is empty. */
static void empty(int fd)
{
	bool any = true;

	for (int i = 0; any && i < 100; i++) {
		struct io_dir d;
		const char *name;

		any = false;
		io_dir_begin(&d, fd);
		while ((name = io_dir_next(&d)))
			any |= is_ours(name) && unlinkat(fd, name, 0) == 0;
	}
}

void mark_folder_remove(const char *path)
{
	auto_close int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return;
	empty(fd);
	(void)rmdir(path);
}

/* "spotter-a1B2c3" */
static bool is_folder_name(const char *name)
{
	size_t n = sizeof(prefix) - 1;

	if (strncmp(name, prefix, n) != 0 || strlen(name) != n + RANDOM_LETTERS)
		return false;
	for (name += n; *name; name++)
		if (!isalnum((unsigned char)*name))
			return false;
	return true;
}

/* Nothing but what a recorder of this user would have left, and nobody reads it any more. */
static void sweep_one(int parent, const char *name, double age_s)
{
	auto_close int fd =
	    openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	double age;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_uid != geteuid() || (st.st_mode & 07777) != 0700)
		return;
	age = (double)clock_wall_ns() / 1e9 - (double)st.st_mtim.tv_sec -
	      (double)st.st_mtim.tv_nsec / 1e9;
	if (age < age_s || !only_ours(fd) || flock(fd, LOCK_EX | LOCK_NB) < 0)
		return;
	empty(fd);
	(void)unlinkat(parent, name, AT_REMOVEDIR);
}

void mark_folder_sweep_in(const char *parent, double age_s)
{
	struct io_dir d;
	const char *name;

	if (io_dir_open(&d, AT_FDCWD, parent) < 0)
		return;
	while ((name = io_dir_next(&d)))
		if (is_folder_name(name))
			sweep_one(d.fd, name, age_s);
	io_dir_close(&d);
}

void mark_folder_sweep(void)
{
	const char *other = temporary_folder();

	mark_folder_sweep_in(memory_folder, STALE_S);
	if (other && strcmp(other, memory_folder) != 0)
		mark_folder_sweep_in(other, STALE_S);
}
