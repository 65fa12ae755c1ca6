/* SPDX-License-Identifier: MIT
 *
 * Series of steps: one for each rank, over all its processes, in order of time.
 */
#include "../unit.h"

#include "base/auto.h"
#include "steps_source.h"

/* Rank 0 is started again (16, then 17) with its rank said late; 18 and 19 say none and run at the same time. */
static const struct window_step their_steps[] = {
	{ -1, 16, 1, AT(1), AT(1), 4, 0.5, 0 },   { 0, 16, 2, AT(1), AT(1.5), 3, 0.25, 0 },
	{ -1, 18, 1, AT(1), AT(1.6), 9, NAN, 0 }, { -1, 19, 1, AT(1), AT(1.7), 8, NAN, 0 },
	{ -1, 18, 2, AT(1), AT(1.8), 7, NAN, 0 }, { 0, 17, 1, AT(2), AT(3), 3.5, 0.125, 0 },
};

static const struct window_step *all_of_them(void *src, size_t *n)
{
	(void)src;
	*n = ARRAY_LEN(their_steps);
	return their_steps;
}

static void write_all(struct buf *out)
{
	const struct sink_type *sink = sink_by_name("openmetrics");
	struct window_ops ops = steps_ops;
	struct steps_source x;
	struct window w = { &ops, &x, AT(0), AT(5) };
	struct sink_source src = { .run = &x.run, .entities = &x.entities, .window = &w };
	void *state;
	int r;

	assert_non_null(sink);
	state = calloc(1, sink->state_size);
	assert_non_null(state);
	ops.steps = all_of_them;
	steps_source_make(&x);
	assert_int_equal(sink->begin(state, &src, out), 0);
	while ((r = sink->end(state, &src, out)) > 0)
		;
	assert_int_equal(r, 0);
	assert_true(buf_ok(out));
	sink->done(state);
	free(state);
	entity_table_done(&x.entities);
}

static void one_series_a_rank(void **state)
{
	auto_done(buf) struct buf out = { 0 };
	const char *text;

	(void)state;
	write_all(&out);
	text = buf_text(&out);
#define RUN "run_id=\"20231114-221320-0001\""
	assert_non_null(strstr(text, "spotter_steps_total{" RUN "} 1 1700000001.600\n"
				     "spotter_steps_total{" RUN "} 2 1700000001.700\n"
				     "spotter_steps_total{" RUN "} 3 1700000001.800\n"
				     "spotter_steps_total{" RUN ",rank=\"0\"} 1 1700000001.000\n"
				     "spotter_steps_total{" RUN ",rank=\"0\"} 2 1700000001.500\n"
				     "spotter_steps_total{" RUN ",rank=\"0\"} 3 1700000003.000\n"
				     "# "));
	assert_non_null(strstr(text, "spotter_loss{" RUN ",rank=\"0\"} 3.5 1700000003.000\n# "));
	assert_non_null(strstr(text, "spotter_data_wait_seconds_total{" RUN
				     ",rank=\"0\"} 0.875 1700000003.000\n# "));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(one_series_a_rank) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
