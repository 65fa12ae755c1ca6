/* SPDX-License-Identifier: MIT
 *
 * The files of a process, read again and again. On a live host a descriptor is kept and re-read
 * with pread: that is half the cost of opening anew, and it is also the identity of the process,
 * since it answers -ESRCH once that process has ended, even when the pid is another's by then.
 * (A kept descriptor holds a page in the kernel for its text.) Past the limit, and in a fixture,
 * each read opens and closes.
 */
#ifndef SPOTTER_COLLECT_PROC_FILE_H
#define SPOTTER_COLLECT_PROC_FILE_H

#include "collect/host.h"

#include <errno.h>
#include <unistd.h>

struct proc_files {
	const struct host *host;
	int proc;     /* descriptor of /proc; -1 in a fixture */
	int kept;     /* descriptors kept now */
	int limit;    /* at most so many */
	bool refused; /* one was not kept for the limit since this was last cleared */
};

int proc_files_open(struct proc_files *files, const struct host *h);
void proc_files_close(struct proc_files *files);

/* Opens (and keeps, when it may: *fd is -1 otherwise), reads, closes. tid 0: of the process. */
ssize_t proc_file_first(struct proc_files *files, int *fd, pid_t pid, pid_t tid, const char *name,
			char *buf, size_t size);
void proc_file_close(struct proc_files *files, int *fd);

/* At most size-1 bytes and a NUL: length or -errno, -ESRCH when the process or thread has ended.
 * One pread takes all: the kernel makes the text of these files in one piece. */
static inline ssize_t proc_file_read(struct proc_files *files, int *fd, pid_t pid, pid_t tid,
				     const char *name, char *buf, size_t size)
{
	ssize_t n;

	if (*fd < 0)
		return proc_file_first(files, fd, pid, tid, name, buf, size);
	n = pread(*fd, buf, size - 1, 0);
	if (n < 0)
		return -errno;
	buf[n] = '\0';
	return n;
}

/* A read that keeps nothing. */
ssize_t proc_file_once(struct proc_files *files, pid_t pid, pid_t tid, const char *name, char *buf,
		       size_t size);
/* Descriptor of proc/PID/task, or -errno. */
int proc_file_tasks(struct proc_files *files, pid_t pid);

/* The process or thread is no more. A fixture has no files then, the kernel says so. */
static inline bool proc_file_gone(ssize_t r)
{
	return r == -ESRCH || r == -ENOENT;
}

#endif
