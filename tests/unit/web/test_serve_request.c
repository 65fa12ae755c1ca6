/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "base/auto.h"
#include "base/err.h"
#include "web/serve_listen.h"
#include "web/serve_request.h"

#include <errno.h>

#define TOKEN "0123456789abcdef0123456789abcdef"
#define OTHER "0123456789abcdef0123456789abcdee"

static const struct serve_self self = {
	.port = 7768,
	.names = { "127.0.0.1:7768", "localhost:7768", "[::1]:7768" },
	.n_names = 3,
	.token = TOKEN,
	.cookie = "spotter-7768",
};

/* A request that gets what it wants; each test changes one thing. */
static const struct serve_request good = {
	.method = "GET",
	.target = "/",
	.host = "127.0.0.1:7768",
	.cookie = "spotter-7768=" TOKEN,
};

static struct serve_decision decide(struct serve_request r)
{
	struct serve_decision d = serve_decide(&self, &r);

	/* What is refused says why, and gets nothing else. */
	if (d.route == ROUTE_NONE) {
		assert_true(d.status >= 400 && d.status < 500);
		assert_non_null(d.why);
		assert_string_equal(d.run, "");
	} else {
		assert_true(d.status == 200 || d.status == 303);
	}
	return d;
}

static void routes(void **state)
{
	static const struct {
		const char *target;
		enum serve_route route;
		const char *run;
	} rows[] = {
		{ "/", ROUTE_LIST_PAGE, "" },
		{ "/run/20261116-085238-dc81", ROUTE_RUN_PAGE, "20261116-085238-dc81" },
		{ "/run/a.b_c-D", ROUTE_RUN_PAGE, "a.b_c-D" },
		{ "/app.js", ROUTE_APP, "" },
		{ "/serve.js", ROUTE_SCRIPT, "" },
		{ "/app.css", ROUTE_STYLE, "" },
		{ "/api/runs", ROUTE_RUNS, "" },
		{ "/api/run/x", ROUTE_RUN, "x" },
		{ "/events", ROUTE_RUNS_EVENTS, "" },
		{ "/events/x", ROUTE_RUN_EVENTS, "x" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct serve_request r = good;
		struct serve_decision d;

		r.target = rows[i].target;
		d = decide(r);
		assert_int_equal(d.route, rows[i].route);
		assert_int_equal(d.status, 200);
		assert_string_equal(d.run, rows[i].run);
	}
}

static void no_way_out_of_the_folder(void **state)
{
	static const char *const targets[] = {
		"/..",
		"/../",
		"/run/",
		"/run/..",
		"/run/.",
		"/run/.hidden",
		"/run/../../etc/passwd",
		"/run/a/../b",
		"/run/a/b",
		"//run/a",
		"/run//etc/passwd",
		"/run/%2e%2e",
		"/run/%2fetc",
		"/run/a%00",
		"/run/a%2fb",
		"/run/a\\b",
		"/run/a;b",
		"/run/a?",
		"/run/a?x=1",
		"/run/a#b",
		"/api/run/",
		"/api/run/..",
		"/api/run/a%2e",
		"/events/",
		"/events/../x",
		"/api",
		"/app.js/",
		"/app.jsx",
		"/APP.JS",
		"/favicon.ico",
		"/run",
		"/index.html",
		"/?",
		"/?x",
		"/?token",
		"/app.js?token=" TOKEN,
		"/api/runs?token=" TOKEN,
		"/run/\xc3\xa9",
		"/run/a b",
		"/run/a\n",
		"/run/0123456789012345678901234567890123456789",
		"*",
		"",
		"run/a",
		"http://127.0.0.1:7768/",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(targets); i++) {
		struct serve_request r = good;

		r.target = targets[i];
		if (decide(r).route != ROUTE_NONE)
			fail_msg("'%s' leads somewhere", targets[i]);
	}
}

static void addresses_have_an_end(void **state)
{
	char target[SERVE_TARGET_MOST + 2];
	struct serve_request r = good;

	(void)state;
	memset(target, 'a', sizeof(target));
	memcpy(target, "/run/", 5);
	target[SERVE_TARGET_MOST + 1] = '\0';
	r.target = target;
	assert_int_equal(decide(r).status, 414);
	target[SERVE_TARGET_MOST] = '\0';
	assert_int_equal(decide(r).status, 404);
	target[5 + SERVE_ID_MOST] = '\0';
	assert_int_equal(decide(r).route, ROUTE_RUN_PAGE);
	r.target = NULL;
	assert_int_equal(decide(r).route, ROUTE_NONE);
}

static void methods(void **state)
{
	static const char *const refused[] = { "POST",  "PUT",   "DELETE", "OPTIONS", "CONNECT",
					       "TRACE", "PATCH", "get",    "GETS",    "" };
	struct serve_request r = good;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
		r.method = refused[i];
		assert_int_equal(decide(r).status, 405);
	}
	r.method = NULL;
	assert_int_equal(decide(r).status, 405);
	r.method = "HEAD";
	assert_int_equal(decide(r).route, ROUTE_LIST_PAGE);
	r.target = "/events";
	assert_int_equal(decide(r).status, 405);
}

