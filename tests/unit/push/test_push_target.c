/* SPDX-License-Identifier: MIT
 *
 * The thread of an address: samples are handed over, counted and sent from two sides at once. Also run with ThreadSanitizer.
 */
#include "../unit.h"

#include "base/clock.h"
#include "base/err.h"
#include "push/push.h"

#include <arpa/inet.h>
#include <ftw.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PATIENCE_S = 60, ROUNDS = 40, SERIES = 25 };

static const struct series_family steps = { .name = "spotter_steps_total",
					    .type = SERIES_COUNTER,
					    .unit = "",
					    .help = "",
					    .opentelemetry = "" };

/* Takes requests, one connection after the other; the first ones it refuses for now. */
struct engine {
	int listening;
	int port;
	atomic_int refuse, requests;
	pthread_t thread;
};

/* One request of a connection: false at its end. */
static bool take_request(struct engine *g, int fd)
{
	static const char length[] = "Content-Length: ";
	char text[65536];
	size_t n = 0, whole = 0;
	const char *answer = "HTTP/1.1 204 No Content\r\n\r\n";

	while (!whole || n < whole) {
		ssize_t got = read(fd, text + n, sizeof(text) - 1 - n);
		const char *end, *body;

		if (got <= 0)
			return false;
		n += (size_t)got;
		text[n] = '\0';
		end = whole ? NULL : strstr(text, "\r\n\r\n");
		body = end ? strstr(text, length) : NULL;
		if (body)
			whole =
			    (size_t)(end - text) + 4 + strtoul(body + sizeof(length) - 1, NULL, 10);
		assert_true(whole < sizeof(text));
	}
	atomic_fetch_add(&g->requests, 1);
	if (atomic_fetch_sub(&g->refuse, 1) > 0)
		answer = "HTTP/1.1 503 Later\r\nContent-Length: 0\r\n\r\n";
	return write(fd, answer, strlen(answer)) == (ssize_t)strlen(answer);
}

static void *serve(void *arg)
{
	struct engine *g = arg;
	int fd;

	while ((fd = accept(g->listening, NULL, NULL)) >= 0) {
		while (take_request(g, fd))
			;
		close(fd);
	}
	return NULL;
}

static void engine_open(struct engine *g, int refuse)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t size = sizeof(at);

	g->listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(g->listening >= 0);
	assert_int_equal(bind(g->listening, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(g->listening, 8), 0);
	assert_int_equal(getsockname(g->listening, (struct sockaddr *)&at, &size), 0);
	g->port = ntohs(at.sin_port);
	atomic_init(&g->refuse, refuse);
	atomic_init(&g->requests, 0);
	assert_int_equal(pthread_create(&g->thread, NULL, serve, g), 0);
}

static void engine_close(struct engine *g)
{
	shutdown(g->listening, SHUT_RDWR);
	pthread_join(g->thread, NULL);
	close(g->listening);
}

static void give(struct push *p, int value)
{
	char number[16];
	struct series_sample s = { .family = &steps,
				   .name = steps.name,
				   .value = value,
				   .time_ms = 1700000000000 + value * 1000 };

	for (int i = 0; i < SERIES; i++) {
		snprintf(number, sizeof(number), "%d", i);
		s.n_labels = 0;
		s.labels[s.n_labels++] = (struct series_label){ "node", "n1" };
		s.labels[s.n_labels++] = (struct series_label){ "series", number };
		assert_true(push_take(&s, p));
	}
	push_flush(p);
}

static struct push *open_push(const struct engine *g, const char *queue)
{
	char url[80];
	struct push_options o = { .addresses = { { PUSH_REMOTE_WRITE, url } },
				  .addresses_n = 1,
				  .queue = queue,
				  .backoff_ns = NS_PER_MS,
				  .timeout_ns = PATIENCE_S * NS_PER_S };
	struct push *p = NULL;
	struct err e = { 0 };

	snprintf(url, sizeof(url), "http://127.0.0.1:%d/api/v1/write", g->port);
	if (push_open(&o, &p, &e) < 0)
		fail_msg("%s", e.text);
	return p;
}

/* False: it cannot send anything here. */
static bool wait_sent(struct push *p, uint64_t samples)
{
	int64_t end = clock_mono_ns() + PATIENCE_S * NS_PER_S;
	struct push_stats s;

	do {
		assert_true(push_stats(p, 0, &s));
		if (strstr(s.problem, "libcurl is not installed"))
			return false;
		usleep(1000);
	} while (s.sent_samples < samples && clock_mono_ns() < end);
	assert_int_equal(s.sent_samples, samples);
	return true;
}

static uint64_t dropped(const struct push_stats *s)
{
	uint64_t sum = 0;

	for (int i = 0; i < PUSH_DROPS; i++)
		sum += s->dropped_samples[i];
	return sum;
}

/* Handed over while it is sent, and while the other side does not want it yet. */
static void all_arrive(const char *queue)
{
	struct push_stats last[PUSH_ADDRESSES_MAX], s;
	struct engine g;
	struct push *p;
	bool can;

	engine_open(&g, 3);
	p = open_push(&g, queue);
	for (int i = 0; i < ROUNDS; i++) {
		give(p, i);
		assert_true(push_stats(p, 0, &s));
		assert_true(s.sent_samples <= (uint64_t)(i + 1) * SERIES);
	}
	can = wait_sent(p, ROUNDS * SERIES);
	push_close(p, NS_PER_S, last);
	engine_close(&g);
	if (!can)
		skip();
	assert_int_equal(last[0].sent_samples, ROUNDS * SERIES);
	assert_int_equal(dropped(&last[0]), 0);
	assert_int_equal(last[0].retries, 3);
	assert_int_equal(atomic_load(&g.requests), last[0].sent_requests + 3);
}

static void from_memory(void **state)
{
	(void)state;
	all_arrive(NULL);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	(void)kind;
	(void)at;
	return remove(path);
}

static void from_disk(void **state)
{
	const char *top = getenv("TMPDIR");
	char folder[200];

	(void)state;
	snprintf(folder, sizeof(folder), "%s/spotter-target-XXXXXX", top && top[0] ? top : "/tmp");
	assert_non_null(mkdtemp(folder));
	all_arrive(folder);
	assert_int_equal(nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

/* Nobody takes it: the end comes all the same, and what was not sent is counted. */
static void an_end_in_the_middle(void **state)
{
	struct push_stats last[PUSH_ADDRESSES_MAX];
	struct engine g;
	struct push *p;

	(void)state;
	engine_open(&g, 1 << 20);
	p = open_push(&g, NULL);
	for (int i = 0; i < ROUNDS; i++)
		give(p, i);
	push_close(p, 20 * NS_PER_MS, last);
	assert_int_equal(last[0].taken_samples, ROUNDS * SERIES);
	assert_int_equal(last[0].sent_samples, 0);
	/* less where the thread did not get to what was handed over last */
	assert_true(dropped(&last[0]) <= ROUNDS * SERIES);
	engine_close(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(from_memory),
		cmocka_unit_test(from_disk),
		cmocka_unit_test(an_end_in_the_middle),
	};

	setenv("no_proxy", "*", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
