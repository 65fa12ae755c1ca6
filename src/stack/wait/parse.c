/* SPDX-License-Identifier: MIT
 *
 *	$ cat /proc/4711/task/4713/syscall
 *	202 0x7f0d8aef8b30 0x189 0x0 0x0 0x0 0xffffffff 0x7f0d8ad0ba30 0x7f0d8b5162ec
 *	$ cat /proc/4711/task/4714/syscall      blocked outside a system call: stack and instruction
 *	-1 0x7f0d8ad0ba30 0x7f0d8b5162ec
 *	$ cat /proc/4711/task/4715/syscall
 *	running
 *	$ cat /proc/4711/fdinfo/5
 *	pos:	0
 *	flags:	02
 *	tfd:        4 events:       19 data:                4  pos:0 ino:3 sdev:f
 */
#include "stack/wait/parse.h"

#include "base/auto.h"
#include "base/scan.h"

#include <poll.h>
#include <string.h>

bool wait_parse_call(const char *text, size_t n, struct wait_call *ret)
{
	struct scan s = scan_of(text, n);

	*ret = (struct wait_call){ .nr = -1 };
	if (scan_lit(&s, "running")) {
		ret->running = true;
		return true;
	}
	if (!scan_i64(&s, &ret->nr) || ret->nr < -1)
		return false;
	for (int i = 0; i < 6 && ret->nr >= 0; i++)
		if (!scan_hex(&s, &ret->arg[i]))
			return false;
	return scan_hex(&s, &ret->sp) && scan_hex(&s, &ret->pc);
}

/* "46036249 98621 39" */
bool wait_parse_sched(const char *text, size_t n, struct wait_sched *ret)
{
	struct scan s = scan_of(text, n);

	*ret = (struct wait_sched){ 0 };
	if (!scan_u64(&s, &ret->run) || !scan_u64(&s, &ret->queue))
		return false;
	if (!scan_u64(&s, &ret->slices))
		ret->slices = 0;
	return true;
}

/* "...\nvoluntary_ctxt_switches:\t39\nnonvoluntary_ctxt_switches:\t3\n": the last two lines. */
bool wait_parse_switches(const char *text, size_t n, struct wait_switches *ret)
{
	static const char key[] = "voluntary_ctxt_switches:";
	const char *at = text, *end = text + n;
	uint64_t v[2];

	for (int found = 0; found < 2; found++) {
		struct scan s;

		at = memmem(at, (size_t)(end - at), key, sizeof(key) - 1);
		if (!at)
			return false;
		at += sizeof(key) - 1;
		s = scan_of(at, (size_t)(end - at));
		if (!scan_u64(&s, &v[found]))
			return false;
	}
	*ret = (struct wait_switches){ v[0], v[1] };
	return true;
}

/* The name may hold anything, brackets too: the letter is behind the last one. */
char wait_parse_letter(const char *text, size_t n)
{
	const char *close = memrchr(text, ')', n);
	size_t at;

	if (!close)
		return 0;
	at = (size_t)(close - text);
	if (n - at < 3 || text[at + 1] != ' ')
		return 0;
	return text[at + 2] >= 'A' && text[at + 2] <= 'z' ? text[at + 2] : 0;
}

struct prefix_row {
	const char *prefix;
	enum wait_kind kind;
};

/* The first that fits. */
static const struct prefix_row link_rows[] = {
	{ "pipe:[", WAIT_PIPE },
	{ "socket:[", WAIT_SOCKET },
	{ "anon_inode:[pidfd]", WAIT_CHILD },
	{ "pidfd:[", WAIT_CHILD }, /* from Linux 6.9 on pidfds have a file system of their own */
	{ "anon_inode:[timerfd]", WAIT_SLEEP },
	{ "/dev/nvidia", WAIT_GPU_DRIVER },
	{ "/dev/dri/", WAIT_GPU_DRIVER },
	{ "/dev/kfd", WAIT_GPU_DRIVER },
	{ "/dev/accel/", WAIT_GPU_DRIVER },
	{ "/dev/habanalabs", WAIT_GPU_DRIVER },
	{ "/dev/dxg", WAIT_GPU_DRIVER }, /* Windows' subsystem for Linux */
	{ "/dev/pts/", WAIT_TERMINAL },
	{ "/dev/ptmx", WAIT_TERMINAL },
	{ "/dev/tty", WAIT_TERMINAL },
	{ "/dev/console", WAIT_TERMINAL },
	{ "/dev/mqueue/", WAIT_QUEUE },
	{ "/", WAIT_FILE },
};

