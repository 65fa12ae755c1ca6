/* SPDX-License-Identifier: MIT
 *
 * The tick loop over a machine made for the test: clocks that jump, sleep and stand still.
 */
#include "../unit.h"

#include "base/clock.h"
#include "base/err.h"
#include "engine/sampler.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct machine_dir {
	char path[64];
	int states;
};

static void add_state(struct machine_dir *d, double mono_s, double wall_s, double boot_s)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/t%d", d->path, d->states++);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/t%d/clock", d->path, d->states - 1);
	f = fopen(path, "w");
	assert_non_null(f);
	fprintf(f, "%.0f %.0f %.0f\n", mono_s * 1e9, wall_s * 1e9, boot_s * 1e9);
	fclose(f);
}

static void machine_begin(struct machine_dir *d)
{
	*d = (struct machine_dir){ .path = "/tmp/spotter-sampler-XXXXXX" };
	assert_non_null(mkdtemp(d->path));
}

static void machine_end(struct machine_dir *d)
{
	char path[128];

	for (int i = 0; i < d->states; i++) {
		snprintf(path, sizeof(path), "%s/t%d/clock", d->path, i);
		unlink(path);
		snprintf(path, sizeof(path), "%s/t%d", d->path, i);
		rmdir(path);
	}
	rmdir(d->path);
}

/* Number of events of a kind in all states; the value of the last into *ret_value. */
static int events_of(const struct machine_dir *d, enum event_kind kind, double *ret_value)
{
	static const char *const none[] = { NULL };
	struct sampler_options o = { .only = none };
	struct sampler *s = NULL;
	struct frame f = { 0 };
	struct host host;
	struct err e = { 0 };
	int n = 0;

	assert_int_equal(host_open(&host, d->path, &e), 0);
	assert_int_equal(sampler_open(&host, &o, &s, &e), 0);
	do {
		sampler_tick(s, &f);
		for (size_t i = 0; i < f.events.n; i++) {
			if (f.events.v[i].kind != kind)
				continue;
			n++;
			*ret_value = f.events.v[i].value;
		}
	} while (host_advance(&host));
	sampler_close(s);
	frame_done(&f);
	host_close(&host);
	return n;
}

static void wall_clock_is_set(void **state)
{
	struct machine_dir d;
	double by = 0;

	(void)state;
	machine_begin(&d);
	add_state(&d, 100, 1000, 100);
	add_state(&d, 101, 1001, 101);
	add_state(&d, 102, 4602, 102); /* an hour ahead */
	add_state(&d, 103, 4603, 103);
	assert_int_equal(events_of(&d, EVENT_CLOCK_JUMP, &by), 1);
	assert_true(near(by, 3600, 1e-6));
	assert_int_equal(events_of(&d, EVENT_SUSPEND, &by), 0);
	machine_end(&d);
	machine_begin(&d);
	add_state(&d, 100, 1000, 100);
	add_state(&d, 101, 500, 101); /* back */
	assert_int_equal(events_of(&d, EVENT_CLOCK_JUMP, &by), 1);
	assert_true(near(by, -501, 1e-6));
	machine_end(&d);
}

static void slewing_is_no_jump(void **state)
{
	struct machine_dir d;
	double by;

	(void)state;
	machine_begin(&d);
	for (int i = 0; i < 10; i++)
		add_state(&d, 100 + i, 1000 + i * 1.0005, 100 + i);
	assert_int_equal(events_of(&d, EVENT_CLOCK_JUMP, &by), 0);
	machine_end(&d);
}

static void machine_sleeps(void **state)
{
	struct machine_dir d;
	double by = 0;

	(void)state;
	machine_begin(&d);
	add_state(&d, 100, 1000, 100);
	add_state(&d, 101, 1001, 101);
	add_state(&d, 102, 8602, 7702); /* the monotonic clock stands still meanwhile */
	assert_int_equal(events_of(&d, EVENT_SUSPEND, &by), 1);
	assert_true(near(by, 7600, 1e-6));
	assert_int_equal(events_of(&d, EVENT_CLOCK_JUMP, &by), 0);
	machine_end(&d);
}

static void recorder_stood_still(void **state)
{
	struct machine_dir d;
	double by = 0;

	(void)state;
	machine_begin(&d);
	add_state(&d, 100, 1000, 100);
	add_state(&d, 101, 1001, 101);
	add_state(&d, 121, 1021, 121);
	assert_int_equal(events_of(&d, EVENT_SUSPEND, &by), 1);
	assert_true(near(by, 20, 1e-6));
	machine_end(&d);
	/* slow by wish: one tick in ten seconds */
	machine_begin(&d);
	for (int i = 0; i < 5; i++)
		add_state(&d, 100 + i * 10, 1000 + i * 10, 100 + i * 10);
	assert_int_equal(events_of(&d, EVENT_SUSPEND, &by), 0);
	machine_end(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wall_clock_is_set),
		cmocka_unit_test(slewing_is_no_jump),
		cmocka_unit_test(machine_sleeps),
		cmocka_unit_test(recorder_stood_still),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
