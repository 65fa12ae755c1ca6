/* SPDX-License-Identifier: MIT */
#include "agent/http.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/text.h"
#include "base/thread.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	ASK_S = 10,
	TAKE_S = 30,
	BACKLOG = 64,
	NO_ROOM_MS = 100,
	BODY_MAX = 64 << 20,
	STACK_BYTES = 1 << 20
};

/* fd -1: free. */
struct visitor {
	int fd;
	int64_t until_ns; /* then it is sent away */
	char text[HTTP_REQUEST_MAX];
	size_t n;
	bool answering;
	struct buf answer;
	size_t sent;
};

struct http {
	int fd, stop_fd;
	bool local;
	char address[80];
	http_fn fn;
	void *arg;
	pthread_t thread;
	struct visitor visitors[HTTP_CONNECTIONS];
};

static void send_away(struct visitor *v)
{
	if (v->fd >= 0)
		close(v->fd);
	v->fd = -1;
	buf_done(&v->answer);
}

static const char *reason_of(int status)
{
	switch (status) {
	case 200:
		return "OK";
	case 400:
		return "Bad Request";
	case 403:
		return "Forbidden";
	case 404:
		return "Not Found";
	case 405:
		return "Method Not Allowed";
	case 503:
		return "Service Unavailable";
	default:
		return "Internal Server Error";
	}
}

static void plain(struct http_answer *a, int status, const char *text)
{
	a->status = status;
	a->type = "text/plain; charset=utf-8";
	buf_str(&a->body, text);
}

static void answer(struct http *h, struct visitor *v, const struct http_head *q, bool bad)
{
	struct http_answer a = { .status = 404, .type = "text/plain; charset=utf-8" };

	buf_init(&a.body, BODY_MAX);
	if (bad)
		plain(&a, 400, "this is not a request\n");
	else if (q->other)
		plain(&a, 405, "GET or HEAD\n");
	else if (h->local && q->host[0] && !http_host_is_local(q->host))
		plain(&a, 403, "this is for this machine only: ask for localhost\n");
	else
		h->fn(&(struct http_request){ q->path, q->accept[0] ? q->accept : NULL }, &a,
		      h->arg);
	if (!buf_ok(&a.body)) {
		buf_done(&a.body);
		buf_init(&a.body, BODY_MAX);
		plain(&a, 500, "out of memory\n");
	}
	buf_init(&v->answer, BODY_MAX + 4096);
	buf_printf(&v->answer,
		   "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n%s"
		   "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
		   "Connection: close\r\n\r\n",
		   a.status, reason_of(a.status), a.type, a.body.len,
		   a.status == 405 ? "Allow: GET, HEAD\r\n" : "");
	if (!q->head_only)
		buf_put(&v->answer, buf_text(&a.body), a.body.len);
	buf_done(&a.body);
	v->answering = true;
	v->sent = 0;
	v->until_ns = clock_mono_ns() + TAKE_S * NS_PER_S;
	if (!buf_ok(&v->answer))
		send_away(v);
}

static void take_request(struct http *h, struct visitor *v)
{
	ssize_t n = recv(v->fd, v->text + v->n, sizeof(v->text) - v->n, MSG_DONTWAIT);
	struct http_head head;
	enum http_parsed got;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		send_away(v);
		return;
	}
	v->n += (size_t)n;
	got = http_parse(v->text, v->n, &head);
	if (got != HTTP_MORE)
		answer(h, v, &head, got == HTTP_BAD);
}

static void give_answer(struct visitor *v)
{
	ssize_t n = send(v->fd, v->answer.data + v->sent, v->answer.len - v->sent,
			 MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0)
		v->sent += (size_t)n;
	if (n >= 0 && v->sent < v->answer.len)
		return;
	/* The end of the answer is the end of the connection. What else was sent is thrown away: closed with bytes
	 * unread, the kernel would send a reset, which can overtake the answer. */
	shutdown(v->fd, SHUT_WR);
	for (int i = 0; i < 8 && recv(v->fd, v->text, sizeof(v->text), MSG_DONTWAIT) > 0; i++)
		continue;
	send_away(v);
}

static struct visitor *free_place(struct http *h)
{
	for (size_t i = 0; i < HTTP_CONNECTIONS; i++)
		if (h->visitors[i].fd < 0)
			return &h->visitors[i];
	return NULL;
}

static void welcome(struct http *h)
{
	struct visitor *v = free_place(h);
	int fd = v ? accept4(h->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK) : -1;

	/* Without descriptors the visitor stays at the door, and poll() would say so again at once. */
	if (v && fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS))
		(void)poll(NULL, 0, NO_ROOM_MS);
	if (fd < 0)
		return;
	v->fd = fd;
	v->n = v->sent = 0;
	v->answering = false;
	v->answer = (struct buf){ 0 };
	v->until_ns = clock_mono_ns() + ASK_S * NS_PER_S;
}

