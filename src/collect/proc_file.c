/* SPDX-License-Identifier: MIT */
#include "collect/proc_file.h"

#include "base/io.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>

enum {
	SPARE = 64, /* left to the rest of the program: record, sinks, sockets */
	LIMIT_MAX =
	    200000, /* an unlimited soft limit must not become a million pages of kernel memory */
};

int proc_files_open(struct proc_files *files, const struct host *h)
{
	struct rlimit limit;
	int fd;

	*files = (struct proc_files){ .host = h, .proc = -1 };
	fd = openat(h->root, "proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (!h->live) {
		close(fd);
		return 0;
	}
	files->proc = fd;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur > SPARE)
		files->limit =
		    limit.rlim_cur - SPARE < LIMIT_MAX ? (int)(limit.rlim_cur - SPARE) : LIMIT_MAX;
	return 0;
}

void proc_files_close(struct proc_files *files)
{
	if (files->host && files->proc >= 0)
		close(files->proc);
	files->proc = -1;
}

static int open_at(const struct proc_files *files, pid_t pid, pid_t tid, const char *name)
{
	const char *top = files->proc >= 0 ? "" : "proc/";
	int at = files->proc >= 0 ? files->proc : files->host->root;
	char path[96];

	if (tid)
		snprintf(path, sizeof(path), "%s%d/task/%d/%s", top, (int)pid, (int)tid, name);
	else
		snprintf(path, sizeof(path), "%s%d/%s", top, (int)pid, name);
	return io_open(at, path);
}

ssize_t proc_file_first(struct proc_files *files, int *fd, pid_t pid, pid_t tid, const char *name,
			char *buf, size_t size)
{
	int opened = open_at(files, pid, tid, name);
	ssize_t n;

	if (opened < 0)
		return opened;
	n = io_pread(opened, buf, size);
	if (files->proc < 0 || files->kept >= files->limit || n < 0) {
		files->refused |= files->proc >= 0 && n >= 0;
		close(opened);
		return n;
	}
	files->kept++;
	*fd = opened;
	return n;
}

void proc_file_close(struct proc_files *files, int *fd)
{
	if (*fd < 0)
		return;
	close(*fd);
	*fd = -1;
	files->kept--;
}

ssize_t proc_file_once(struct proc_files *files, pid_t pid, pid_t tid, const char *name, char *buf,
		       size_t size)
{
	int fd = open_at(files, pid, tid, name);
	ssize_t n;

	if (fd < 0)
		return fd;
	n = io_pread(fd, buf, size);
	close(fd);
	return n;
}

int proc_file_tasks(struct proc_files *files, pid_t pid)
{
	return open_at(files, pid, 0, "task");
}
