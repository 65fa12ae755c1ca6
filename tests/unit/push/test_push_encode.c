/* SPDX-License-Identifier: MIT
 *
 * Requests byte by byte, answers of collectors, addresses and statuses. check_encoders.py has them read by others.
 */
#include "../unit.h"

#include "base/auto.h"
#include "base/err.h"
#include "push/client.h"
#include "push/otlp.h"
#include "push/remote_write.h"
#include "push/snappy.h"
#include "push/url.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

static const struct series_family up = {
	.name = "up", .type = SERIES_GAUGE, .unit = "", .help = "", .opentelemetry = ""
};

static struct series_sample sample(double value)
{
	return (struct series_sample){ .family = &up,
				       .name = "up",
				       .labels = { { "job", "a" } },
				       .n_labels = 1,
				       .value = value,
				       .time_ms = 300 };
}

static void remote_write_bytes(void **state)
{
	static const char expected[] =
	    "\x2a\xa4"                           /* 42 bytes: a literal of 42 */
	    "\x0a\x28"                           /* timeseries */
	    "\x0a\x0e\x0a\x08__name__\x12\x02up" /* label */
	    "\x0a\x08\x0a\x03job\x12\x01"
	    "a"
	    "\x12\x0c\x09\x18\x2d\x44\x54\xfb\x21\x09\x40\x10\xac\x02"; /* pi at 300 */
	auto_done(remote_write) struct remote_write w = { 0 };
	auto_done(buf) struct buf out = { 0 };
	struct series_sample s = sample(M_PI), none = sample(NAN);

	(void)state;
	assert_false(remote_write_add(&w, &none));
	assert_true(remote_write_add(&w, &s));
	remote_write_end(&w, &out);
	assert_int_equal(out.len, sizeof(expected) - 1);
	assert_memory_equal(out.data, expected, sizeof(expected) - 1);
	buf_reset(&out);
	assert_true(remote_write_add(&w, &s));
	remote_write_end(&w, &out);
	assert_int_equal(out.len, sizeof(expected) - 1); /* the next one begins anew */
}

static void otlp_nothing(void **state)
{
	auto_done(otlp) struct otlp o = { 0 };
	auto_done(buf) struct buf out = { 0 };
	struct series_sample none = sample(NAN);
	struct push_resource who = { 0 };

	(void)state;
	assert_false(otlp_add(&o, &none));
	otlp_end(&o, &who, &out);
	assert_int_equal(out.len, 0);
}

/* More buckets than we keep, counts that fall, bounds that are no numbers: a valid message all the same. */
static void otlp_odd_histogram(void **state)
{
	static const struct series_family f = { .name = "h_seconds",
						.type = SERIES_HISTOGRAM,
						.unit = "seconds" };
	auto_done(otlp) struct otlp o = { 0 };
	auto_done(buf) struct buf out = { 0 };
	struct push_resource who = { .host = "h" };

	(void)state;
	for (int i = 0; i < 3 * OTLP_BOUNDS_MAX; i++) {
		char le[16];
		struct series_sample s = { .family = &f,
					   .name = "h_seconds_bucket",
					   .part = SERIES_BUCKET,
					   .labels = { { "le", i % 7 ? le : "what" } },
					   .n_labels = 1,
					   .value = i % 5 ? i : -i };

		snprintf(le, sizeof(le), "%d", i);
		assert_true(otlp_add(&o, &s));
	}
	otlp_end(&o, &who, &out);
	assert_true(buf_ok(&out) && out.len > OTLP_BOUNDS_MAX * 16);
}

