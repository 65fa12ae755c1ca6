/* SPDX-License-Identifier: MIT
 *
 * The same frames, once through memory and once through a file: the same verdict, to the letter.
 */
#include "../unit.h"

#include "scenario.h"

#include "base/buf.h"
#include "base/err.h"
#include "explain/rule.h"
#include "record/reader.h"
#include "record/writer.h"

#include <stdlib.h>
#include <unistd.h>

static void write_frame(const struct frame *f, void *arg)
{
	assert_int_equal(record_frame(arg, f), 0);
}

static void text_of(const struct verdict *v, struct buf *out)
{
	buf_init(out, 0);
	render_text(v, &(struct render_style){ .width = 100 }, out);
	assert_true(buf_ok(out));
}

static void compare(const char *scenario, const char *file)
{
	struct record_writer *writer = NULL;
	struct record *record = NULL;
	struct scenario s = { 0 };
	struct verdict live = { 0 }, later = { 0 };
	struct window w;
	struct history *h;
	struct buf a, b;
	struct err e = { 0 };

	scenario_load(&s, scenario);
	h = scenario_play(&s, M_NONE, 0);
	w = history_window(h, 0);
	assert_int_equal(explain(&w, &live), 0);

	if (record_create(file, &s.run, &(struct record_options){ 0 }, &writer, &e) < 0)
		fail_msg("%s", e.text);
	scenario_each(&s, M_NONE, 0, write_frame, writer);
	assert_int_equal(record_finish(writer, &s.run), 0);
	if (record_open(file, &record, &e) < 0)
		fail_msg("%s", e.text);
	w = record_window(record, 0, 0);
	assert_int_equal(explain(&w, &later), 0);

	for (size_t r = 0; rules[r]; r++) {
		const char *was = scenario_answer(&live, rules[r]->cause);
		const char *is = scenario_answer(&later, rules[r]->cause);

		if (strcmp(was, is) != 0)
			fail_msg("%s: %s is %s live and %s from the record", scenario,
				 rules[r]->cause, was, is);
	}
	text_of(&live, &a);
	text_of(&later, &b);
	if (strcmp(buf_text(&a), buf_text(&b)) != 0) {
		print_error("%s: live\n", scenario);
		print_error("%s", buf_text(&a));
		print_error("from the record\n");
		print_error("%s", buf_text(&b));
		fail();
	}
	buf_done(&a);
	buf_done(&b);
	verdict_done(&live);
	verdict_done(&later);
	record_close(record);
	history_free(h);
	scenario_done(&s);
	assert_int_equal(unlink(file), 0);
}

static void same_verdict(void **state)
{
	static char paths[SCENARIO_FILES][256];
	size_t n = scenario_list(SCENARIOS, paths, SCENARIO_FILES);
	char folder[] = "/tmp/spotter-offline-XXXXXX", file[64];

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(file, sizeof(file), "%s/run.spot", folder);
	for (size_t i = 0; i < n; i++)
		compare(paths[i], file);
	assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(same_verdict) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
