/* SPDX-License-Identifier: MIT */
#include "launch/channel.h"

#include "base/auto.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

struct head {
	uint32_t kind;
	int32_t value;
};

int channel_open(int ret_ends[2])
{
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ret_ends) < 0 ? -errno : 0;
}

static int send_parts(int end, struct iovec *parts, size_t n_parts, int fd)
{
	union {
		struct cmsghdr head; /* for its alignment */
		char room[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct msghdr m = { .msg_iov = parts, .msg_iovlen = n_parts };
	ssize_t sent;

	if (fd >= 0) {
		struct cmsghdr *c = &control.head;

		m.msg_control = &control;
		m.msg_controllen = sizeof(control);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	}
	do
		sent = sendmsg(end, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : 0;
}

int channel_send(int end, enum channel_kind kind, int value, int fd)
{
	struct head head = { .kind = kind, .value = value };
	struct iovec part = { .iov_base = &head, .iov_len = sizeof(head) };

	return send_parts(end, &part, 1, fd);
}

int channel_send_words(int end, const char *text, size_t n)
{
	struct head head = { .kind = CHANNEL_WORDS };
	struct iovec parts[] = {
		{ .iov_base = &head, .iov_len = sizeof(head) },
		{ .iov_base = (void *)(uintptr_t)text, .iov_len = n },
	};

	if (n > CHANNEL_TEXT_MAX)
		return -EMSGSIZE;
	return send_parts(end, parts, 2, -1);
}

/* The descriptor that came along, if any. There is room for one: the kernel drops the rest. */
static int take_fd(struct msghdr *m)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(m);
	int fd = -1;

	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
	    c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

int channel_recv(int end, struct channel_msg *ret)
{
	struct head head = { 0 };
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec parts[] = {
		{ .iov_base = &head, .iov_len = sizeof(head) },
		{ .iov_base = ret->text, .iov_len = sizeof(ret->text) },
	};
	struct msghdr m = { .msg_iov = parts,
			    .msg_iovlen = 2,
			    .msg_control = &control,
			    .msg_controllen = sizeof(control) };
	ssize_t got;

	/* The other side went away with mail of ours unread: said once (ECONNRESET), and before what
	 * it had sent. That is still there. */
	do
		got = recvmsg(end, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	while (got < 0 && (errno == EINTR || errno == ECONNRESET));
	if (got < 0)
		return -errno;
	if (got == 0)
		return 0;
	ret->fd = take_fd(&m);
	if ((size_t)got < sizeof(head)) {
		auto_close int unwanted = ret->fd;

		(void)unwanted;
		ret->fd = -1;
		return -EBADMSG;
	}
	ret->kind = (enum channel_kind)head.kind;
	ret->value = head.value;
	ret->n = (size_t)got - sizeof(head);
	return 1;
}