/* With all places taken nobody is let in: they wait in the kernel's queue until a deadline has passed. */
static int fill(struct http *h, struct pollfd *fds, size_t *which)
{
	int n = 0;

	fds[n++] = (struct pollfd){ .fd = h->stop_fd, .events = POLLIN };
	fds[n++] = (struct pollfd){ .fd = free_place(h) ? h->fd : -1, .events = POLLIN };
	for (size_t i = 0; i < HTTP_CONNECTIONS; i++) {
		const struct visitor *v = &h->visitors[i];

		if (v->fd < 0)
			continue;
		which[n] = i;
		fds[n++] =
		    (struct pollfd){ .fd = v->fd, .events = v->answering ? POLLOUT : POLLIN };
	}
	return n;
}

static void *serve(void *arg)
{
	struct http *h = arg;
	struct pollfd fds[HTTP_CONNECTIONS + 2];
	size_t which[HTTP_CONNECTIONS + 2];

	for (;;) {
		int n = fill(h, fds, which);
		int64_t now;

		if (poll(fds, (nfds_t)n, n > 2 ? 1000 : -1) < 0 && errno != EINTR)
			return NULL;
		if (fds[0].revents)
			return NULL;
		now = clock_mono_ns();
		for (int i = 2; i < n; i++) {
			struct visitor *v = &h->visitors[which[i]];

			if (now >= v->until_ns)
				send_away(v);
			else if (fds[i].revents && v->answering)
				give_answer(v);
			else if (fds[i].revents)
				take_request(h, v);
		}
		if (fds[1].revents)
			welcome(h);
	}
}

static bool is_loopback(const struct sockaddr_storage *a)
{
	const struct sockaddr_in *v4 = (const void *)a;
	const struct sockaddr_in6 *v6 = (const void *)a;

	if (a->ss_family == AF_INET)
		return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
	return a->ss_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

static void name_address(struct http *h)
{
	struct sockaddr_storage a = { 0 };
	socklen_t n = sizeof(a);
	char host[64] = "?", port[16] = "?";

	if (getsockname(h->fd, (void *)&a, &n) == 0)
		(void)getnameinfo((void *)&a, n, host, sizeof(host), port, sizeof(port),
				  NI_NUMERICHOST | NI_NUMERICSERV);
	snprintf(h->address, sizeof(h->address), a.ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s",
		 host, port);
	h->local = is_loopback(&a);
}

static int bind_one(const struct addrinfo *a)
{
	int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int one = 1, error;

	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	error = -errno;
	close(fd);
	return error;
}

static int listen_at(struct http *h, const char *at, struct err *e)
{
	struct addrinfo want = { .ai_flags = AI_PASSIVE | AI_NUMERICSERV,
				 .ai_socktype = SOCK_STREAM },
			*list = NULL;
	char host[128], port[16], why[80];
	int r = -EINVAL;

	if (!http_split(at, host, sizeof(host), port, sizeof(port))) {
		err_set(e, -EINVAL, "'%s' is no address to listen on", at);
		err_hint(e, "ADDRESS:PORT: 127.0.0.1:9815, [::1]:9815, or :9815 for all");
		return -EINVAL;
	}
	if (getaddrinfo(host[0] ? host : NULL, port, &want, &list) != 0)
		return err_set(e, -EINVAL, "there is no address '%s' to listen on", at);
	for (const struct addrinfo *a = list; a && r < 0; a = a->ai_next)
		r = bind_one(a);
	freeaddrinfo(list);
	if (r < 0) {
		err_set(e, r, "cannot listen on '%s': %s", at, err_name(r, why, sizeof(why)));
		err_hint(e, r == -EADDRINUSE ? "another agent may run; --listen takes another port"
					     : "--listen takes another address and port");
		return r;
	}
	h->fd = r;
	name_address(h);
	return 0;
}

int http_start(const char *at, http_fn fn, void *arg, struct http **ret, struct err *e)
{
	struct http *h = calloc(1, sizeof(*h));
	int r;

	if (!h)
		return err_set(e, -ENOMEM, "out of memory");
	h->fd = -1;
	h->fn = fn;
	h->arg = arg;
	for (size_t i = 0; i < HTTP_CONNECTIONS; i++)
		h->visitors[i].fd = -1;
	h->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = h->stop_fd < 0 ? err_set(e, -errno, "cannot make an event descriptor")
			   : listen_at(h, at, e);
	if (r == 0) {
		r = thread_start(&h->thread, STACK_BYTES, serve, h);
		if (r < 0)
			err_set(e, r, "cannot start a thread");
	}
	if (r < 0) {
		if (h->fd >= 0)
			close(h->fd);
		if (h->stop_fd >= 0)
			close(h->stop_fd);
		free(h);
		return r;
	}
	*ret = h;
	return 0;
}

const char *http_address(const struct http *h)
{
	return h->address;
}

bool http_is_local(const struct http *h)
{
	return h->local;
}

void http_stop(struct http *h)
{
	uint64_t one = 1;

	if (!h)
		return;
	if (write(h->stop_fd, &one, sizeof(one)) == (ssize_t)sizeof(one))
		pthread_join(h->thread, NULL);
	for (size_t i = 0; i < HTTP_CONNECTIONS; i++)
		send_away(&h->visitors[i]);
	close(h->fd);
	close(h->stop_fd);
	free(h);
}
