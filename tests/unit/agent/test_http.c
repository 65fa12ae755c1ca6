/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "agent/http.h"
#include "base/auto.h"
#include "base/err.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static void requests(void **state)
{
	struct http_head h;

	(void)state;
#define PARSE(text) http_parse(text, strlen(text), &h)
	assert_int_equal(PARSE("GET /metrics?a=b HTTP/1.1\r\nHost: x:1\r\nACCEPT:  a/b \r\n\r\n"),
			 HTTP_OK);
	assert_string_equal(h.path, "/metrics");
	assert_string_equal(h.host, "x:1");
	assert_string_equal(h.accept, "a/b");
	assert_false(h.other || h.head_only);
	assert_int_equal(PARSE("HEAD / HTTP/1.0\n\n"), HTTP_OK);
	assert_true(h.head_only);
	assert_int_equal(PARSE("POST /metrics HTTP/1.1\r\n\r\n"), HTTP_OK);
	assert_true(h.other);
	assert_int_equal(PARSE("GET / HTTP/1.1\r\nHost: x\r\n"), HTTP_MORE);
	assert_int_equal(PARSE("GET / HT"), HTTP_MORE);
	assert_int_equal(PARSE(""), HTTP_MORE);
	assert_int_equal(PARSE("\r\n\r\n"), HTTP_BAD);
	assert_int_equal(PARSE("GET metrics HTTP/1.1\r\n\r\n"), HTTP_BAD);
	assert_int_equal(PARSE("GET / HTTP/2.0\r\n\r\n"), HTTP_BAD);
	assert_int_equal(PARSE("GET /\r\n\r\n"), HTTP_BAD);
	assert_int_equal(http_parse("GET /\0 HTTP/1.1\r\n\r\n", 20, &h), HTTP_BAD);
#undef PARSE
}

static void too_long(void **state)
{
	static char text[HTTP_REQUEST_MAX + 1];
	struct http_head h;

	(void)state;
	memset(text, 'a', sizeof(text));
	memcpy(text, "GET /", 5);
	assert_int_equal(http_parse(text, HTTP_REQUEST_MAX, &h), HTTP_BAD);
	memcpy(text + 1000, " HTTP/1.1\r\n\r\n", 13);
	assert_int_equal(http_parse(text, 1013, &h), HTTP_BAD);
}

static void hosts(void **state)
{
	char host[64], port[16];

	(void)state;
	assert_true(http_host_is_local("localhost"));
	assert_true(http_host_is_local("LOCALHOST:9815"));
	assert_true(http_host_is_local("127.0.0.1:80"));
	assert_true(http_host_is_local("[::1]:9815"));
	assert_false(http_host_is_local("127.evil.example"));
	assert_false(http_host_is_local("evil.example:80"));
	assert_false(http_host_is_local("[::1].evil"));
	assert_false(http_host_is_local("localhost.evil"));
	assert_true(http_split("127.0.0.1:0", host, sizeof(host), port, sizeof(port)));
	assert_string_equal(host, "127.0.0.1");
	assert_true(http_split("[::1]:9815", host, sizeof(host), port, sizeof(port)));
	assert_string_equal(host, "::1");
	assert_string_equal(port, "9815");
	assert_true(http_split(":9815", host, sizeof(host), port, sizeof(port)));
	assert_string_equal(host, "");
	assert_false(http_split("localhost", host, sizeof(host), port, sizeof(port)));
	assert_false(http_split("::1:80", host, sizeof(host), port, sizeof(port)));
	assert_false(http_split("a:", host, sizeof(host), port, sizeof(port)));
	assert_false(http_split("a:b", host, sizeof(host), port, sizeof(port)));
}

static void echo(const struct http_request *q, struct http_answer *a, void *arg)
{
	(void)arg;
	a->status = strcmp(q->path, "/none") == 0 ? 404 : 200;
	a->type = "text/plain";
	/* more than a socket takes at once */
	for (int i = 0; i < 100000 && strcmp(q->path, "/much") == 0; i++)
		buf_str(&a->body, "0123456789abcdef");
	buf_printf(&a->body, "%s %s", q->path, q->accept ? q->accept : "-");
}

static int visit(const struct http *h)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	const char *port = strrchr(http_address(h), ':') + 1;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	a.sin_port = htons((uint16_t)strtol(port, NULL, 10));
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (void *)&a, sizeof(a)), 0);
	return fd;
}

static void ask(const struct http *h, const char *request, struct buf *out)
{
	int fd = visit(h);
	char part[4096];
	ssize_t n;

	assert_int_equal(write(fd, request, strlen(request)), (ssize_t)strlen(request));
	while ((n = read(fd, part, sizeof(part))) > 0)
		buf_put(out, part, (size_t)n);
	close(fd);
}

static void answers(void **state)
{
	struct err e = { 0 };
	struct http *h;
	int idle[8];

	(void)state;
	assert_int_equal(http_start("127.0.0.1:0", echo, NULL, &h, &e), 0);
	assert_true(http_is_local(h));
	/* some who never ask keep nobody else waiting */
	for (size_t i = 0; i < ARRAY_LEN(idle); i++)
		idle[i] = visit(h);
	{
		auto_done(buf) struct buf a = { 0 }, b = { 0 }, c = { 0 }, d = { 0 }, much = { 0 };

		ask(h, "GET /x HTTP/1.1\r\nHost: localhost\r\nAccept: y\r\n\r\n", &a);
		assert_non_null(strstr(buf_text(&a), "HTTP/1.1 200 OK\r\n"));
		assert_non_null(strstr(buf_text(&a), "Content-Length: 4\r\n"));
		assert_non_null(strstr(buf_text(&a), "\r\n\r\n/x y"));
		ask(h, "HEAD /none HTTP/1.1\r\n\r\n", &b);
		assert_non_null(strstr(buf_text(&b), "HTTP/1.1 404 Not Found\r\n"));
		assert_string_equal(strstr(buf_text(&b), "\r\n\r\n"), "\r\n\r\n");
		ask(h, "DELETE / HTTP/1.1\r\n\r\n", &c);
		assert_non_null(strstr(buf_text(&c), " 405 "));
		/* a page of another site whose name was made to lead here */
		ask(h, "GET / HTTP/1.1\r\nHost: evil.example:80\r\n\r\n", &d);
		assert_non_null(strstr(buf_text(&d), " 403 "));
		ask(h, "GET /much HTTP/1.1\r\n\r\n", &much);
		assert_true(much.len > 1600000);
		assert_memory_equal(much.data + much.len - 7, "/much -", 7);
	}
	for (size_t i = 0; i < ARRAY_LEN(idle); i++)
		close(idle[i]);
	http_stop(h);
}

static void bad_places(void **state)
{
	struct http *h, *second;
	struct err e = { 0 }, taken = { 0 };

	(void)state;
	assert_true(http_start("nonsense", echo, NULL, &h, &e) < 0);
	assert_non_null(strstr(e.text, "'nonsense'"));
	assert_true(e.hint[0]);
	e = (struct err){ 0 };
	assert_int_equal(http_start("127.0.0.1:0", echo, NULL, &h, &e), 0);
	assert_true(http_start(http_address(h), echo, NULL, &second, &taken) < 0);
	assert_non_null(strstr(taken.text, http_address(h)));
	http_stop(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests), cmocka_unit_test(too_long),   cmocka_unit_test(hosts),
		cmocka_unit_test(answers),  cmocka_unit_test(bad_places),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
