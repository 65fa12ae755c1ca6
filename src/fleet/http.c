/* SPDX-License-Identifier: MIT */
#include "fleet/http.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/text.h"
#include "fleet/answer.h"
#include "push/curl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
	URL_MAX = 2048,
	SECRET_MAX = 8192,
	HTTP_BIT = 1,
	HTTPS_BIT = 2,
	OPT_USER_PASSWORD = 10005, /* CURLOPT_USERPWD */
	STATUS_OK = 200,
};

struct http {
	struct curl_api curl;
	void *easy, *headers;
	char *base;
	char shown[256];
	struct buf *out; /* of the request that is under way */
	bool too_long;
};

static const char address_is_like[] = "an address is like http://localhost:9090";

/* The address itself is in no message before it is known to hold no password. */
static int refuse(struct err *e, const char *why, const char *hint)
{
	err_set(e, -EINVAL, "cannot ask this address: %s", why);
	err_hint(e, "%s", hint);
	return -EINVAL;
}

static bool cut_end(char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);

	if (n < m || strcmp(s + n - m, end) != 0)
		return false;
	s[n - m] = '\0';
	return true;
}

int http_base(const char *url, char **ret, struct err *e)
{
	const char *host = strncasecmp(url, "http://", 7) == 0    ? url + 7
			   : strncasecmp(url, "https://", 8) == 0 ? url + 8
								  : NULL;
	size_t n = strlen(url);

	if (!host)
		return refuse(e, "it does not begin with http:// or https://", address_is_like);
	if (n >= URL_MAX)
		return refuse(e, "it is too long", address_is_like);
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)url[i] <= ' ' || url[i] == 127)
			return refuse(e, "there is a blank or control character in it",
				      address_is_like);
	if (!strcspn(host, "/?#"))
		return refuse(e, "it has no host", address_is_like);
	if (memchr(host, '@', strcspn(host, "/?#")))
		return refuse(e,
			      "it has a user in it, and everybody sees the arguments of a program",
			      "put user:password into a file, and name it with --user-file");
	if (strpbrk(host, "?#"))
		return refuse(e,
			      "there is a '?' or '#' in it, and the question is asked behind that",
			      address_is_like);
	if (!(*ret = strdup(url)))
		return err_set(e, -ENOMEM, "out of memory");
	while (cut_end(*ret, "/") || cut_end(*ret, "/api/v1/query") || cut_end(*ret, "/api/v1"))
		;
	return 0;
}

/* The one line of a file of credentials, without the blanks around it. */
static int read_secret(const char *path, char *buf, size_t size, struct err *e)
{
	ssize_t n = io_read(AT_FDCWD, path, buf, size);
	char why[80];

	if (n < 0)
		return err_set(e, (int)n, "cannot read credentials from '%s': %s", path,
			       err_name((int)n, why, sizeof(why)));
	while (n > 0 && strchr(" \t\r\n", buf[n - 1]))
		n--;
	buf[n] = '\0';
	for (ssize_t i = 0; i < n; i++)
		if ((unsigned char)buf[i] < ' ' || buf[i] == 127)
			n = 0; /* a second line would be a header of its own */
	if (!n || (size_t)n >= size - 1)
		return err_set(e, -EINVAL, "'%s' does not hold one line of credentials", path);
	return 0;
}

static int add_header(struct http *h, const char *text, struct err *e)
{
	void *longer = h->curl.slist_append(h->headers, text);

	if (!longer)
		return err_set(e, -ENOMEM, "out of memory");
	h->headers = longer;
	return 0;
}

static int use_token(struct http *h, const char *token, struct err *e)
{
	char line[SECRET_MAX + 32];
	int r;

	if (strlen(token) >= SECRET_MAX)
		return err_set(e, -EINVAL, "the token is longer than any token is");
	for (const char *p = token; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 127)
			return err_set(e, -EINVAL, "there is a control character in the token");
	snprintf(line, sizeof(line), "Authorization: Bearer %s", token);
	r = add_header(h, line, e);
	explicit_bzero(line, sizeof(line));
	return r;
}

