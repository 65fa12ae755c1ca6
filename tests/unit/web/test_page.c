/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "world.h"

#include "base/auto.h"
#include "base/buf.h"
#include "web/assets.h"
#include "web/page.h"
#include "web/story.h"
#include "web/svg.h"

static void escapes(void **state)
{
	static const struct {
		const char *text, *html;
	} rows[] = {
		{ "a < b & c > d", "a &lt; b &amp; c &gt; d" },
		{ "\"'", "&quot;&#39;" },
		{ "\033[2J\x01", "?[2J?" },
		{ "\xff\xc3", "??" },
		{ "\xc3\xa9\n", "\xc3\xa9\n" },
		{ "\xe2\x80\xae\xef\xbf\xbe\xef\xbf\xbf\xef\xbf\xbd", "???\xef\xbf\xbd" },
		{ "", "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		auto_done(buf) struct buf out = { 0 };

		page_escape(&out, rows[i].text, strlen(rows[i].text));
		assert_string_equal(buf_text(&out), rows[i].html);
	}
}

static void json_in_a_script(void **state)
{
	static const struct {
		const char *json, *script;
	} rows[] = {
		{ "{\"a\":\"</script><!--\"}", "{\"a\":\"\\u003c/script\\u003e\\u003c!--\"}" },
		{ "\"&amp;\"", "\"\\u0026amp;\"" },
		{ "\"\xe2\x80\xa8\xe2\x80\xa9\xe2\x80\xa7\"", "\"\\u2028\\u2029\xe2\x80\xa7\"" },
		{ "\xe2\x80", "\xe2\x80" }, /* cut off: nothing behind it is looked at */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		auto_done(buf) struct buf out = { 0 };

		page_json(&out, rows[i].json, strlen(rows[i].json));
		assert_string_equal(buf_text(&out), rows[i].script);
	}
}

/* How often a text is in another. */
static size_t count(const char *text, const char *what)
{
	size_t n = 0;

	for (const char *s = strstr(text, what); s; s = strstr(s + 1, what))
		n++;
	return n;
}

static void hostile_page(void **state)
{
	struct world x = { .marks = true, .stacks = true, .gpu = true };
	auto_done(buf) struct buf out = { 0 };

	(void)state;
	world_make(&x);
	assert_int_equal(page_html(&x.window, &x.verdict, &out), 0);
	assert_true(out.len < PAGE_MOST);
	/* our own two scripts, and not one more */
	assert_int_equal(count(buf_text(&out), "<script"), 2);
	assert_int_equal(count(buf_text(&out), "</script>"), 2);
	assert_null(strchr(buf_text(&out), '\033'));
	assert_null(strstr(buf_text(&out), "\xe2\x80\xae"));
	assert_null(strchr(buf_text(&out), (char)0xff));
	assert_non_null(strstr(buf_text(&out), asset_script.sha256));
	assert_non_null(strstr(buf_text(&out), "default-src 'none'; script-src 'sha256-"));
	world_done(&x);
}

static struct track *track_of(struct timeline *t, const char *id)
{
	for (size_t i = 0; i < t->tracks.n; i++)
		if (strcmp(t->tracks.v[i].id, id) == 0)
			return &t->tracks.v[i];
	return NULL;
}

/* Resident memory of several processes counts shared pages for each: no limit beside it. */
static void memory_is_called_what_it_is(void **state)
{
	static const struct {
		int processes;
		bool pss, limited;
		const char *title, *name;
	} rows[] = {
		{ 1, false, true, "Memory", "resident" },
		{ 4, true, true, "Memory", "used, shared pages counted once" },
		{ 4, false, false, "Memory: resident, shared pages counted for each process",
		  "resident, shared pages counted for each process" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct world x = { .processes = rows[i].processes, .pss = rows[i].pss };
		struct timeline t;
		struct track *track;

		world_make(&x);
		assert_int_equal(timeline_take(&x.window, &x.verdict, 100, &t), 0);
		track = track_of(&t, "memory");
		assert_non_null(track);
		assert_string_equal(track->title, rows[i].title);
		assert_string_equal(track->series.v[0].name, rows[i].name);
		assert_int_equal(isfinite(track->limit), rows[i].limited);
		assert_true(near(track->series.v[0].mean[50],
				 rows[i].pss ? 600 * 1024 : 1100 * 1024, 1e-2));
		timeline_done(&t);
		world_done(&x);
	}
}

static void timeline_is_right(void **state)
{
	struct world x = { .marks = true, .gpu = true };
	struct timeline t;
	struct track *track;

	(void)state;
	world_make(&x);
	assert_int_equal(timeline_take(&x.window, &x.verdict, 100, &t), 0);
	assert_int_equal(t.points, 100);
	track = track_of(&t, "cpu");
	assert_non_null(track);
	assert_true(track->limit == 2);
	assert_string_equal(track->series.v[0].name, "used");
	assert_true(near(track->series.v[0].mean[10], 0.5, 1e-6));
	assert_true(near(track->series.v[0].mean[90], 1.5, 1e-6));
	track = track_of(&t, "gpu0_busy");
	assert_non_null(track);
	/* read now and then, and held meanwhile */
	assert_true(near(track->series.v[0].mean[10], 50, 1e-6));
	assert_true(near(track->series.v[0].mean[90], 100, 1e-6));
	track = track_of(&t, "io");
	assert_non_null(track);
	assert_true(near(track->series.v[0].mean[50], 10000, 1e-3));
	track = track_of(&t, "step_time");
	assert_non_null(track);
	assert_true(near(track->series.v[0].mean[50], 0.1, 1e-6));
	assert_non_null(track_of(&t, "loss"));
	assert_int_equal(t.phases.n, 1);
	assert_true(near(t.phases.v[0].from, 10.1, 1e-6) && near(t.phases.v[0].to, 12.1, 1e-6));
	assert_int_equal(t.events.n, 1);
	assert_string_equal(t.events.v[0].kind, "oom_kill");
	timeline_done(&t);
	world_done(&x);
}

static void nothing_but_a_process(void **state)
{
	struct world x = { .marks = false };
	auto_done(buf) struct buf json = { 0 };
	struct story s;

	(void)state;
	world_make(&x);
	assert_int_equal(story_take(&x.window, &x.verdict, 0, &s), 0);
	story_json(&s, &json);
	assert_true(buf_ok(&json));
	assert_null(strstr(buf_text(&json), "\"flame\""));
	assert_null(strstr(buf_text(&json), "\"steps\":{\"count\""));
	assert_non_null(strstr(buf_text(&json), "\"slow_steps\":[]"));
	assert_null(strstr(buf_text(&json), "nan"));
	story_done(&s);
	world_done(&x);
}

/* The last level is the smallest. (One with fewer points may have to tell more of each.) */
static void levels(void **state)
{
	struct world x = { .marks = true, .stacks = true, .gpu = true };
	size_t first = 0, last = 0;

	(void)state;
	world_make(&x);
	for (unsigned level = 0; level < STORY_LEVELS; level++) {
		auto_done(buf) struct buf json = { 0 };
		struct story s;

		assert_int_equal(story_take(&x.window, &x.verdict, level, &s), 0);
		story_json(&s, &json);
		assert_true(buf_ok(&json));
		first = level ? first : json.len;
		last = json.len;
		story_done(&s);
	}
	assert_true(last < first);
	world_done(&x);
}

/* Tags in order, and no byte that XML does not allow. */
static void check_xml(const char *s)
{
	int depth = 0;

	for (; *s; s++) {
		assert_false((unsigned char)*s < 0x20 && *s != '\n');
		if (*s != '<')
			continue;
		depth += s[1] == '/' ? -1 : 1;
		s = strchr(s, '>');
		assert_non_null(s);
		depth -= s[-1] == '/';
		assert_true(depth >= 0);
	}
	assert_int_equal(depth, 0);
}

static void picture(void **state)
{
	struct world x = { .marks = true, .stacks = true, .gpu = true };
	auto_done(buf) struct buf out = { 0 };
	struct timeline t;

	(void)state;
	world_make(&x);
	assert_int_equal(timeline_take(&x.window, &x.verdict, 0, &t), 0);
	svg_report(&t, &x.verdict, &out);
	assert_true(buf_ok(&out));
	check_xml(buf_text(&out));
	assert_null(strstr(buf_text(&out), "<script"));
	assert_null(strstr(buf_text(&out), "nan"));
	assert_non_null(strstr(buf_text(&out), "Who used the CPU"));
	assert_non_null(strstr(buf_text(&out), "GPU 0 busy"));
	timeline_done(&t);
	world_done(&x);
}

static void cuts_text(void **state)
{
	char text[64];

	(void)state;
	assert_string_equal(svg_cut("short", 500, text, sizeof(text)), "short");
	assert_string_equal(svg_cut("a rather long text", 80, text, sizeof(text)), "a rather...");
	svg_cut("\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", 40,
		text, sizeof(text));
	assert_string_equal(text, "\xc3\xa9\xc3\xa9...");
	svg_cut("long", 0, text, sizeof(text));
	assert_string_equal(text, "...");
}

/* What is pasted elsewhere obeys nobody either. */
static void markdown(void **state)
{
	struct world x = { .marks = true };
	auto_done(buf) struct buf out = { 0 };
	auto_done(run_info) struct run_info run = { 0 };
	struct verdict v;

	(void)state;
	world_make(&x);
	v = x.verdict;
	assert_int_equal(run_info_copy(&run, v.run), 0);
	snprintf(run.name, sizeof(run.name), "````` |<b>*_[x](y)\n# \033[2J");
	v.run = &run;
	render_markdown(&v, &out);
	assert_true(buf_ok(&out));
	assert_non_null(strstr(buf_text(&out),
			       "### Spotter: \\`\\`\\`\\`\\` \\|\\<b\\>\\*\\_\\[x\\](y)?\\# ?"));
	/* the fence is longer than what is in it */
	assert_non_null(strstr(buf_text(&out), "\n``````text\n"));
	assert_non_null(strstr(buf_text(&out), "\n``````\n"));
	assert_null(strchr(buf_text(&out), '\033'));
	world_done(&x);
}

static void pages_of_causes(void **state)
{
	(void)state;
	assert_non_null(cause_page("no_workers"));
	assert_null(cause_page("no_such_cause"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(escapes),
		cmocka_unit_test(json_in_a_script),
		cmocka_unit_test(hostile_page),
		cmocka_unit_test(memory_is_called_what_it_is),
		cmocka_unit_test(timeline_is_right),
		cmocka_unit_test(nothing_but_a_process),
		cmocka_unit_test(levels),
		cmocka_unit_test(picture),
		cmocka_unit_test(cuts_text),
		cmocka_unit_test(markdown),
		cmocka_unit_test(pages_of_causes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
