/* SPDX-License-Identifier: MIT */
#include "push/client.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/text.h"
#include "push/curl.h"
#include "push/url.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	SECRET_MAX = 8192,
	ANSWER_KEPT = 1024,
	WAIT_MAX_S = 300, /* whatever they say, nobody is left alone for longer */
	HTTP_TOO_MANY = 429,
	HTTPS = 2,
	HTTP = 1,
};

struct client {
	enum push_kind kind;
	char *url, *token_file, *user_file, *ca_file;
	char shown[256];
	int64_t timeout_ns;
	char *headers[PUSH_HEADERS_MAX];
	size_t headers_n;
	struct curl_api curl;
	void *easy;
	struct err
	    problem; /* why there is no libcurl: tried again, it may be installed meanwhile */
	struct buf answer;
};

enum client_verdict client_judge(enum push_kind kind, long status)
{
	if (status >= 200 && status < 300)
		return CLIENT_TAKEN;
	if (status == HTTP_TOO_MANY)
		return CLIENT_AGAIN;
	if (status >= 400 && status < 500)
		return CLIENT_REFUSED;
	/* OTLP names those that may be sent again: others would fail the same way. */
	if (kind == PUSH_OTLP && status >= 500)
		return status >= 502 && status <= 504 ? CLIENT_AGAIN : CLIENT_REFUSED;
	return CLIENT_AGAIN; /* 5xx; 3xx: somebody will set the address right, or the portal go away */
}

const char *client_shown(const struct client *c)
{
	return c->shown;
}

/* "Name: value" of visible characters, and none of those that are ours to say. */
static int check_header(const char *h, struct err *e)
{
	static const char *const ours[] = { "content-type", "content-encoding", "content-length",
					    "host", "authorization" };
	const char *colon = strchr(h, ':');
	size_t n = colon ? (size_t)(colon - h) : 0;

	for (const char *p = h; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 127)
			n = 0;
	if (!n || strcspn(h, " \t") < n) {
		err_set(e, -EINVAL, "a header to send along must be 'Name: value'");
		return -EINVAL;
	}
	for (size_t i = 0; i < ARRAY_LEN(ours); i++) {
		if (strlen(ours[i]) != n || strncasecmp(h, ours[i], n) != 0)
			continue;
		err_set(e, -EINVAL, "the header '%s' is not to be set by hand", ours[i]);
		err_hint(e, "credentials are read from --push-token-file or --push-user-file");
		return -EINVAL;
	}
	return 0;
}

static int copy(char **into, const char *from)
{
	if (from && !(*into = strdup(from)))
		return -ENOMEM;
	return 0;
}

static int check_readable(const char *path, struct err *e)
{
	auto_close int fd = path ? io_open(AT_FDCWD, path) : -1;
	char why[80];

	if (!path || fd >= 0)
		return 0;
	return err_set(e, fd, "cannot read '%s': %s", path, err_name(fd, why, sizeof(why)));
}

static int fill(struct client *c, const struct push_options *o, const struct push_address *a,
		struct err *e)
{
	int error = url_check(a->url, a->kind, &c->url, c->shown, sizeof(c->shown), e);

	if (!error && o->token_file && o->user_file)
		error = err_set(e, -EINVAL, "a token or a user and password, not both");
	if (!error)
		error = check_readable(o->token_file, e);
	if (!error)
		error = check_readable(o->user_file, e);
	if (!error)
		error = check_readable(o->ca_file, e);
	for (size_t i = 0; !error && i < o->headers_n && i < PUSH_HEADERS_MAX; i++) {
		error = check_header(o->headers[i], e);
		if (!error)
			error = copy(&c->headers[c->headers_n++], o->headers[i]);
	}
	if (!error && (copy(&c->token_file, o->token_file) || copy(&c->user_file, o->user_file) ||
		       copy(&c->ca_file, o->ca_file)))
		error = err_set(e, -ENOMEM, "out of memory");
	return error;
}

int client_open(const struct push_options *o, const struct push_address *a, struct client **ret,
		struct err *e)
{
	struct client *c = calloc(1, sizeof(*c));
	int error;

	if (!c)
		return err_set(e, -ENOMEM, "out of memory");
	c->kind = a->kind;
	c->timeout_ns = o->timeout_ns > 0 ? o->timeout_ns : 10 * NS_PER_S;
	buf_init(&c->answer, ANSWER_KEPT + 1);
	error = fill(c, o, a, e);
	if (error < 0) {
		client_close(c);
		return error;
	}
	*ret = c;
	return 0;
}

void client_close(struct client *c)
{
	if (!c)
		return;
	if (c->easy)
		c->curl.easy_cleanup(c->easy);
	for (size_t i = 0; i < c->headers_n; i++)
		free(c->headers[i]);
	buf_done(&c->answer);
	free(c->url);
	free(c->token_file);
	free(c->user_file);
	free(c->ca_file);
	free(c);
}

