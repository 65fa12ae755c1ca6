/* SPDX-License-Identifier: MIT */
#include "record/as_is.h"

#include "base/clock.h"
#include "record/sqlite_api.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
	SECTOR = 4096,
	ASK_STATE = 0x53504f54, /* SQLite leaves all numbers over 100 to those who make files */
	COUNTER_AT = 24,        /* in the header of an SQLite file: changes, 4 bytes */
	/* The kernel gives files the time of its last tick, 10 ms ago at most: of two writes within one tick the second
	 * cannot be told by the time. */
	FRESH_MS = 20,
};

struct stamp {
	int64_t size;
	struct timespec written; /* any number of seconds: its owner may have set it */
	uint32_t counter;
	uid_t owner;
};

struct as_is_file {
	struct sqlite3_file base; /* first: SQLite knows this part */
	int fd;
	bool fresh; /* written to so shortly before it was opened that more would not be noticed */
	struct stamp stamp;
};

/* 0 or -errno. */
static int take_stamp(int fd, struct stamp *ret)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
	*ret = (struct stamp){ .size = st.st_size, .written = st.st_mtim, .owner = st.st_uid };
	/* one that is too short for it has none */
	(void)!pread(fd, &ret->counter, sizeof(ret->counter), COUNTER_AT);
	return 0;
}

static bool is_fresh(const struct timespec *written)
{
	int64_t now = clock_wall_ns(), age;

	if (written->tv_sec > now / NS_PER_S || written->tv_sec < now / NS_PER_S - 1)
		return false;
	age = now - (written->tv_sec * NS_PER_S + written->tv_nsec);
	return age >= 0 && age < FRESH_MS * NS_PER_MS;
}

/* One name further from folder `at`, which is closed: descriptor or -errno. */
static int step(int at, const char *name, size_t n, bool last)
{
	char part[NAME_MAX + 1];
	int fd = -ENAMETOOLONG;

	if (n <= NAME_MAX) {
		snprintf(part, sizeof(part), "%.*s", (int)n, name);
		fd = openat(at, part,
			    O_CLOEXEC | O_NOFOLLOW |
				(last ? O_RDONLY | O_NONBLOCK | O_NOCTTY : O_PATH | O_DIRECTORY));
		if (fd < 0)
			fd = -errno;
	}
	close(at);
	return fd;
}

