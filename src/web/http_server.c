/* SPDX-License-Identifier: MIT */
#include "web/http_server.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/text.h"
#include "web/http_visit.h"
#include "web/serve_listen.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

/* How often connections that say nothing are looked through; where there is none, nothing is to be done. */
enum { SWEEP_MS = 1000, ALONE_MS = 60000 };

static struct line *line_of(struct visit *v)
{
	const union MHD_ConnectionInfo *info = v->server->lib.MHD_get_connection_info(
	    v->connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

static void on_line(void *cls, struct MHD_Connection *c, void **context,
		    enum MHD_ConnectionNotificationCode what)
{
	struct server *s = cls;
	struct line *line = *context;

	if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
		if (line)
			line->used = false;
		return;
	}
	for (size_t i = 0; i < LINES; i++) {
		const union MHD_ConnectionInfo *info;

		if (s->lines[i].used)
			continue;
		info = s->lib.MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
		s->lines[i] = (struct line){ .used = true,
					     .fd = info ? info->connect_fd : -1,
					     .since_ns = clock_mono_ns() };
		*context = &s->lines[i];
		return;
	}
}

/* The line of a request has come, its headers have not. The address is taken as it is, undecoded. */
static void *on_target(void *cls, const char *uri, struct MHD_Connection *c)
{
	struct server *s = cls;
	struct visit *v = calloc(1, sizeof(*v));

	if (!v)
		return NULL;
	v->server = s;
	v->connection = c;
	v->item = -1;
	text_copy(v->target, sizeof(v->target), uri);
	v->next = s->visits;
	v->self = &s->visits;
	if (v->next)
		v->next->self = &v->next;
	s->visits = v;
	return v;
}

static void on_end(void *cls, struct MHD_Connection *c, void **context,
		   enum MHD_RequestTerminationCode why)
{
	struct visit *v = *context;
	struct line *line;

	(void)cls;
	(void)c;
	(void)why;
	if (!v)
		return;
	line = line_of(v);
	if (line)
		line->since_ns = clock_mono_ns();
	http_stream_done(v);
	if (v->item >= 0)
		desk_leave(v->server->desk, v->item);
	*v->self = v->next;
	if (v->next)
		v->next->self = v->self;
	free(v);
	*context = NULL;
}

/* Nothing is decoded: what is no plain text is no address of ours. */
static size_t on_escape(void *cls, struct MHD_Connection *c, char *text)
{
	(void)cls;
	(void)c;
	return strlen(text);
}

static enum MHD_Result on_header(void *cls, enum MHD_ValueKind kind, const char *key,
				 const char *value)
{
	struct serve_request *r = cls;
	const struct {
		const char *name;
		const char **to;
	} known[] = {
		{ "Host", &r->host },
		{ "Origin", &r->origin },
		{ "Sec-Fetch-Site", &r->fetch_site },
		{ "Sec-Fetch-Mode", &r->fetch_mode },
		{ "Cookie", &r->cookie },
		{ "Last-Event-ID", &r->last_event },
	};

	(void)kind;
	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		if (strcasecmp(key, known[i].name) != 0)
			continue;
		r->doubled |= *known[i].to != NULL;
		*known[i].to = value ? value : "";
	}
	return MHD_YES;
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *c, const char *url,
				  const char *method, const char *version, const char *upload,
				  size_t *upload_n, void **context)
{
	struct server *s = cls;
	struct visit *v = *context;
	struct line *line;

	(void)url;
	(void)version;
	(void)upload;
	/* Nobody has to send us anything. */
	if (!v || *upload_n)
		return MHD_NO;
	v->asleep = false;
	if (!v->decided) {
		struct serve_request r = { .method = method, .target = v->target };

		line = line_of(v);
		if (line)
			line->since_ns = 0;
		s->lib.MHD_get_connection_values(c, MHD_HEADER_KIND, on_header, &r);
		v->decision = serve_decide(s->self, &r);
		v->decided = true;
		/* An answer to the first call ends the connection: who is refused has it at once. */
		if (v->decision.route)
			return MHD_YES;
	}
	return http_answer(v);
}

static void wake(struct visit *v)
{
	if (!v->asleep)
		return;
	v->asleep = false;
	v->server->lib.MHD_resume_connection(v->connection);
}

/* Those who wait for what the desk has made. */
static void wake_due(struct server *s)
{
	bool ping = clock_mono_ns() >= s->ping_ns;

	for (struct visit *v = s->visits; v; v = v->next) {
		struct desk_view view;

		if (!v->asleep)
			continue;
		if (v->streaming) {
			v->pinged |= ping;
			if (v->pinged || http_stream_due(v))
				wake(v);
			continue;
		}
		desk_look(s->desk, v->item, &view);
		desk_give_back(s->desk, view.paper);
		if (view.fresh || view.made != v->waited)
			wake(v);
	}
	if (ping)
		s->ping_ns = clock_mono_ns() + PING_S * NS_PER_S;
}