static size_t keep_answer(char *p, size_t size, size_t n, void *arg)
{
	struct client *c = arg;
	size_t room = ANSWER_KEPT - c->answer.len, bytes = size * n;

	buf_put(&c->answer, p, bytes < room ? bytes : room);
	return bytes;
}

/* Called by libcurl at least once a second: not 0 ends the transfer. */
static int on_progress(void *arg, int64_t down_all, int64_t down, int64_t up_all, int64_t up)
{
	const atomic_llong *stop_ns = arg;
	long long stop = atomic_load(stop_ns);

	(void)down_all, (void)down, (void)up_all, (void)up;
	return stop && clock_mono_ns() > stop;
}

static bool setup(struct client *c)
{
	const struct curl_api *curl = &c->curl;

	if (c->easy)
		return true;
	c->problem = (struct err){ 0 };
	if (!curl->easy_init && curl_load(&c->curl, &c->problem) < 0) {
		c->curl = (struct curl_api){ 0 };
		return false;
	}
	c->easy = curl->easy_init();
	if (!c->easy) {
		err_set(&c->problem, -ENOMEM, "out of memory");
		return false;
	}
	curl->easy_setopt(c->easy, CURL_OPT_URL, c->url);
	curl->easy_setopt(c->easy, CURL_OPT_PROTOCOLS, (long)(HTTP | HTTPS));
	curl->easy_setopt(c->easy, CURL_OPT_NO_SIGNAL, 1l);
	curl->easy_setopt(c->easy, CURL_OPT_POST, 1l);
	curl->easy_setopt(c->easy, CURL_OPT_USER_AGENT, "spotter/" SPOTTER_VERSION);
	curl->easy_setopt(c->easy, CURL_OPT_WRITE_FUNCTION, keep_answer);
	curl->easy_setopt(c->easy, CURL_OPT_WRITE_DATA, c);
	curl->easy_setopt(c->easy, CURL_OPT_NO_PROGRESS, 0l);
	curl->easy_setopt(c->easy, CURL_OPT_PROGRESS_FUNCTION, on_progress);
	if (c->ca_file)
		curl->easy_setopt(c->easy, CURL_OPT_CA_FILE, c->ca_file);
	return true;
}

/* The one line of a file of credentials, without the blanks around it. */
static int read_secret(const char *path, char *buf, size_t size)
{
	ssize_t n = io_read(AT_FDCWD, path, buf, size);

	if (n < 0)
		return (int)n;
	if ((size_t)n >= size - 1)
		return -EFBIG;
	while (n > 0 && strchr(" \t\r\n", buf[n - 1]))
		n--;
	for (ssize_t i = 0; i < n; i++)
		if ((unsigned char)buf[i] < ' ' || buf[i] == 127)
			return -EINVAL; /* would be a header of its own */
	buf[n] = 0;
	return n ? 0 : -ENODATA;
}

