/* SPDX-License-Identifier: MIT
 *
 * What the scenario says of single calls, and the XIDs that are due.
 */
#include "layout.h"

#include "base/clock.h"

#include <errno.h>

enum { GPU_IS_LOST = 15, RESET_REQUIRED = 16 }; /* nvmlReturn_t */

/* Sleeps until that age, whatever signals come: a driver call cannot be interrupted. */
static void sleep_until(const struct vgpu *v, int64_t age)
{
	int64_t at = age > INT64_MAX - v->s->born_mono ? INT64_MAX : v->s->born_mono + age;
	struct timespec t = { .tv_sec = at / NS_PER_S, .tv_nsec = at % NS_PER_S };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

int vgpu_call(struct vgpu *v, const char *symbol, int device)
{
	const struct scenario *s = &v->s->scenario;
	int64_t now = vgpu_age(v);
	const struct scenario_device *d;

	if (s->driver.call_us) {
		now += s->driver.call_us * 1000ll;
		sleep_until(v, now);
	}
	if (device < 0 || device >= s->n_devices)
		return 0;
	d = &s->device[device];
	for (int i = 0; i < d->n_calls; i++) {
		const struct scenario_call *c = &d->call[i];

		if (!scenario_open(&c->when, now) ||
		    (strcmp(c->symbol, "any") != 0 && strcmp(c->symbol, symbol) != 0))
			continue;
		if (c->answer)
			return c->answer;
		sleep_until(v, c->when.until);
		now = vgpu_age(v);
	}
	if (d->has_lost && scenario_open(&d->lost, now))
		return GPU_IS_LOST;
	if (d->has_reset && scenario_open(&d->reset, now))
		return RESET_REQUIRED;
	return 0;
}

/* Numbered by when they happen, those of one moment by device and line. */
static uint64_t number_of(const struct scenario *s, int device, int row)
{
	int64_t when = s->device[device].xid[row].when.from;
	uint64_t before = 0;

	for (int d = 0; d < s->n_devices; d++) {
		for (int i = 0; i < s->device[d].n_xids; i++) {
			int64_t other = s->device[d].xid[i].when.from;
			bool first = d < device || (d == device && i < row);

			before += other < when || (other == when && first);
		}
	}
	return before + 1;
}

int vgpu_xids(struct vgpu *v, uint64_t *after, struct vgpu_xid *ret, int max)
{
	const struct scenario *s = &v->s->scenario;
	int64_t now = vgpu_age(v);
	uint64_t from = *after;
	int n = 0;

	for (int d = 0; d < s->n_devices; d++) {
		for (int i = 0; i < s->device[d].n_xids; i++) {
			const struct scenario_xid *x = &s->device[d].xid[i];
			uint64_t number = number_of(s, d, i);

			/* In order of number, so that a short array loses nothing. */
			if (x->when.from > now || number <= from || number > from + (uint64_t)max)
				continue;
			ret[number - from - 1] = (struct vgpu_xid){
				.number = number,
				.device = d,
				.code = x->code,
				.time_ns = v->s->born_wall + x->when.from,
			};
			n++;
		}
	}
	*after += (uint64_t)n;
	return n;
}
