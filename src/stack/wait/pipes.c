/* SPDX-License-Identifier: MIT
 *
 * Who has which pipe open, in all processes of a job. The links of all their descriptors are read at
 * once, now and then: when a pipe is asked for that is not known, and not more often than makes 1 % of
 * a CPU (a link costs about 2 us).
 *
 *	$ ls -l /proc/4711/fd
 *	lr-x------ 1 u u 64 Nov 16 02:06 3 -> pipe:[3497034]
 *	l-wx------ 1 u u 64 Nov 16 02:06 4 -> pipe:[3497034]
 */
#include "base/clock.h"
#include "base/io.h"
#include "stack/wait/process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#define LINKS_MAX    8192
#define NS_A_LINK    (200 * 1000ll) /* of rest, for each link read */
#define LIST_REST_NS NS_PER_S
#define LIST_OLD_NS  (10 * NS_PER_S)

int wait_job_open(struct wait_job **ret, size_t descriptors)
{
	struct wait_job *j = calloc(1, sizeof(*j));
	char text[256];
	ssize_t n = io_read(AT_FDCWD, "/sys/devices/system/cpu/nohz_full", text, sizeof(text));

	if (!j)
		return -ENOMEM;
	j->descriptors = descriptors;
	/* "2-63\n"; "\n" or " (null)\n" where there are none. */
	j->lazy_ticks = n > 1 && text[0] >= '0' && text[0] <= '9';
	*ret = j;
	return 0;
}

void wait_job_close(struct wait_job *j)
{
	free(j);
}

void wait_job_set(struct wait_job *j, const pid_t *pids, size_t n)
{
	j->pids_n = n < WAIT_JOB_MAX ? n : WAIT_JOB_MAX;
	if (j->pids_n)
		memcpy(j->pids, pids, j->pids_n * sizeof(*pids));
	j->pids_new = true;
}

static void list_link(struct wait_job *j, pid_t pid, int dir, const char *name)
{
	char link[64];
	ssize_t n = io_readlink(dir, name, link, sizeof(link));
	struct stat st;
	uint64_t inode;

	if (n <= 0 || wait_link_kind(link, (size_t)n, &inode) != WAIT_PIPE || !inode)
		return;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	if (j->pipes_n == WAIT_PIPES_MAX) {
		j->cut = true;
		return;
	}
	j->pipes[j->pipes_n++] = (struct wait_pipe){
		.inode = inode,
		.pid = pid,
		.reads = st.st_mode & S_IRUSR,
		.writes = st.st_mode & S_IWUSR,
	};
}

static void list_process(struct wait_job *j, pid_t pid, size_t *links)
{
	struct io_dir d;
	char path[64];
	const char *name;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	if (io_dir_open(&d, AT_FDCWD, path) < 0)
		return;
	while (*links < LINKS_MAX && (name = io_dir_next(&d))) {
		list_link(j, pid, d.fd, name);
		++*links;
	}
	io_dir_close(&d);
}

static void list_pipes(struct wait_job *j, int64_t now_ns)
{
	size_t links = 0;

	j->pipes_n = 0;
	j->cut = false;
	for (size_t i = 0; i < j->pids_n && links < LINKS_MAX; i++)
		list_process(j, j->pids[i], &links);
	if (links == LINKS_MAX)
		j->cut = true;
	j->pids_new = false;
	j->listed_ns = now_ns;
	j->again_ns = now_ns + LIST_REST_NS + (int64_t)links * NS_A_LINK;
}

static uint32_t count_peers(const struct wait_job *j, const struct wait_fd *f, pid_t self,
			    pid_t *ret_pid)
{
	uint32_t n = 0;
	pid_t last = 0;

	/* The pipes of a process stand together. */
	for (size_t i = 0; i < j->pipes_n; i++) {
		const struct wait_pipe *pipe = &j->pipes[i];

		if (pipe->inode != f->inode || pipe->pid == self || pipe->pid == last)
			continue;
		if (!((f->reads && pipe->writes) || (f->writes && pipe->reads)))
			continue;
		last = pipe->pid;
		n++;
	}
	*ret_pid = n == 1 && !j->cut ? last : 0;
	return n;
}

uint32_t wait_job_peers(struct wait_job *j, const struct wait_fd *f, pid_t self, int64_t now_ns,
			pid_t *ret_pid)
{
	uint32_t n = count_peers(j, f, self, ret_pid);
	bool old = j->pids_new || now_ns - j->listed_ns > LIST_OLD_NS;

	if ((n && !old) || !j->pids_n || now_ns < j->again_ns)
		return n;
	list_pipes(j, now_ns);
	return count_peers(j, f, self, ret_pid);
}