static int use_credentials(struct http *h, const struct http_options *o, struct err *e)
{
	const char *token = getenv("SPOTTER_PROMETHEUS_TOKEN");
	const char *user = getenv("SPOTTER_PROMETHEUS_USER");
	char secret[SECRET_MAX] = "";
	int r = 0;

	if (o->token_file && o->user_file)
		return err_set(e, -EINVAL, "a token or a user and password, not both");
	if (o->token_file || o->user_file)
		token = user = NULL;
	if (o->token_file && (r = read_secret(o->token_file, secret, sizeof(secret), e)) == 0)
		token = secret;
	if (o->user_file && (r = read_secret(o->user_file, secret, sizeof(secret), e)) == 0)
		user = secret;
	if (r == 0 && token && *token)
		r = use_token(h, token, e);
	else if (r == 0 && user && *user)
		h->curl.easy_setopt(h->easy, OPT_USER_PASSWORD, user); /* copied */
	explicit_bzero(secret, sizeof(secret));
	return r;
}

static int check_header(const char *text, struct err *e)
{
	size_t n = strcspn(text, ":");
	bool bad = !n || !text[n] || strcspn(text, " \t") < n;

	for (const char *p = text; *p; p++)
		bad = bad || (unsigned char)*p < ' ' || *p == 127;
	if (bad)
		return err_set(e, -EINVAL, "a header to send along must be 'Name: value'");
	if (n == 13 && strncasecmp(text, "authorization", n) == 0) {
		err_set(e, -EINVAL,
			"everybody sees the arguments of a program: no credentials there");
		err_hint(e, "put them into a file, and name it with --token-file or --user-file");
		return -EINVAL;
	}
	return 0;
}

static size_t take_body(char *p, size_t size, size_t n, void *arg)
{
	struct http *h = arg;

	buf_put(h->out, p, size * n);
	h->too_long = !buf_ok(h->out);
	return h->too_long ? 0 : size * n;
}

static int setup(struct http *h, const struct http_options *o, struct err *e)
{
	const struct curl_api *curl = &h->curl;
	long timeout = (long)(o->timeout_ns / NS_PER_MS);
	struct err missing = { 0 };
	int r = curl_load(&h->curl, &missing);

	if (r < 0) {
		err_set(e, r, "cannot ask anybody: libcurl is not installed, or does not work");
		err_hint(e, "%s", missing.hint);
		return r;
	}
	if (!(h->easy = curl->easy_init()))
		return err_set(e, -ENOMEM, "out of memory");
	curl->easy_setopt(h->easy, CURL_OPT_PROTOCOLS, (long)(HTTP_BIT | HTTPS_BIT));
	curl->easy_setopt(h->easy, CURL_OPT_NO_SIGNAL, 1l);
	curl->easy_setopt(h->easy, CURL_OPT_USER_AGENT, "spotter/" SPOTTER_VERSION);
	curl->easy_setopt(h->easy, CURL_OPT_WRITE_FUNCTION, take_body);
	curl->easy_setopt(h->easy, CURL_OPT_WRITE_DATA, h);
	curl->easy_setopt(h->easy, CURL_OPT_TIMEOUT_MS, timeout);
	curl->easy_setopt(h->easy, CURL_OPT_CONNECT_TIMEOUT_MS, timeout < 10000 ? timeout : 10000l);
	if (o->ca_file)
		curl->easy_setopt(h->easy, CURL_OPT_CA_FILE, o->ca_file);
	r = add_header(h, "Accept: application/json", e);
	for (size_t i = 0; r == 0 && i < o->headers_n; i++) {
		r = check_header(o->headers[i], e);
		if (r == 0)
			r = add_header(h, o->headers[i], e);
	}
	if (r == 0)
		r = use_credentials(h, o, e);
	curl->easy_setopt(h->easy, CURL_OPT_HEADERS, h->headers);
	return r;
}

int http_open(const struct http_options *o, struct http **ret, struct err *e)
{
	struct http *h = calloc(1, sizeof(*h));
	int r = h ? http_base(o->url, &h->base, e) : err_set(e, -ENOMEM, "out of memory");

	if (r == 0) {
		text_safe_copy(h->shown, sizeof(h->shown), h->base);
		r = setup(h, o, e);
	}
	if (r < 0) {
		http_close(h);
		return r;
	}
	*ret = h;
	return 0;
}