static void hosts(void **state)
{
	static const char *const ours[] = { "127.0.0.1:7768", "localhost:7768", "LocalHost:7768",
					    "[::1]:7768" };
	static const char *const not_ours[] = {
		"",
		"evil.example:7768",
		"127.0.0.1",
		"127.0.0.1:80",
		"127.0.0.1:77680",
		"localhost",
		"localhost:",
		"localhost.:7768",
		"localhost:7768.evil.example",
		"evil.localhost:7768",
		"127.0.0.2:7768",
		"[::1]",
		"::1:7768",
		"0.0.0.0:7768",
		"127.0.0.1:7768 ",
		"127.1:7768",
		"127.0.0.1:7768, evil.example",
		"[::ffff:127.0.0.1]:7768",
		"2130706433:7768",
	};
	struct serve_request r = good;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(ours); i++) {
		r.host = ours[i];
		assert_int_equal(decide(r).route, ROUTE_LIST_PAGE);
	}
	for (size_t i = 0; i < ARRAY_LEN(not_ours); i++) {
		r.host = not_ours[i];
		if (decide(r).status != 403)
			fail_msg("Host '%s' is let in", not_ours[i]);
	}
	r.host = NULL;
	assert_int_equal(decide(r).status, 403);
	r = good;
	r.doubled = true;
	assert_int_equal(decide(r).status, 403);
}

/* Where all addresses are heard any number may be asked for; a name may be made to lead here. */
static void any_address(void **state)
{
	struct serve_self all = self;
	struct serve_request r = good;

	(void)state;
	all.any_address = true;
	r.host = "10.1.2.3:7768";
	assert_int_equal(serve_decide(&all, &r).route, ROUTE_LIST_PAGE);
	r.host = "[fe80::1]:7768";
	assert_int_equal(serve_decide(&all, &r).route, ROUTE_LIST_PAGE);
	for (size_t i = 0; i < 7; i++) {
		static const char *const wrong[] = { "evil.example:7768",
						     "10.1.2.3:7767",
						     "10.1.2.3",
						     "10.1.2.3.evil.example:7768",
						     "[fe80::1:7768",
						     "[evil]:7768",
						     ":7768" };

		r.host = wrong[i];
		assert_int_equal(serve_decide(&all, &r).status, 403);
	}
}

static void origins(void **state)
{
	static const char *const not_ours[] = { "null",
						"",
						"http://evil.example",
						"https://127.0.0.1:7768",
						"http://127.0.0.1",
						"http://localhost:7768", /* Host says 127.0.0.1 */
						"http://127.0.0.1:7768/",
						"http://127.0.0.1:8888" };
	struct serve_request r = good;

	(void)state;
	r.origin = "http://127.0.0.1:7768";
	assert_int_equal(decide(r).route, ROUTE_LIST_PAGE);
	for (size_t i = 0; i < ARRAY_LEN(not_ours); i++) {
		r.origin = not_ours[i];
		assert_int_equal(decide(r).status, 403);
	}
}