/* By name after name, as openat2() with RESOLVE_NO_SYMLINKS, which kernels before 5.6 and many containers do not have. */
static int open_without_links(const char *path)
{
	int fd = open(path[0] == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	path += strspn(path, "/");
	if (!*path) {
		close(fd);
		return -EISDIR;
	}
	while (fd >= 0 && *path) {
		size_t n = strcspn(path, "/"), more = n + strspn(path + n, "/");

		fd = step(fd, path, n, !path[more]);
		path += more;
	}
	return fd;
}

static int close_file(sqlite3_file *f)
{
	close(((struct as_is_file *)f)->fd);
	return SQLITE_OK;
}

static int read_file(sqlite3_file *f, void *to, int n, sqlite3_int64 at)
{
	int fd = ((struct as_is_file *)f)->fd, done = 0;

	while (done < n) {
		ssize_t got = pread(fd, (char *)to + done, (size_t)(n - done), at + done);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return SQLITE_IOERR_READ;
		if (got == 0)
			break;
		done += (int)got;
	}
	if (done == n)
		return SQLITE_OK;
	memset((char *)to + done, 0, (size_t)(n - done)); /* SQLite wants it so */
	return SQLITE_IOERR_SHORT_READ;
}

static int write_file(sqlite3_file *f, const void *from, int n, sqlite3_int64 at)
{
	(void)f;
	(void)from;
	(void)n;
	(void)at;
	return SQLITE_READONLY;
}

static int truncate_file(sqlite3_file *f, sqlite3_int64 size)
{
	(void)f;
	(void)size;
	return SQLITE_READONLY;
}

static int size_of_file(sqlite3_file *f, sqlite3_int64 *ret)
{
	struct stat st;

	if (fstat(((struct as_is_file *)f)->fd, &st) < 0)
		return SQLITE_IOERR_FSTAT;
	*ret = st.st_size;
	return SQLITE_OK;
}

/* Synchronising and locks: nothing is written, and nobody kept from writing. */
static int do_nothing(sqlite3_file *f, int how)
{
	(void)f;
	(void)how;
	return SQLITE_OK;
}

static int is_reserved(sqlite3_file *f, int *ret)
{
	(void)f;
	*ret = 0;
	return SQLITE_OK;
}

static int control_file(sqlite3_file *f, int what, void *arg)
{
	const struct as_is_file *x = (const struct as_is_file *)f;
	struct as_is_state *ret = arg;
	const struct stamp *was = &x->stamp;
	struct stamp now;

	if (what != ASK_STATE)
		return SQLITE_NOTFOUND;
	ret->owner = was->owner;
	ret->mixed = x->fresh || take_stamp(x->fd, &now) < 0 || now.size != was->size ||
		     now.written.tv_sec != was->written.tv_sec ||
		     now.written.tv_nsec != was->written.tv_nsec || now.counter != was->counter;
	return SQLITE_OK;
}

static int sector_size(sqlite3_file *f)
{
	(void)f;
	return SECTOR;
}

static int characteristics(sqlite3_file *f)
{
	(void)f;
	return SQLITE_IOCAP_IMMUTABLE;
}

static const sqlite3_io_methods methods = {
	.iVersion = 1,
	.xClose = close_file,
	.xRead = read_file,
	.xWrite = write_file,
	.xTruncate = truncate_file,
	.xSync = do_nothing,
	.xFileSize = size_of_file,
	.xLock = do_nothing,
	.xUnlock = do_nothing,
	.xCheckReservedLock = is_reserved,
	.xFileControl = control_file,
	.xSectorSize = sector_size,
	.xDeviceCharacteristics = characteristics,
};

/* Only the record itself: whatever SQLite puts aside for a while is its own business. */
static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags, int *ret_flags)
{
	sqlite3_vfs *usual = vfs->pAppData;
	struct as_is_file *x = (struct as_is_file *)f;
	int r;

	if (!name || !(flags & SQLITE_OPEN_MAIN_DB))
		return usual->xOpen(usual, name, f, flags, ret_flags);
	*x = (struct as_is_file){ .fd = open_without_links(name) };
	r = x->fd < 0 ? x->fd : take_stamp(x->fd, &x->stamp);
	if (r < 0) {
		if (x->fd >= 0)
			close(x->fd);
		errno = -r; /* where SQLite looks for the reason */
		return SQLITE_CANTOPEN;
	}
	x->fresh = is_fresh(&x->stamp.written);
	x->base.pMethods = &methods;
	if (ret_flags)
		*ret_flags = SQLITE_OPEN_READONLY;
	return SQLITE_OK;
}

/* As it was given: SQLite's own would follow links, one after the other and long before the file is opened. */
static int full_path(sqlite3_vfs *vfs, const char *name, int size, char *ret)
{
	(void)vfs;
	return snprintf(ret, (size_t)size, "%s", name) < size ? SQLITE_OK : SQLITE_CANTOPEN;
}

/* SQLite wants one place for the whole process, and writes to it. */
static sqlite3_vfs ours;

static void set_up(void)
{
	sqlite3_vfs *usual = sqlite3_vfs_find(NULL);

	if (!usual)
		return;
	ours = *usual;
	ours.zName = "spotter-as-is";
	ours.pNext = NULL;
	ours.pAppData = usual;
	ours.mxPathname = PATH_MAX;
	if (ours.szOsFile < (int)sizeof(struct as_is_file))
		ours.szOsFile = (int)sizeof(struct as_is_file);
	ours.xOpen = open_file;
	ours.xFullPathname = full_path;
	if (sqlite3_vfs_register(&ours, 0) != SQLITE_OK)
		ours.zName = NULL;
}

const char *as_is_vfs(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, set_up);
	return ours.zName;
}

int as_is_state(struct sqlite3 *db, struct as_is_state *ret)
{
	return sqlite3_file_control(db, "main", ASK_STATE, ret) == SQLITE_OK ? 0 : -ENOTSUP;
}