static void otlp_answers(void **state)
{
	static const struct {
		const char *bytes;
		size_t n;
		uint64_t rejected;
	} rows[] = {
		{ "", 0, 0 },
		{ "\x0a\x02\x08\x05", 4, 5 },
		{ "\x0a\x07\x12\x03"
		  "why\x08\x05",
		  9, 5 },
		{ "\x12\x01x\x0a\x02\x08\x05", 7, 5 },
		{ "\x0a\x00", 2, 0 },
		{ "\x0a\x7f\x08\x05", 4, 0 },                 /* longer than there is */
		{ "\x0a\x02\x08", 3, 0 },                     /* cut */
		{ "\x0a\x06\x08\xff\xff\xff\xff\x7f", 8, 0 }, /* absurd */
		{ "\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, 0 }, /* further than memory */
		{ "<html>", 6, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_int_equal(otlp_rejected(rows[i].bytes, rows[i].n), rows[i].rejected);
}

static void addresses(void **state)
{
	static const struct {
		const char *url;
		int kind; /* -1: cannot tell */
	} kinds[] = {
		{ "http://h:9090/api/v1/write", PUSH_REMOTE_WRITE },
		{ "http://h/insert/0/prometheus/api/v1/write/", PUSH_REMOTE_WRITE },
		{ "https://h/api/v1/push?x=/v1/metrics", PUSH_REMOTE_WRITE },
		{ "http://h:4318/v1/metrics", PUSH_OTLP },
		{ "http://h:4318/", -1 },
		{ "", -1 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		enum push_kind kind = PUSH_OTLP;
		int error = push_kind_of(kinds[i].url, &kind);

		assert_int_equal(error, kinds[i].kind < 0 ? -EINVAL : 0);
		if (!error)
			assert_int_equal((int)kind, kinds[i].kind);
	}
}

static void checked(const char *url, enum push_kind kind, const char *made, const char *shown)
{
	auto_free char *got = NULL;
	char text[64];

	assert_int_equal(url_check(url, kind, &got, text, sizeof(text), NULL), 0);
	assert_string_equal(got, made);
	assert_string_equal(text, shown);
}

static void refused(const char *url, const char *why)
{
	auto_free char *got = NULL;
	struct err e = { 0 };
	char text[64];

	assert_int_equal(url_check(url, PUSH_OTLP, &got, text, sizeof(text), &e), -EINVAL);
	assert_non_null(strstr(e.text, why));
	assert_null(strstr(e.text, "secret"));
	assert_null(got);
}

static void addresses_checked(void **state)
{
	char long_one[4096];

	(void)state;
	checked("http://h:4318", PUSH_OTLP, "http://h:4318/v1/metrics", "http://h:4318");
	checked("http://h:4318/", PUSH_OTLP, "http://h:4318/v1/metrics", "http://h:4318/");
	checked("HTTPS://h/otlp/v1/metrics?key=secret", PUSH_OTLP,
		"HTTPS://h/otlp/v1/metrics?key=secret", "HTTPS://h/otlp/v1/metrics");
	checked("http://h:9090", PUSH_REMOTE_WRITE, "http://h:9090", "http://h:9090");
	refused("h:9090/api/v1/write", "does not begin with http");
	refused("file:///etc/secret", "does not begin with http");
	refused("http://", "no host");
	refused("http:///x", "no host");
	refused("http://user:secret@h/", "a user in it");
	refused("http://h/a b", "blank");
	refused("http://h/\r\nX: secret", "control character");
	memset(long_one, 'x', sizeof(long_one) - 1);
	long_one[sizeof(long_one) - 1] = 0;
	memcpy(long_one, "http://", 7);
	refused(long_one, "too long");
}

static void statuses(void **state)
{
	static const struct {
		long status;
		enum client_verdict remote_write, otlp;
	} rows[] = {
		{ 200, CLIENT_TAKEN, CLIENT_TAKEN },     { 204, CLIENT_TAKEN, CLIENT_TAKEN },
		{ 301, CLIENT_AGAIN, CLIENT_AGAIN },     { 400, CLIENT_REFUSED, CLIENT_REFUSED },
		{ 401, CLIENT_REFUSED, CLIENT_REFUSED }, { 413, CLIENT_REFUSED, CLIENT_REFUSED },
		{ 429, CLIENT_AGAIN, CLIENT_AGAIN },     { 500, CLIENT_AGAIN, CLIENT_REFUSED },
		{ 502, CLIENT_AGAIN, CLIENT_AGAIN },     { 503, CLIENT_AGAIN, CLIENT_AGAIN },
		{ 504, CLIENT_AGAIN, CLIENT_AGAIN },     { 599, CLIENT_AGAIN, CLIENT_REFUSED },
		{ 100, CLIENT_AGAIN, CLIENT_AGAIN },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(client_judge(PUSH_REMOTE_WRITE, rows[i].status),
				 rows[i].remote_write);
		assert_int_equal(client_judge(PUSH_OTLP, rows[i].status), rows[i].otlp);
	}
}

static void options(void **state)
{
	static const struct {
		const char *header, *why;
	} rows[] = {
		{ "X-Scope-OrgID: team", NULL },
		{ "Authorization: Bearer secret", "not to be set by hand" },
		{ "content-TYPE: x", "not to be set by hand" },
		{ "secret", "'Name: value'" },
		{ "A: b\r\nX: secret", "'Name: value'" },
		{ ": secret", "'Name: value'" },
		{ "two words: secret", "'Name: value'" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct push_address a = { PUSH_OTLP, "http://h" };
		struct push_options o = { .headers = &rows[i].header, .headers_n = 1 };
		struct client *c = NULL;
		struct err e = { 0 };
		int error = client_open(&o, &a, &c, &e);

		assert_int_equal(error, rows[i].why ? -EINVAL : 0);
		if (rows[i].why)
			assert_non_null(strstr(e.text, rows[i].why));
		assert_null(strstr(e.text, "secret"));
		client_close(c);
	}
}

static void files_of_secrets(void **state)
{
	struct push_address a = { PUSH_OTLP, "http://h" };
	struct push_options both = { .token_file = "/dev/null", .user_file = "/dev/null" },
			    gone = { .token_file = "/nowhere/token" };
	struct client *c = NULL;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(client_open(&both, &a, &c, &e), -EINVAL);
	e = (struct err){ 0 };
	assert_int_equal(client_open(&gone, &a, &c, &e), -ENOENT);
	assert_non_null(strstr(e.text, "/nowhere/token"));
}

static void two_hosts(void **state)
{
	struct push_options o = { .addresses = { { PUSH_REMOTE_WRITE, "https://h:1/api/v1/write" },
						 { PUSH_OTLP, "https://H:1/otlp" } },
				  .addresses_n = 2,
				  .token_file = "/dev/null" };
	struct err e = { 0 };

	(void)state;
	assert_int_equal(push_check(&o, &e), 0);
	o.addresses[1].url = "http://h:1/otlp";
	assert_int_equal(push_check(&o, &e), -EINVAL);
	assert_non_null(strstr(e.text, "credentials"));
	o.addresses[1].url = "https://h:12/otlp";
	assert_int_equal(push_check(&o, NULL), -EINVAL);
	o.token_file = NULL;
	assert_int_equal(push_check(&o, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(remote_write_bytes), cmocka_unit_test(otlp_nothing),
		cmocka_unit_test(otlp_odd_histogram), cmocka_unit_test(otlp_answers),
		cmocka_unit_test(addresses),          cmocka_unit_test(addresses_checked),
		cmocka_unit_test(statuses),           cmocka_unit_test(options),
		cmocka_unit_test(files_of_secrets),   cmocka_unit_test(two_hosts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