static void sites(void **state)
{
	static const struct {
		const char *target, *site, *mode;
		enum serve_route route;
	} rows[] = {
		{ "/", "same-origin", "navigate", ROUTE_LIST_PAGE },
		{ "/", "none", "navigate", ROUTE_LIST_PAGE },
		{ "/api/runs", "same-origin", "cors", ROUTE_RUNS },
		{ "/events", "same-origin", "cors", ROUTE_RUNS_EVENTS },
		/* a link on a page of another port of this machine */
		{ "/run/x", "same-site", "navigate", ROUTE_RUN_PAGE },
		{ "/api/runs", "same-site", "navigate", ROUTE_NONE },
		{ "/api/runs", "same-site", "cors", ROUTE_NONE },
		{ "/app.js", "same-site", "no-cors", ROUTE_NONE },
		{ "/", "cross-site", "navigate", ROUTE_NONE },
		{ "/", "cross-site", "no-cors", ROUTE_NONE },
		{ "/app.js", "cross-site", "no-cors", ROUTE_NONE },
		{ "/events", "cross-site", "cors", ROUTE_NONE },
		{ "/", "elsewhere", "navigate", ROUTE_NONE },
		{ "/", "", NULL, ROUTE_NONE },
		/* who has the token may come from anywhere, but not be brought as a part of another page */
		{ "/?token=" TOKEN, "cross-site", "navigate", ROUTE_ENTER },
		{ "/?token=" TOKEN, "cross-site", "no-cors", ROUTE_NONE },
		{ "/?token=" TOKEN, "cross-site", NULL, ROUTE_NONE },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct serve_request r = good;

		r.target = rows[i].target;
		r.fetch_site = rows[i].site;
		r.fetch_mode = rows[i].mode;
		if (decide(r).route != rows[i].route)
			fail_msg("%s %s %s", rows[i].target, rows[i].site,
				 rows[i].mode ? rows[i].mode : "-");
	}
}

static void cookies(void **state)
{
	static const char *const ours[] = {
		"spotter-7768=" TOKEN,
		"a=b; spotter-7768=" TOKEN "; c=d",
		"spotter-7768=" OTHER "; spotter-7768=" TOKEN,
		";;  ;spotter-7768=" TOKEN ";",
	};
	static const char *const not_ours[] = {
		"",
		"spotter-7768",
		"spotter-7768=",
		"spotter-7768=" OTHER,
		"spotter-7769=" TOKEN,
		"spotter-7768=" TOKEN "0",
		"spotter-7768=0" TOKEN,
		"xspotter-7768=" TOKEN,
		"spotter-7768 =" TOKEN,
		"SPOTTER-7768=" TOKEN,
		"a=spotter-7768=" TOKEN,
		";",
		"=",
		TOKEN,
	};
	struct serve_request r = good;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(ours); i++) {
		r.cookie = ours[i];
		assert_int_equal(decide(r).route, ROUTE_LIST_PAGE);
	}
	for (size_t i = 0; i < ARRAY_LEN(not_ours); i++) {
		r.cookie = not_ours[i];
		if (decide(r).status != 403)
			fail_msg("Cookie '%s' is let in", not_ours[i]);
	}
	r.cookie = NULL;
	assert_int_equal(decide(r).status, 403);
	/* Without a token nobody learns what is there. */
	r.target = "/no/such/thing";
	assert_int_equal(decide(r).status, 403);
}

static void entering(void **state)
{
	struct serve_request r = good;
	struct serve_decision d;

	(void)state;
	r.cookie = NULL;
	r.target = "/?token=" TOKEN;
	d = decide(r);
	assert_int_equal(d.route, ROUTE_ENTER);
	assert_int_equal(d.status, 303);
	assert_string_equal(d.to, "/");
	assert_false(d.from_elsewhere);
	r.target = "/run/20261116-085238-dc81?token=" TOKEN;
	assert_string_equal(decide(r).to, "/run/20261116-085238-dc81");
	r.fetch_site = "cross-site";
	r.fetch_mode = "navigate";
	d = decide(r);
	assert_true(d.from_elsewhere && d.status == 200);
	r.fetch_site = NULL;
	r.target = "/?token=" OTHER;
	assert_int_equal(decide(r).status, 403);
	r.target = "/?token=" TOKEN "0";
	assert_int_equal(decide(r).status, 403);
	r.target = "/?token=";
	assert_int_equal(decide(r).status, 403);
	r.target = "/?Token=" TOKEN;
	assert_int_equal(decide(r).status, 403);
	/* With the cookie an old token does no harm; it leaves the address. */
	r.cookie = good.cookie;
	r.target = "/?token=" OTHER;
	assert_int_equal(decide(r).route, ROUTE_ENTER);
}

