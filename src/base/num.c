/* SPDX-License-Identifier: MIT */
#include "base/num.h"

#include "base/clock.h"
#include "base/scan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The value, or a plain 0 where it would be rounded to "-0". `step` is the last digit shown. */
static double shown(double v, double step)
{
	return fabs(v) < step / 2 ? 0 : v;
}

const char *num_bytes(double bytes, char *buf, size_t size)
{
	static const char *const unit[] = { "B", "kB", "MB", "GB", "TB", "PB" };
	size_t u = 0;

	while (fabs(bytes) >= 999.5 && u + 1 < sizeof(unit) / sizeof(unit[0])) {
		bytes /= 1000;
		u++;
	}
	snprintf(buf, size, u && fabs(bytes) < 9.95 ? "%.1f %s" : "%.0f %s", shown(bytes, 1),
		 unit[u]);
	return buf;
}

const char *num_seconds(double s, char *buf, size_t size)
{
	double a = fabs(s);

	if (a < 0.0009995)
		snprintf(buf, size, "%.0f us", shown(s * 1e6, 1));
	else if (a < 0.9995)
		snprintf(buf, size, a < 0.00995 ? "%.1f ms" : "%.0f ms", s * 1e3);
	else if (a < 99.95)
		snprintf(buf, size, "%.1f s", s);
	else if (a < 3600)
		snprintf(buf, size, "%.0f min %.0f s", trunc(s / 60), floor(fmod(a, 60)));
	else if (a < 86400)
		snprintf(buf, size, "%.0f h %.0f min", trunc(s / 3600), floor(fmod(a / 60, 60)));
	else
		snprintf(buf, size, "%.0f d %.0f h", trunc(s / 86400), floor(fmod(a / 3600, 24)));
	return buf;
}

const char *num_percent(double ratio, char *buf, size_t size)
{
	double p = shown(ratio * 100, 0.1);

	snprintf(buf, size, p != 0 && fabs(p) < 9.95 ? "%.1f %%" : "%.0f %%", p);
	return buf;
}

const char *num_cores(double cores, char *buf, size_t size)
{
	if (fabs(cores - round(cores)) < 0.005)
		snprintf(buf, size, "%.0f", shown(cores, 0.01));
	else
		snprintf(buf, size, fabs(cores) < 99.95 ? "%.2f" : "%.0f", cores);
	return buf;
}

const char *num_count(double n, char *buf, size_t size)
{
	char plain[32];
	size_t len, out = 0, first;

	snprintf(plain, sizeof(plain), "%.0f", shown(n, 1));
	len = strlen(plain);
	first = plain[0] == '-';
	for (size_t i = 0; i < len && out + 2 < size; i++) {
		if (i > first && (len - i) % 3 == 0)
			buf[out++] = ',';
		buf[out++] = plain[i];
	}
	buf[out] = '\0';
	return buf;
}

/* The number itself, not negative; blanks around it are skipped. */
static bool leading_number(struct scan *s, double *ret)
{
	uint64_t whole;
	double v, weight = 0.1;

	if (!scan_u64(s, &whole))
		return false;
	v = (double)whole;
	if (scan_lit(s, "."))
		for (; !scan_end(s) && *s->p >= '0' && *s->p <= '9'; s->p++, weight /= 10)
			v += weight * (*s->p - '0');
	*ret = v;
	scan_blank(s);
	return true;
}

bool num_parse_size(const char *text, uint64_t *ret)
{
	struct scan s = scan_of(text, strlen(text));
	static const char letters[] = "KMGT";
	double v, factor = 1;

	if (!leading_number(&s, &v))
		return false;
	for (size_t i = 0; i < sizeof(letters) - 1 && !scan_end(&s); i++) {
		if ((*s.p & ~0x20) != letters[i])
			continue;
		factor = pow(1024, (double)(i + 1));
		s.p++;
		break;
	}
	(void)(scan_lit(&s, "iB") || scan_lit(&s, "B") || scan_lit(&s, "b"));
	if (!scan_end(&s) || v * factor > 9e15)
		return false;
	*ret = (uint64_t)(v * factor + 0.5);
	return true;
}

bool num_parse_duration(const char *text, int64_t *ret_ns)
{
	struct scan s = scan_of(text, strlen(text));
	static const struct {
		const char *name;
		double seconds;
	} unit[] = { { "ms", 1e-3 }, { "us", 1e-6 }, { "min", 60 }, { "s", 1 },
		     { "m", 60 },    { "h", 3600 },  { "d", 86400 } };
	double v, factor = 1;

	if (!leading_number(&s, &v))
		return false;
	for (size_t i = 0; i < sizeof(unit) / sizeof(unit[0]) && !scan_end(&s); i++) {
		if (!scan_lit(&s, unit[i].name))
			continue;
		factor = unit[i].seconds;
		break;
	}
	if (!scan_end(&s) || v * factor > 9e8)
		return false;
	*ret_ns = (int64_t)(v * factor * NS_PER_S + 0.5);
	return true;
}

bool num_parse_ratio(const char *text, double *ret)
{
	struct scan s = scan_of(text, strlen(text));
	double v;
	bool percent;

	if (!leading_number(&s, &v))
		return false;
	percent = scan_lit(&s, "%");
	if (!scan_end(&s))
		return false;
	*ret = percent ? v / 100 : v;
	return true;
}

bool num_parse_double(const char *text, double *ret)
{
	struct scan s = scan_of(text, strlen(text));
	int64_t v;

	if (!scan_fixed(&s, 9, &v) || !scan_end(&s))
		return false;
	*ret = (double)v / 1e9;
	return true;
}

bool num_parse_i64(const char *text, int64_t *ret)
{
	struct scan s = scan_of(text, strlen(text));
	int64_t v;

	if (!scan_i64(&s, &v) || !scan_end(&s))
		return false;
	*ret = v;
	return true;
}
