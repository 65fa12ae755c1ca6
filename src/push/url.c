/* SPDX-License-Identifier: MIT */
#include "push/url.h"

#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { URL_MAX = 2048 };

static const struct {
	const char *end;
	enum push_kind kind;
} ends[] = {
	{ "/api/v1/write", PUSH_REMOTE_WRITE }, /* Prometheus, VictoriaMetrics, Thanos */
	{ "/api/v1/push", PUSH_REMOTE_WRITE },  /* Mimir, Cortex, Grafana Cloud */
	{ "/v1/metrics", PUSH_OTLP },
};

int push_kind_of(const char *url, enum push_kind *ret)
{
	size_t n = strcspn(url, "?#");

	while (n && url[n - 1] == '/')
		n--;
	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		size_t m = strlen(ends[i].end);

		if (n > m && memcmp(url + n - m, ends[i].end, m) == 0) {
			*ret = ends[i].kind;
			return 0;
		}
	}
	return -EINVAL;
}

static const char *behind_scheme(const char *url)
{
	if (strncasecmp(url, "http://", 7) == 0)
		return url + 7;
	return strncasecmp(url, "https://", 8) == 0 ? url + 8 : NULL;
}

bool url_same_host(const char *a, const char *b)
{
	const char *x = behind_scheme(a), *y = behind_scheme(b);
	size_t n;

	if (!x || !y || x - a != y - b)
		return false;
	n = strcspn(x, "/?#");
	return n == strcspn(y, "/?#") && strncasecmp(x, y, n) == 0;
}

/* The address itself is in no message before it is known to hold no password. */
static int refuse(struct err *e, const char *why, const char *hint)
{
	err_set(e, -EINVAL, "cannot send to this address: %s", why);
	err_hint(e, "%s", hint);
	return -EINVAL;
}

int url_check(const char *url, enum push_kind kind, char **ret_url, char *shown, size_t size,
	      struct err *e)
{
	static const char example[] = "an address is like http://localhost:9090/api/v1/write";
	const char *host = behind_scheme(url);
	size_t n = strlen(url), authority;
	char plain[URL_MAX];
	int made;

	if (!host)
		return refuse(e, "it does not begin with http:// or https://", example);
	if (n >= URL_MAX - sizeof("/v1/metrics"))
		return refuse(e, "it is too long", example);
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)url[i] <= ' ' || url[i] == 127)
			return refuse(e, "there is a blank or control character in it", example);
	authority = strcspn(host, "/?#");
	if (!authority)
		return refuse(e, "it has no host", example);
	if (memchr(host, '@', authority))
		return refuse(e,
			      "it has a user in it, and everybody sees the arguments of a program",
			      "put user:password into a file, and name it with --push-user-file");
	snprintf(plain, sizeof(plain), "%.*s", (int)strcspn(url, "?#"), url);
	text_safe_copy(shown, size, plain);
	if (kind == PUSH_OTLP && (!host[authority] || strcmp(host + authority, "/") == 0))
		made = asprintf(ret_url, "%.*s/v1/metrics", (int)(host + authority - url), url);
	else
		made = asprintf(ret_url, "%s", url);
	if (made < 0) {
		*ret_url = NULL;
		return err_set(e, -ENOMEM, "out of memory");
	}
	return 0;
}
