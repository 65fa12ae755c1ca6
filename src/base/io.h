/* SPDX-License-Identifier: MIT
 *
 * Reading small files under a root descriptor. The root is "/" in production and a fixture tree in
 * tests (--root DIR): all paths are relative ("proc/stat"), so the tested binary is the shipped one.
 */
#ifndef SPOTTER_BASE_IO_H
#define SPOTTER_BASE_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* openat(root, path) for reading, never waiting, whatever stands there: descriptor or -errno. */
int io_open(int root, const char *path);
/* What a name in `folder` leads to, without opening it (O_PATH): it may be a FIFO whose writer would be
 * let go, or a device that does something. in_root: the folder is taken for "/", links lead nowhere
 * outside of it. Descriptor or -errno; Linux 5.6, before that -ENOSYS. */
int io_find(const char *folder, const char *path, bool in_root);
/* The whole file from offset 0, at most size-1 bytes, NUL-terminated: length, or -errno.
 * A longer file is cut: a table of unbounded length must be read with io_slurp(). So must one whose
 * lines may be longer than a kilobyte (mountinfo): an answer below 1024 bytes is taken as all of it,
 * which saves a call a file and tick. */
ssize_t io_pread(int fd, char *buf, size_t size);
ssize_t io_read(int root, const char *path, char *buf, size_t size);
/* The whole file whatever its length up to max: heap memory to free, or NULL with *ret_err set
 * (-EFBIG: longer than max). */
char *io_slurp(int root, const char *path, size_t max, size_t *ret_n, int *ret_err);
/* One number from a one-line file. "max" (cgroup v2) is -ERANGE. */
int io_read_u64(int root, const char *path, uint64_t *ret);
/* Link target, NUL-terminated: length or -errno. */
ssize_t io_readlink(int root, const char *path, char *buf, size_t size);

/* Lists entries of a directory with getdents64 into a stack buffer: no allocation. */
struct io_dir {
	int fd;
	long n, at;
	int64_t next; /* position of the entry behind the one given last, for io_dir_begin_at() */
	char raw[8192] __attribute__((aligned(8)));
};
int io_dir_open(struct io_dir *d, int root, const char *path);
/* Starts again from the first entry on a kept descriptor. */
void io_dir_begin(struct io_dir *d, int fd);
/* The same from a position that the kernel gave out before. */
void io_dir_begin_at(struct io_dir *d, int fd, int64_t position);
/* Next name, NULL at the end ("." and ".." left out). */
const char *io_dir_next(struct io_dir *d);
void io_dir_close(struct io_dir *d);
/* Next entry whose name is a plain positive number (pids, tids): that number, or 0 at the end. */
int64_t io_dir_next_number(struct io_dir *d);

/* Writes all of it, through EINTR and short writes: 0 or -errno. */
int io_write_all(int fd, const void *p, size_t n);

#endif