/* A connection that asks nothing, or letter by letter, would keep its place for ever. Who is slow has his time, unless nobody
 * else gets in meanwhile. */
static void sweep(struct server *s)
{
	int64_t now = clock_mono_ns(), most = CROWDED_S * NS_PER_S;

	for (size_t i = 0; i < LINES; i++)
		if (!s->lines[i].used)
			most = REQUEST_S * NS_PER_S;
	for (size_t i = 0; i < LINES; i++) {
		struct line *line = &s->lines[i];

		if (!line->used || !line->since_ns || line->fd < 0 || now - line->since_ns < most)
			continue;
		(void)shutdown(line->fd, SHUT_RDWR);
		line->since_ns = now; /* once is enough; libmicrohttpd closes it */
	}
}

static int wait_ms(struct server *s)
{
	unsigned long long ms;
	bool used = false;
	int most;

	for (size_t i = 0; i < LINES; i++)
		used |= s->lines[i].used;
	/* With all lines in use libmicrohttpd hears no new ones, and only when it is run after they were closed
	 * it does again: not at once then. */
	s->alone = used ? 0 : s->alone + 1;
	most = s->alone > 2 ? ALONE_MS : SWEEP_MS;
	if (s->lib.MHD_get_timeout(s->daemon, &ms) != MHD_YES || ms > (unsigned)most)
		return most;
	return (int)ms;
}

static int answer_all(struct server *s, int stop_fd, struct err *e)
{
	const union MHD_DaemonInfo *info =
	    s->lib.MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	struct pollfd fds[] = {
		{ .fd = info ? info->epoll_fd : -1, .events = POLLIN },
		{ .fd = desk_fd(s->desk), .events = POLLIN },
		{ .fd = stop_fd, .events = POLLIN },
	};
	char why[80];

	s->ping_ns = clock_mono_ns() + PING_S * NS_PER_S;
	for (;;) {
		int n = poll(fds, ARRAY_LEN(fds), wait_ms(s));

		if (n < 0 && errno != EINTR)
			return err_set(e, -errno, "cannot wait for requests: %s",
				       err_name(-errno, why, sizeof(why)));
		if (n > 0 && fds[2].revents)
			return 0;
		if (n > 0 && fds[1].revents)
			desk_heard(s->desk);
		wake_due(s);
		if (s->lib.MHD_run(s->daemon) != MHD_YES)
			return err_set(e, -EIO, "libmicrohttpd failed");
		/* Behind it: what had come is read by now, however late we are. */
		sweep(s);
	}
}

/* Nobody may be asleep when it stops; streams end as soon as they are awake. */
static void end_all(struct server *s)
{
	s->ending = true;
	for (struct visit *v = s->visits; v; v = v->next)
		wake(v);
	(void)s->lib.MHD_run(s->daemon);
	(void)s->lib.MHD_run(s->daemon);
	s->lib.MHD_stop_daemon(s->daemon);
}

int http_possible(struct err *e)
{
	struct http_lib lib;

	return http_lib_open(&lib, e);
}

int http_serve(const struct serve_listen *l, int stop_fd, struct err *e)
{
	struct server s = { .self = &l->self };
	int fd, r = http_lib_open(&s.lib, e);

	if (r == 0)
		r = desk_open(&s.desk, e);
	if (r < 0)
		return r;
	/* libmicrohttpd closes it; given none it would make its own. */
	fd = fcntl(l->fd, F_DUPFD_CLOEXEC, 3);
	if (fd >= 0)
		s.daemon = s.lib.MHD_start_daemon(
		    MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, on_request, &s,
		    MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, (unsigned)LINES,
		    MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)LINE_BYTES,
		    MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)LINE_IDLE_S,
		    MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_URI_LOG_CALLBACK, on_target, &s,
		    MHD_OPTION_NOTIFY_COMPLETED, on_end, &s, MHD_OPTION_NOTIFY_CONNECTION, on_line,
		    &s, MHD_OPTION_UNESCAPE_CALLBACK, on_escape, NULL, MHD_OPTION_END);
	if (!s.daemon) {
		r = err_set(e, -EIO, "libmicrohttpd cannot serve here");
	} else {
		r = answer_all(&s, stop_fd, e);
		end_all(&s);
	}
	desk_close(s.desk);
	return r;
}
