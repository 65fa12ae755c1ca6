/* SPDX-License-Identifier: MIT
 *
 * What the descriptors of the target are. Only links in /proc are read and no file is touched: a file
 * on a server that does not answer would hold us up as it holds up the target.
 */
#include "base/auto.h"
#include "base/io.h"
#include "base/text.h"
#include "stack/wait/calls.h"
#include "stack/wait/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#define SET_MAX       16   /* descriptors of one poll() looked at */
#define POLL_READ_MAX 64   /* entries of its array read */
#define BITMAP_MAX    128  /* bytes of each bitmap of select(): FD_SETSIZE */
#define FDINFO_SIZE   4096 /* of an epoll: about 50 descriptors */

/* sockfs answers the name of the protocol without a look at the peer: "TCP", "UNIX-STREAM", "UDPv6".
 * Linux 2.6.39. */
static void ask_protocol(const char *path, struct wait_fd *f)
{
	ssize_t n = getxattr(path, "system.sockprotoname", f->protocol, sizeof(f->protocol) - 1);

	f->protocol[n > 0 ? n : 0] = 0;
}

static void learn(const char *path, struct wait_fd *f, const char *link, size_t n)
{
	struct stat st;

	memcpy(f->link, link, n + 1);
	f->kind = wait_link_kind(link, n, &f->inode);
	f->protocol[0] = 0;
	f->reads = f->writes = true;
	if (lstat(path, &st) == 0) {
		f->reads = st.st_mode & S_IRUSR;
		f->writes = st.st_mode & S_IWUSR;
	}
	if (f->kind == WAIT_SOCKET)
		ask_protocol(path, f);
}

const struct wait_fd *wait_fd_get(struct wait_process *p, int64_t fd, int64_t now_ns,
				  int64_t max_age)
{
	struct wait_fd *f = &p->fds[fd & (WAIT_FDS - 1)];
	char path[64], link[WAIT_WHAT_SIZE];
	bool same;
	ssize_t n;

	if (fd < 0 || fd > INT32_MAX)
		return NULL;
	same = f->used && f->fd == fd;
	/* Numbers of files are used again at once, by the next file. */
	if (same && f->kind != WAIT_FILE && now_ns - f->checked_ns < max_age)
		return f;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)p->pid, (int)fd);
	n = io_readlink(AT_FDCWD, path, link, sizeof(link));
	if (n <= 0) {
		f->used = f->used && !same;
		return NULL;
	}
	if (!same || strcmp(link, f->link) != 0)
		learn(path, f, link, (size_t)n);
	f->fd = (int32_t)fd;
	f->used = true;
	f->checked_ns = now_ns;
	return f;
}

static void tell_pipe(struct wait_process *p, const struct wait_fd *f, int64_t now_ns,
		      struct wait_state *ret)
{
	const char *way = f->reads && f->writes ? "with" : f->reads ? "from" : "to";

	ret->peers = wait_job_peers(p->job, f, p->pid, now_ns, &ret->peer);
	if (ret->peer)
		snprintf(ret->what, sizeof(ret->what), "pipe %s pid %d", way, (int)ret->peer);
	else if (ret->peers)
		snprintf(ret->what, sizeof(ret->what), "pipe %s %u processes", way, ret->peers);
	else
		text_copy(ret->what, sizeof(ret->what), "pipe");
}

void wait_fd_tell(struct wait_process *p, const struct wait_fd *f, int64_t now_ns,
		  struct wait_state *ret)
{
	ret->kind = f->kind;
	if (f->kind == WAIT_PIPE && f->inode)
		tell_pipe(p, f, now_ns, ret);
	else if (f->kind == WAIT_SOCKET)
		snprintf(ret->what, sizeof(ret->what), "%s%ssocket", f->protocol,
			 f->protocol[0] ? " " : "");
	else
		text_safe_copy(ret->what, sizeof(ret->what), f->link);
}

/* The descriptors of one wait; n counts those behind the first SET_MAX as well. */
struct fd_list {
	int32_t fd[SET_MAX];
	size_t n;
	bool cut; /* there may be more */
};