void http_close(struct http *h)
{
	if (!h)
		return;
	if (h->easy)
		h->curl.easy_cleanup(h->easy);
	if (h->headers)
		h->curl.slist_free_all(h->headers);
	free(h->base);
	free(h);
}

const char *http_shown(const struct http *h)
{
	return h->shown;
}

static void say_redirect(struct http *h, struct err *e)
{
	const char *to = NULL;
	char plain[200] = "", safe[200];

	if (h->curl.easy_getinfo(h->easy, CURL_INFO_REDIRECT_URL, &to) == 0 && to)
		snprintf(plain, sizeof(plain), "%.*s", (int)strcspn(to, "?#"), to);
	cut_end(plain, "/api/v1/query");
	if (plain[0] && !strchr(plain, '@'))
		err_hint(
		    e,
		    "it sends to '%s', which is not followed, as credentials would go along: if it "
		    "is right, give that address",
		    text_safe_copy(safe, sizeof(safe), plain));
	else
		err_hint(e, "redirects are not followed: give the address it ends at");
}

static int bad_status(struct http *h, long status, const struct buf *out, struct err *e)
{
	char complaint[200];

	answer_complaint(buf_text(out), out->len, complaint, sizeof(complaint));
	err_set(e, -EPROTO, "%s answers with HTTP status %ld%s%s", h->shown, status,
		complaint[0] ? ": " : "", complaint);
	if (status >= 300 && status < 400)
		say_redirect(h, e);
	else if (status == 401 || status == 403)
		err_hint(
		    e, "it wants credentials, or others: --token-file or --user-file names a file "
		       "with them");
	else if (status == 404)
		err_hint(
		    e, "there is no /api/v1/query below this address: engines behind a proxy have "
		       "it below a path, as http://host/prometheus");
	else if (status == 422 || status == 400)
		err_hint(e, "it does not understand what is asked: is --at a time, as "
			    "2026-11-16T14:00:00Z? The rest Prometheus knows since 2.26");
	else if (status == 429 || status >= 500)
		err_hint(
		    e, "it is overloaded, starting or broken: try again, with a shorter --since or "
		       "one --run");
	return -EPROTO;
}

static int not_reached(struct http *h, int code, const char *why, struct err *e)
{
	char safe[200];

	if (h->too_long) {
		err_set(e, -E2BIG, "an answer of %s is longer than %d MiB", h->shown,
			HTTP_BODY_MAX >> 20);
		err_hint(e, "ask for one run: --run ID");
		return -E2BIG;
	}
	text_safe_copy(safe, sizeof(safe), why[0] ? why : h->curl.easy_strerror(code));
	err_set(e, -EIO, "cannot ask %s: %s", h->shown, safe);
	err_hint(e,
		 "is the address right, and the engine up? 'curl %s/api/v1/query?query=1' shows "
		 "what it says",
		 h->shown);
	return -EIO;
}

int http_get(struct http *h, const char *path, struct buf *out, struct err *e)
{
	char why[CURL_ERROR_BYTES] = "";
	auto_done(buf) struct buf url = { 0 };
	long status = 0;
	int code;

	buf_reset(out);
	out->max = HTTP_BODY_MAX;
	h->out = out;
	h->too_long = false;
	buf_str(&url, h->base);
	buf_str(&url, path);
	if (!buf_ok(&url))
		return err_set(e, -ENOMEM, "out of memory");
	h->curl.easy_setopt(h->easy, CURL_OPT_URL, buf_text(&url));
	h->curl.easy_setopt(h->easy, CURL_OPT_ERROR_BUFFER, why);
	code = h->curl.easy_perform(h->easy);
	if (code == 0)
		h->curl.easy_getinfo(h->easy, CURL_INFO_STATUS, &status);
	h->curl.easy_setopt(h->easy, CURL_OPT_ERROR_BUFFER, NULL);
	h->out = NULL;
	if (code != 0)
		return not_reached(h, code, why, e);
	return status == STATUS_OK ? 0 : bad_status(h, status, out, e);
}
