/* SPDX-License-Identifier: MIT */
#include "gpu/amd_parse.h"

#include "base/scan.h"
#include "gpu/drm.h"

#include <string.h>

bool amd_clocks_parse(const char *text, size_t n, struct amd_clocks *ret)
{
	struct scan s = scan_of(text, n), line;

	*ret = (struct amd_clocks){ .now = -1, .max = -1 };
	while (scan_line(&s, &line)) {
		uint64_t mhz;

		if (!scan_after(&line, ':') || !scan_u64(&line, &mhz) || mhz > 100000 ||
		    !(scan_lit(&line, "Mhz") || scan_lit(&line, "MHz")))
			continue;
		if ((int64_t)mhz > ret->max)
			ret->max = (int64_t)mhz;
		if (scan_after(&line, '*'))
			ret->now = (int64_t)mhz;
	}
	return ret->max >= 0;
}

bool amd_link_parse(const char *text, size_t n, int *ret_generation, int *ret_width)
{
	struct scan s = scan_of(text, n), line;

	while (scan_line(&s, &line)) {
		struct scan mark = line;
		uint64_t width;
		int generation;

		if (!scan_after(&mark, '*') || !scan_after(&line, ':'))
			continue;
		generation = drm_link_generation(line.p, (size_t)(line.end - line.p));
		if (generation == 0 || !scan_after(&line, 'x') || !scan_u64(&line, &width) ||
		    width == 0 || width > 64)
			return false;
		*ret_generation = generation;
		*ret_width = (int)width;
		return true;
	}
	return false;
}

static uint64_t little(const uint8_t *p, size_t bytes)
{
	uint64_t v = 0;

	for (size_t i = bytes; i-- > 0;)
		v = v << 8 | p[i];
	return v;
}

/* Bits of indep_throttle_status: 0-7 power, 16-23 current, 32-43 temperatures, 44-47 VRHOT and
 * PROCHOT, 56-57 others. */
static int reasons(uint64_t bits)
{
	int r = 0;

	/* Firmware that does not fill the field leaves it all ones. */
	if (bits == UINT64_MAX)
		return -1;
	if (bits & 0xffull)
		r |= AMD_THROTTLE_POWER;
	if (bits & 0xff0000ull)
		r |= AMD_THROTTLE_CURRENT;
	if (bits & 0xfffull << 32)
		r |= AMD_THROTTLE_HEAT;
	if (bits & 0xfull << 44)
		r |= AMD_THROTTLE_HOT_PIN;
	if (bits & 0x3ull << 56)
		r |= AMD_THROTTLE_OTHER;
	return r;
}

bool amd_table_parse(const void *data, size_t n, struct amd_table *ret)
{
	const uint8_t *p = data;
	unsigned format, content;
	size_t throttle = 0, energy = 0;

	*ret = (struct amd_table){ .throttle = -1, .energy_mj = -1 };
	if (n < 4 || little(p, 2) != n)
		return false;
	format = p[2];
	content = p[3];
	ret->integrated = format == 2 || format == 3;
	if (format == 1 && content == 3)
		throttle = 112;
	else if (format == 2 && content >= 2 && content <= 4)
		throttle = 120;
	else if (format == 1 && content == 4)
		energy = 24;
	else if (format == 1 && content == 5)
		energy = 88;
	if (throttle && n >= throttle + 8)
		ret->throttle = reasons(little(p + throttle, 8));
	if (energy && n >= energy + 8) {
		/* In units of 2^-16 J. */
		uint64_t v = little(p + energy, 8);

		if (v != UINT64_MAX && v <= (uint64_t)INT64_MAX / 1000)
			ret->energy_mj = (int64_t)(v * 1000 >> 16);
	}
	return true;
}

bool amd_errors_parse(const char *text, size_t n, uint64_t *ret_ue, uint64_t *ret_ce)
{
	struct scan s = scan_of(text, n);
	uint64_t ue, ce;

	if (!scan_key_u64(s, "ue", &ue) || !scan_key_u64(s, "ce", &ce) || ue > INT64_MAX ||
	    ce > INT64_MAX)
		return false;
	*ret_ue = ue;
	*ret_ce = ce;
	return true;
}

bool amd_traffic_parse(const char *text, size_t n, int64_t *ret_rx, int64_t *ret_tx)
{
	struct scan s = scan_of(text, n);
	uint64_t rx, tx, payload;

	if (!scan_u64(&s, &rx) || !scan_u64(&s, &tx) || !scan_u64(&s, &payload) || payload == 0 ||
	    payload > 4096 || rx > INT64_MAX / 4096 || tx > INT64_MAX / 4096)
		return false;
	*ret_rx = (int64_t)(rx * payload);
	*ret_tx = (int64_t)(tx * payload);
	return true;
}