static void poll_list(struct wait_process *p, const struct wait_call *c, struct fd_list *ret)
{
	uint8_t array[POLL_READ_MAX * sizeof(struct pollfd)];
	uint64_t n = c->arg[1] < POLL_READ_MAX ? c->arg[1] : POLL_READ_MAX;

	ret->cut = n < c->arg[1];
	if (n && mem_read(&p->mem, c->arg[0], array, n * sizeof(struct pollfd)) == 0)
		ret->n = wait_pollfds(array, n * sizeof(struct pollfd), ret->fd, SET_MAX);
}

/* The kernel writes the answer over the bitmaps on return only: while it waits they are the question. */
static void select_list(struct wait_process *p, const struct wait_call *c, struct fd_list *ret)
{
	uint8_t bits[BITMAP_MAX];
	uint64_t bytes = c->arg[0] / 8 + 1;

	ret->cut = bytes > BITMAP_MAX;
	/* The kernel reads whole words. */
	bytes = bytes < BITMAP_MAX ? (bytes + 7) & ~7ull : BITMAP_MAX;
	for (int i = 1; i <= 3; i++)
		if (c->arg[i] && mem_read(&p->mem, c->arg[i], bits, bytes) == 0)
			ret->n = wait_bitmap(bits, bytes, c->arg[0], ret->fd, ret->n, SET_MAX);
}

static void epoll_list(struct wait_process *p, const struct wait_call *c, struct fd_list *ret)
{
	char path[64], text[FDINFO_SIZE];
	ssize_t n;

	if (c->arg[0] > INT32_MAX)
		return;
	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", (int)p->pid, (int)c->arg[0]);
	n = io_read(AT_FDCWD, path, text, sizeof(text));
	if (n <= 0)
		return;
	/* A read gives whole lines: it may stop short of the end of the buffer. */
	ret->cut = (size_t)n > sizeof(text) - 128;
	ret->n = wait_parse_epoll(text, (size_t)n, ret->fd, SET_MAX);
}

static void tell_one_of(const struct fd_list *list, struct wait_state *ret)
{
	size_t at = strnlen(ret->what, sizeof(ret->what));

	snprintf(ret->what + at, sizeof(ret->what) - at, "%s%s%zu descriptors",
		 at ? ", one of " : "", list->cut ? "at least " : "", list->n);
}

/* What they have in common; the first tells its name and peer. An eventfd wakes whoever polls it for
 * an errand, and nearly every event loop has one: it does not make a set mixed. */
static void tell_list(struct wait_process *p, const struct fd_list *list, int64_t now_ns,
		      int64_t max_age, struct wait_state *ret)
{
	size_t known = 0;

	for (size_t i = 0; i < list->n && i < SET_MAX; i++) {
		const struct wait_fd *f = wait_fd_get(p, list->fd[i], now_ns, max_age);
		struct wait_state one = { 0 };

		if (!f || (list->n > 1 && strcmp(f->link, "anon_inode:[eventfd]") == 0))
			continue;
		wait_fd_tell(p, f, now_ns, &one);
		if (known++ == 0) {
			ret->on = one.kind;
			ret->fd = list->fd[i];
			ret->peer = one.peer;
			ret->peers = one.peers;
			memcpy(ret->what, one.what, sizeof(ret->what));
			continue;
		}
		if (one.kind != ret->on)
			ret->on = WAIT_OTHER;
		if (one.peer != ret->peer || one.peers != ret->peers)
			ret->peer = 0, ret->peers = 0;
	}
	if (list->n > 1 || list->cut)
		tell_one_of(list, ret);
}

void wait_poll_tell(struct wait_process *p, const struct wait_call *c, int shape, int64_t now_ns,
		    int64_t max_age, struct wait_state *ret)
{
	struct fd_list list = { 0 };

	if ((shape == CALL_POLL && c->arg[1] == 0) || (shape == CALL_SELECT && c->arg[0] == 0)) {
		ret->kind = WAIT_SLEEP;
		return;
	}
	ret->kind = WAIT_POLL;
	if (shape == CALL_POLL)
		poll_list(p, c, &list);
	else if (shape == CALL_SELECT)
		select_list(p, c, &list);
	else
		epoll_list(p, c, &list);
	tell_list(p, &list, now_ns, max_age, ret);
}