static void base64(const char *s, struct buf *out)
{
	static const char digits[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	size_t n = strlen(s);

	for (size_t i = 0; i < n; i += 3) {
		uint32_t v = (uint32_t)(unsigned char)s[i] << 16;

		if (i + 1 < n)
			v |= (uint32_t)(unsigned char)s[i + 1] << 8;
		if (i + 2 < n)
			v |= (unsigned char)s[i + 2];
		buf_char(out, digits[v >> 18]);
		buf_char(out, digits[v >> 12 & 63]);
		buf_char(out, i + 1 < n ? digits[v >> 6 & 63] : '=');
		buf_char(out, i + 2 < n ? digits[v & 63] : '=');
	}
}

struct secret {
	char plain[SECRET_MAX]; /* as the file has it, "" none */
	struct buf header;      /* "Authorization: ..." */
};

static void secret_done(struct secret *s)
{
	explicit_bzero(s->plain, sizeof(s->plain));
	if (s->header.data)
		explicit_bzero(s->header.data, s->header.cap);
	buf_done(&s->header);
}

/* -errno when there should be one and is not. */
static int secret_take(const struct client *c, struct secret *s)
{
	const char *path = c->token_file ? c->token_file : c->user_file;
	int error = path ? read_secret(path, s->plain, sizeof(s->plain)) : 0;

	if (!path || error < 0)
		return error;
	buf_init(&s->header, 2 * SECRET_MAX);
	(void)buf_reserve(&s->header,
			  2 * SECRET_MAX - 1); /* never moved: no copies are left behind */
	buf_str(&s->header, c->token_file ? "Authorization: Bearer " : "Authorization: Basic ");
	if (c->token_file)
		buf_str(&s->header, s->plain);
	else
		base64(s->plain, &s->header);
	return buf_ok(&s->header) ? 0 : -ENOMEM;
}

/* In the file's words, without the user, or as it was sent. */
static bool gives_away(const char *text, const struct secret *s)
{
	const char *password = strchr(s->plain, ':'), *sent = strrchr(buf_text(&s->header), ' ');

	if (!s->plain[0])
		return false;
	return strstr(text, s->plain) || (sent && strstr(text, sent + 1)) ||
	       (password && password[1] && strstr(text, password + 1));
}

static void *add(const struct client *c, void *list, const char *text)
{
	void *longer = c->curl.slist_append(list, text);

	return longer ? longer : list;
}

static void *make_headers(const struct client *c, const struct secret *secret)
{
	void *list = add(c, NULL, "Content-Type: application/x-protobuf");

	list = add(c, list, "Expect:"); /* no round trip before the body */
	if (c->kind == PUSH_REMOTE_WRITE) {
		list = add(c, list, "Content-Encoding: snappy");
		list = add(c, list, "X-Prometheus-Remote-Write-Version: 0.1.0");
	}
	for (size_t i = 0; i < c->headers_n; i++)
		list = add(c, list, c->headers[i]);
	return secret->plain[0] ? add(c, list, buf_text(&secret->header)) : list;
}

static void say(const struct client *c, struct client_answer *ret, const char *what)
{
	auto_done(buf) struct buf safe = { 0 };

	text_safe(&safe, what, strlen(what));
	snprintf(ret->words, sizeof(ret->words), "%.120s: %.100s", c->shown, buf_text(&safe));
}

/* What they say about it, a line at most; nothing where they send credentials back. */
static const char *first_line(struct client *c, const struct secret *secret)
{
	if (!c->answer.len || gives_away(c->answer.data, secret))
		return "";
	c->answer.data[strcspn(c->answer.data, "\r\n")] = 0;
	return c->answer.data;
}

static void judge(struct client *c, const struct secret *secret, struct client_answer *ret)
{
	const char *said;
	char what[128];
	int64_t after = 0; /* curl_off_t */

	ret->verdict = client_judge(c->kind, ret->status);
	if (ret->verdict == CLIENT_TAKEN) {
		if (c->kind == PUSH_OTLP)
			ret->rejected = otlp_rejected(buf_text(&c->answer), c->answer.len);
		return;
	}
	if (c->curl.easy_getinfo(c->easy, CURL_INFO_RETRY_AFTER, &after) == 0 && after > 0)
		ret->wait_ns = (after < WAIT_MAX_S ? after : WAIT_MAX_S) * NS_PER_S;
	said = first_line(c, secret);
	snprintf(what, sizeof(what), "HTTP status %ld%s%.80s", ret->status, *said ? ": " : "",
		 said);
	say(c, ret, what);
}

static void transfer(struct client *c, const void *body, size_t n, const struct secret *secret,
		     const atomic_llong *stop_ns, struct client_answer *ret)
{
	const struct curl_api *curl = &c->curl;
	char why[CURL_ERROR_BYTES] = "";
	void *headers = make_headers(c, secret);
	int code;

	buf_reset(&c->answer);
	curl->easy_setopt(c->easy, CURL_OPT_HEADERS, headers);
	curl->easy_setopt(c->easy, CURL_OPT_TIMEOUT_MS, (long)(c->timeout_ns / NS_PER_MS));
	curl->easy_setopt(c->easy, CURL_OPT_CONNECT_TIMEOUT_MS, (long)(c->timeout_ns / NS_PER_MS));
	curl->easy_setopt(c->easy, CURL_OPT_POST_SIZE, (long)n);
	curl->easy_setopt(c->easy, CURL_OPT_POST_FIELDS, body);
	curl->easy_setopt(c->easy, CURL_OPT_PROGRESS_DATA, stop_ns);
	curl->easy_setopt(c->easy, CURL_OPT_ERROR_BUFFER, why);
	code = curl->easy_perform(c->easy);
	if (code == 0)
		curl->easy_getinfo(c->easy, CURL_INFO_STATUS, &ret->status);
	curl->easy_setopt(c->easy, CURL_OPT_ERROR_BUFFER, NULL);
	curl->easy_setopt(c->easy, CURL_OPT_POST_FIELDS, NULL);
	curl->easy_setopt(c->easy, CURL_OPT_HEADERS, NULL);
	curl->slist_free_all(headers);
	if (code == 0)
		judge(c, secret, ret);
	else
		say(c, ret, why[0] ? why : curl->easy_strerror(code));
}

void client_post(struct client *c, const void *body, size_t n, const atomic_llong *stop_ns,
		 struct client_answer *ret)
{
	auto_done(secret) struct secret secret = { 0 };
	char why[80];
	int error;

	*ret = (struct client_answer){ .verdict = CLIENT_AGAIN };
	if (!setup(c)) {
		text_copy(ret->words, sizeof(ret->words), c->problem.text);
		return;
	}
	error = secret_take(c, &secret);
	if (error < 0) { /* it may be written anew just now */
		snprintf(ret->words, sizeof(ret->words), "%.120s: no credentials in their file: %s",
			 c->shown, err_name(error, why, sizeof(why)));
		return;
	}
	transfer(c, body, n, &secret, stop_ns, ret);
}
