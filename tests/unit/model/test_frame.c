/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "model/frame.h"

static void contents(void **state)
{
	struct frame f = { 0 };

	(void)state;
	frame_begin(&f, 5, 6);
	frame_put(&f, M_CPU_USER, ID_HOST, 42);
	frame_gap(&f, M_PSI_MEM_SOME, ID_HOST, GAP_NOT_SUPPORTED);
	frame_life(&f, &(struct life){ .change = LIFE_BORN, .id = 16, .kind = ENTITY_PROC }, "sh",
		   NULL);
	frame_event(&f, EVENT_EXIT, 16, 3, "%s ended", "sh");
	assert_false(f.failed);
	assert_int_equal(f.mono_ns, 5);
	assert_int_equal(f.wall_ns, 6);
	assert_int_equal(f.samples.v[0].raw, 42);
	assert_int_equal(f.gaps.v[0].why, GAP_NOT_SUPPORTED);
	assert_string_equal(frame_text(&f, f.lives.v[0].name), "sh");
	assert_string_equal(frame_text(&f, f.lives.v[0].detail), "");
	assert_string_equal(frame_text(&f, f.events.v[0].text), "sh ended");
	assert_string_equal(frame_text(&f, 1u << 30), "");
	frame_done(&f);
}

/* Text of any length is cut, not trusted. */
static void long_text(void **state)
{
	struct frame f = { 0 };
	static char big[10000];

	(void)state;
	memset(big, 'x', sizeof(big) - 1);
	frame_begin(&f, 1, 1);
	frame_life(&f, &(struct life){ .id = 16 }, big, big);
	frame_event(&f, EVENT_NOTE, 0, 0, "%s", big);
	assert_int_equal(strlen(frame_text(&f, f.lives.v[0].name)), 255);
	assert_int_equal(strlen(frame_text(&f, f.lives.v[0].detail)), 4095);
	assert_true(strlen(frame_text(&f, f.events.v[0].text)) < 600);
	frame_done(&f);
}

/* A frame that has been warm keeps its memory. */
static void keeps_memory(void **state)
{
	struct frame f = { 0 };
	void *samples, *text;

	(void)state;
	for (int round = 0; round < 3; round++) {
		frame_begin(&f, round, 0);
		for (uint32_t i = 0; i < 500; i++) {
			frame_put(&f, M_PROC_CPU, i, i);
			frame_life(&f, &(struct life){ .id = i }, "name", "detail");
		}
		if (round == 1) {
			samples = f.samples.v;
			text = f.text.v;
		}
		if (round == 2) {
			assert_ptr_equal(samples, f.samples.v);
			assert_ptr_equal(text, f.text.v);
		}
	}
	frame_done(&f);
}

static void names(void **state)
{
	(void)state;
	for (int i = 0; i < EVENT_KINDS; i++)
		assert_int_equal(event_kind_by_name(event_kind_name((enum event_kind)i)), i);
	assert_int_equal(event_kind_by_name("from the future"), EVENT_KINDS);
	for (int i = GAP_NOT_SUPPORTED; i <= GAP_OVER; i++)
		assert_true(gap_why_name((enum gap_why)i)[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(contents),
		cmocka_unit_test(long_text),
		cmocka_unit_test(keeps_memory),
		cmocka_unit_test(names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
