/* SPDX-License-Identifier: MIT */
#include "web/serve_listen.h"

#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

/* Connections that wait to be taken, beside those that are served. */
enum { BACKLOG = 64 };

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/* Its length, 0: no address. */
static socklen_t parse(const char *text, int port, union address *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (strcmp(text, "localhost") == 0)
		text = "127.0.0.1";
	if (inet_pton(AF_INET, text, &ret->v4.sin_addr) == 1) {
		ret->v4.sin_family = AF_INET;
		ret->v4.sin_port = htons((uint16_t)port);
		return sizeof(ret->v4);
	}
	if (inet_pton(AF_INET6, text, &ret->v6.sin6_addr) == 1) {
		ret->v6.sin6_family = AF_INET6;
		ret->v6.sin6_port = htons((uint16_t)port);
		return sizeof(ret->v6);
	}
	return 0;
}

bool serve_address_ok(const char *address)
{
	union address a;

	return parse(address, 0, &a) != 0;
}

static bool is_loopback(const union address *a)
{
	if (a->any.sa_family == AF_INET)
		return ntohl(a->v4.sin_addr.s_addr) >> 24 == 127;
	return IN6_IS_ADDR_LOOPBACK(&a->v6.sin6_addr);
}

static bool is_wildcard(const union address *a)
{
	if (a->any.sa_family == AF_INET)
		return a->v4.sin_addr.s_addr == htonl(INADDR_ANY);
	return IN6_IS_ADDR_UNSPECIFIED(&a->v6.sin6_addr);
}

static void add_name(struct serve_self *self, const char *name)
{
	bool v6 = strchr(name, ':');
	char port[16] = "";

	snprintf(port, sizeof(port), ":%d", self->port);
	/* A browser that goes to port 80 does not name it. */
	for (int bare = 0; bare <= (self->port == 80); bare++) {
		char *to = self->names[self->n_names];

		if (self->n_names >= SERVE_NAMES || !*name)
			return;
		self->n_names++;
		snprintf(to, SERVE_NAME_MOST, "%s%.64s%s%s", v6 ? "[" : "", name, v6 ? "]" : "",
			 bare ? "" : port);
		for (; *to; to++)
			*to = (char)tolower((unsigned char)*to);
	}
}

/* What Host may say. */
static void name_self(struct serve_listen *l, const union address *a)
{
	char text[INET6_ADDRSTRLEN] = "", machine[65] = "";

	if (a->any.sa_family == AF_INET)
		inet_ntop(AF_INET, &a->v4.sin_addr, text, sizeof(text));
	else
		inet_ntop(AF_INET6, &a->v6.sin6_addr, text, sizeof(text));
	l->beyond = !is_loopback(a);
	l->self.any_address = is_wildcard(a);
	if (!l->self.any_address)
		add_name(&l->self, text);
	if (!l->beyond || l->self.any_address) {
		add_name(&l->self, "127.0.0.1");
		add_name(&l->self, "localhost");
		add_name(&l->self, "::1");
	}
	if (l->beyond && gethostname(machine, sizeof(machine) - 1) == 0)
		add_name(&l->self, machine);
	/* The address to open is one that a browser here can go to: of all, 127.0.0.1. */
	snprintf(l->url, sizeof(l->url), "http://%s/?token=%s", l->self.names[0], l->self.token);
	text_copy(l->address, sizeof(l->address), text);
}

static int make_token(struct serve_self *self)
{
	unsigned char raw[SERVE_TOKEN / 2];

	if (getrandom(raw, sizeof(raw), 0) != (ssize_t)sizeof(raw))
		return -EIO;
	for (size_t i = 0; i < sizeof(raw); i++)
		snprintf(self->token + 2 * i, 3, "%02x", raw[i]);
	return 0;
}

static int no_listening(const char *address, int port, int error, struct err *e)
{
	char why[80];

	if (error == -EADDRINUSE)
		err_set(e, error, "port %d of %s is in use: something else listens there", port,
			address);
	else
		err_set(e, error, "cannot listen on port %d of %s: %s", port, address,
			err_name(error, why, sizeof(why)));
	if (error == -EADDRINUSE)
		err_hint(e, "--port 0 takes any that is free; it may also be a 'spotter serve' "
			    "that still runs");
	else if (error == -EACCES)
		err_hint(e, "ports below 1024 are root's; the usual one is %d", SERVE_PORT);
	else if (error == -EADDRNOTAVAIL)
		err_hint(e, "it must be an address of this machine: 'ip addr' lists them");
	return error;
}

static int bind_it(const union address *a, socklen_t n, union address *ret_bound)
{
	auto_close int fd = socket(a->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	socklen_t bound_n = sizeof(*ret_bound);
	int yes = 1, no = 0;

	if (fd < 0)
		return -errno;
	/* A server that ended a moment ago leaves connections that wait to be forgotten. */
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	/* "::" is all addresses, 127.0.0.1 among them. */
	if (a->any.sa_family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
	if (bind(fd, &a->any, n) < 0 || listen(fd, BACKLOG) < 0 ||
	    getsockname(fd, &ret_bound->any, &bound_n) < 0)
		return -errno;
	return steal_fd(&fd);
}

int serve_listen(const char *address, int port, struct serve_listen *ret, struct err *e)
{
	struct serve_listen l = { .fd = -1 };
	union address asked, bound;
	socklen_t n;
	int r;

	address = address ? address : "127.0.0.1";
	n = parse(address, port, &asked);
	if (!n)
		return err_set(e, -EINVAL, "'%s' is no address", address);
	l.fd = bind_it(&asked, n, &bound);
	if (l.fd < 0)
		return no_listening(address, port, l.fd, e);
	l.self.port =
	    ntohs(bound.any.sa_family == AF_INET ? bound.v4.sin_port : bound.v6.sin6_port);
	snprintf(l.self.cookie, sizeof(l.self.cookie), "spotter-%d", l.self.port);
	r = make_token(&l.self);
	if (r < 0) {
		serve_listen_done(&l);
		return err_set(e, r, "the kernel gives no random numbers for a token");
	}
	name_self(&l, &bound);
	*ret = l;
	return 0;
}

void serve_listen_done(struct serve_listen *l)
{
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
}