/* Names of kernel functions change with versions and compilers (".constprop.0"): prefixes. */
static const struct prefix_row wchan_rows[] = {
	{ "futex_", WAIT_LOCK },
	{ "do_semtimedop", WAIT_LOCK },
	{ "__do_semtimedop", WAIT_LOCK },
	{ "locks_lock_inode_wait", WAIT_LOCK },
	{ "flock_lock_inode_wait", WAIT_LOCK },
	{ "pipe_", WAIT_PIPE },
	{ "anon_pipe_", WAIT_PIPE }, /* from 6.15 on */
	{ "fifo_", WAIT_PIPE },
	{ "wait_for_partner", WAIT_PIPE },
	{ "unix_", WAIT_SOCKET },
	{ "sk_", WAIT_SOCKET },
	{ "sock_", WAIT_SOCKET },
	{ "tcp_", WAIT_SOCKET },
	{ "inet_", WAIT_SOCKET },
	{ "__skb_wait_for_more_packets", WAIT_SOCKET },
	{ "netlink_", WAIT_SOCKET },
	{ "poll_schedule_timeout", WAIT_POLL },
	{ "do_sys_poll", WAIT_POLL },
	{ "do_poll", WAIT_POLL },
	{ "do_select", WAIT_POLL },
	{ "ep_poll", WAIT_POLL },
	{ "do_epoll_wait", WAIT_POLL },
	{ "hrtimer_nanosleep", WAIT_SLEEP },
	{ "do_nanosleep", WAIT_SLEEP },
	{ "common_nsleep", WAIT_SLEEP },
	{ "do_wait", WAIT_CHILD },
	{ "kernel_wait", WAIT_CHILD },
	{ "wq_sleep", WAIT_QUEUE },
	{ "do_msgrcv", WAIT_QUEUE },
	{ "do_msgsnd", WAIT_QUEUE },
	{ "n_tty_", WAIT_TERMINAL },
	{ "tty_", WAIT_TERMINAL },
	{ "nvidia", WAIT_GPU_DRIVER },
	{ "uvm_", WAIT_GPU_DRIVER },
	{ "os_acquire", WAIT_GPU_DRIVER }, /* the same driver's locks */
	{ "amdgpu_", WAIT_GPU_DRIVER },
	{ "kfd_", WAIT_GPU_DRIVER },
	{ "dma_fence_", WAIT_GPU_DRIVER },
	{ "drm_", WAIT_GPU_DRIVER },
	{ "do_signal_stop", WAIT_STOPPED },
	{ "ptrace_stop", WAIT_STOPPED },
	{ "handle_userfault", WAIT_PAGE_FAULT },
	{ "do_swap_page", WAIT_PAGE_FAULT },
	{ "mem_cgroup_handle_over_high", WAIT_PAGE_FAULT },
	{ "throttle_direct_reclaim", WAIT_PAGE_FAULT },
	{ "shrink_", WAIT_PAGE_FAULT },
};

static enum wait_kind by_prefix(const struct prefix_row *rows, size_t rows_n, const char *text,
				size_t n, enum wait_kind otherwise)
{
	for (size_t i = 0; i < rows_n; i++) {
		size_t length = strlen(rows[i].prefix);

		if (n >= length && memcmp(text, rows[i].prefix, length) == 0)
			return rows[i].kind;
	}
	return otherwise;
}

enum wait_kind wait_link_kind(const char *link, size_t n, uint64_t *ret_inode)
{
	enum wait_kind kind = by_prefix(link_rows, ARRAY_LEN(link_rows), link, n, WAIT_OTHER);
	struct scan s = scan_of(link, n);

	*ret_inode = 0;
	if ((kind == WAIT_PIPE || kind == WAIT_SOCKET) &&
	    !(scan_after(&s, '[') && scan_u64(&s, ret_inode)))
		*ret_inode = 0;
	return kind;
}

enum wait_kind wait_wchan_kind(const char *name, size_t n)
{
	return by_prefix(wchan_rows, ARRAY_LEN(wchan_rows), name, n, WAIT_UNKNOWN);
}

size_t wait_parse_epoll(const char *text, size_t n, int32_t *fds, size_t max)
{
	struct scan s = scan_of(text, n), line;
	size_t found = 0;

	while (scan_line(&s, &line)) {
		uint64_t fd;

		if (!scan_lit(&line, "tfd:") || !scan_u64(&line, &fd) || fd > INT32_MAX)
			continue;
		if (found < max)
			fds[found] = (int32_t)fd;
		found++;
	}
	return found;
}

size_t wait_pollfds(const uint8_t *array, size_t n_bytes, int32_t *fds, size_t max)
{
	size_t found = 0;

	for (size_t at = 0; n_bytes - at >= sizeof(struct pollfd); at += sizeof(struct pollfd)) {
		struct pollfd one;

		memcpy(&one, array + at, sizeof(one));
		if (one.fd < 0)
			continue;
		if (found < max)
			fds[found] = one.fd;
		found++;
	}
	return found;
}

size_t wait_bitmap(const uint8_t *bits, size_t n_bytes, uint64_t n_bits, int32_t *fds, size_t n_fds,
		   size_t max)
{
	if (n_bits > n_bytes * 8)
		n_bits = n_bytes * 8;
	for (uint64_t i = 0; i < n_bits; i++) {
		if (!((bits[i / 8] >> (i % 8)) & 1))
			continue;
		if (n_fds < max)
			fds[n_fds] = (int32_t)i;
		n_fds++;
	}
	return n_fds;
}
