/* SPDX-License-Identifier: MIT
 *
 *	GET /metrics?x=1 HTTP/1.1
 *	Host: localhost:9815
 *	Accept: application/openmetrics-text;version=1.0.0;q=0.8,text/plain;version=0.0.4;q=0.5
 *
 * From anybody who reaches the port: nothing is trusted, what is too long is refused.
 */
#include "agent/http.h"

#include "base/scan.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static bool copy_part(char *dst, size_t size, const char *p, size_t n)
{
	if (n >= size)
		return false;
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)p[i] < 0x20 || p[i] == 0x7f)
			return false;
	memcpy(dst, p, n);
	dst[n] = '\0';
	return true;
}

static bool parse_first(struct scan line, struct http_head *ret)
{
	const char *method, *target, *version;
	size_t n, target_n, version_n, path_n = 0;

	if (!scan_word(&line, &method, &n) || !scan_word(&line, &target, &target_n) ||
	    !scan_word(&line, &version, &version_n) || version_n != 8 ||
	    memcmp(version, "HTTP/1.", 7) != 0 || target_n < 1 || target[0] != '/')
		return false;
	ret->head_only = n == 4 && memcmp(method, "HEAD", 4) == 0;
	ret->other = !ret->head_only && !(n == 3 && memcmp(method, "GET", 3) == 0);
	while (path_n < target_n && target[path_n] != '?' && target[path_n] != '#')
		path_n++;
	return copy_part(ret->path, sizeof(ret->path), target, path_n);
}

static bool is_header(const struct scan *line, const char *name, struct scan *value)
{
	size_t n = strlen(name);

	if ((size_t)(line->end - line->p) <= n || strncasecmp(line->p, name, n) != 0 ||
	    line->p[n] != ':')
		return false;
	*value = (struct scan){ line->p + n + 1, line->end };
	scan_blank(value);
	while (value->end > value->p && (value->end[-1] == ' ' || value->end[-1] == '\t'))
		value->end--;
	return true;
}

static void cut_return(struct scan *line)
{
	if (line->end > line->p && line->end[-1] == '\r')
		line->end--;
}

enum http_parsed http_parse(const char *text, size_t n, struct http_head *ret)
{
	struct scan s = scan_of(text, n), line, value;
	bool first = true;

	*ret = (struct http_head){ 0 };
	if (memchr(text, '\0', n))
		return HTTP_BAD;
	while (memchr(s.p, '\n', (size_t)(s.end - s.p)) && scan_line(&s, &line)) {
		cut_return(&line);
		if (first && !parse_first(line, ret))
			return HTTP_BAD;
		if (!first && line.p == line.end)
			return HTTP_OK;
		/* One that is too long counts as none, for what it asks for is a wish. */
		if (!first && is_header(&line, "Accept", &value) && !ret->accept[0])
			(void)copy_part(ret->accept, sizeof(ret->accept), value.p,
					(size_t)(value.end - value.p));
		if (!first && is_header(&line, "Host", &value) &&
		    !copy_part(ret->host, sizeof(ret->host), value.p,
			       (size_t)(value.end - value.p)))
			return HTTP_BAD;
		first = false;
	}
	return n >= HTTP_REQUEST_MAX ? HTTP_BAD : HTTP_MORE;
}

bool http_host_is_local(const char *host)
{
	char name[256];
	size_t n;

	if (host[0] == '[')
		return strncmp(host, "[::1]", 5) == 0 && (!host[5] || host[5] == ':');
	n = strcspn(host, ":");
	snprintf(name, sizeof(name), "%.*s", (int)(n < 255 ? n : 255), host);
	return strcasecmp(name, "localhost") == 0 ||
	       (strncmp(name, "127.", 4) == 0 && strspn(name, "0123456789.") == strlen(name));
}

bool http_split(const char *at, char *host, size_t host_size, char *port, size_t port_size)
{
	const char *colon = strrchr(at, ':');
	size_t n;

	if (!colon || !colon[1] || strspn(colon + 1, "0123456789") != strlen(colon + 1))
		return false;
	n = (size_t)(colon - at);
	if (n >= 2 && at[0] == '[' && at[n - 1] == ']') {
		at++;
		n -= 2;
	} else if (memchr(at, ':', n)) {
		return false; /* "::1:80" may be either */
	}
	return copy_part(host, host_size, at, n) &&
	       copy_part(port, port_size, colon + 1, strlen(colon + 1));
}