static void no_token_is_nobodys(void **state)
{
	struct serve_self none = self;
	struct serve_request r = good;

	(void)state;
	memset(none.token, 0, sizeof(none.token));
	r.cookie = "spotter-7768=";
	assert_int_equal(serve_decide(&none, &r).status, 403);
	r.target = "/?token=";
	assert_int_equal(serve_decide(&none, &r).status, 403);
	assert_false(serve_same_token(none.token, none.token, SERVE_TOKEN));
	assert_true(serve_same_token(TOKEN, TOKEN, SERVE_TOKEN));
	assert_false(serve_same_token(TOKEN, TOKEN, SERVE_TOKEN - 1));
}

static void last_event(void **state)
{
	static const struct {
		const char *text;
		uint64_t seen;
	} rows[] = {
		{ NULL, 0 },
		{ "", 0 },
		{ "1794836062127", 1794836062127 },
		{ "-1", 0 },
		{ "1x", 0 },
		{ " 1", 0 },
		{ "999999999999999999", 999999999999999999 },
		{ "9999999999999999999", 0 },
	};
	struct serve_request r = good;

	(void)state;
	r.target = "/events";
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		r.last_event = rows[i].text;
		assert_int_equal(decide(r).seen, rows[i].seen);
	}
}

static void listening(void **state)
{
	struct serve_listen l = { .fd = -1 }, again = { .fd = -1 };
	struct serve_request r = { .method = "GET", .target = "/" };
	struct err e = { 0 };
	char cookie[80];

	(void)state;
	assert_true(serve_address_ok("127.0.0.1") && serve_address_ok("::1") &&
		    serve_address_ok("localhost") && serve_address_ok("0.0.0.0"));
	assert_false(serve_address_ok("example.com") || serve_address_ok("") ||
		     serve_address_ok("127.0.0.1:80") || serve_address_ok("256.1.1.1"));
	assert_int_equal(serve_listen(NULL, 0, &l, &e), 0);
	assert_false(l.beyond || l.self.any_address);
	assert_true(l.self.port > 0 && strlen(l.self.token) == SERVE_TOKEN);
	assert_non_null(strstr(l.url, l.self.token));
	snprintf(cookie, sizeof(cookie), "%s=%s", l.self.cookie, l.self.token);
	r.cookie = cookie;
	for (size_t i = 0; i < l.self.n_names; i++) {
		r.host = l.self.names[i];
		assert_int_equal(serve_decide(&l.self, &r).route, ROUTE_LIST_PAGE);
	}
	/* The same port a second time; then another token. */
	assert_int_equal(serve_listen(NULL, l.self.port, &again, &e), -EADDRINUSE);
	assert_non_null(strstr(e.text, "is in use"));
	assert_int_equal(serve_listen("0.0.0.0", 0, &again, NULL), 0);
	assert_true(again.beyond && again.self.any_address);
	assert_string_not_equal(again.self.token, l.self.token);
	serve_listen_done(&again);
	serve_listen_done(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(routes),
		cmocka_unit_test(no_way_out_of_the_folder),
		cmocka_unit_test(addresses_have_an_end),
		cmocka_unit_test(methods),
		cmocka_unit_test(hosts),
		cmocka_unit_test(any_address),
		cmocka_unit_test(origins),
		cmocka_unit_test(sites),
		cmocka_unit_test(cookies),
		cmocka_unit_test(entering),
		cmocka_unit_test(no_token_is_nobodys),
		cmocka_unit_test(last_event),
		cmocka_unit_test(listening),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
