/* SPDX-License-Identifier: MIT
 *
 * The readers of a scenario's words, and the statements about the driver.
 */
#include "scenario_words.h"

#include "base/auto.h"
#include "base/num.h"
#include "base/scan.h"
#include "base/text.h"

bool scenario_is(struct scenario_line *l, const char *word)
{
	if (l->at >= l->n || strcmp(l->word[l->at], word) != 0)
		return false;
	l->at++;
	return true;
}

static const char *next(struct scenario_line *l)
{
	return l->at < l->n ? l->word[l->at++] : NULL;
}

int scenario_text(struct scenario_line *l, char *ret, size_t size)
{
	const char *w = next(l);

	if (!w)
		return scenario_wrong(l, "a word is missing at the end", NULL);
	if (!text_copy(ret, size, w))
		return scenario_wrong(l, "too long", w);
	return 0;
}

int scenario_size(struct scenario_line *l, uint64_t *ret)
{
	const char *w = next(l);

	if (!w || !num_parse_size(w, ret))
		return scenario_wrong(l, "a size such as 80G is wanted", w);
	return 0;
}

int scenario_ratio(struct scenario_line *l, double *ret)
{
	const char *w = next(l);

	if (!w || !num_parse_ratio(w, ret) || *ret < 0 || *ret > 1)
		return scenario_wrong(l, "a share of 0 to 1 (or 60%) is wanted", w);
	return 0;
}

int scenario_int(struct scenario_line *l, int64_t min, int64_t max, int64_t *ret)
{
	const char *w = next(l);
	char what[80];

	snprintf(what, sizeof(what), "a whole number from %lld to %lld is wanted", (long long)min,
		 (long long)max);
	if (!w || !num_parse_i64(w, ret) || *ret < min || *ret > max)
		return scenario_wrong(l, what, w);
	return 0;
}

int scenario_small(struct scenario_line *l, int64_t min, int64_t max, int *ret)
{
	int64_t v = 0;
	int r = scenario_int(l, min, max, &v);

	*ret = (int)v;
	return r;
}

int scenario_mhz(struct scenario_line *l, uint32_t *ret)
{
	int64_t v = 0;
	int r = scenario_int(l, 1, 100000, &v);

	*ret = (uint32_t)v;
	return r;
}

int scenario_time(struct scenario_line *l, int64_t *ret)
{
	const char *w = next(l);

	if (!w || !num_parse_duration(w, ret))
		return scenario_wrong(l, "a time such as 5s or 20ms is wanted", w);
	return 0;
}

int scenario_when(struct scenario_line *l, struct scenario_window *ret)
{
	int64_t length = -1;
	int r = 0;

	ret->from = 0;
	while (!r && l->at < l->n) {
		if (scenario_is(l, "from"))
			r = scenario_time(l, &ret->from);
		else if (scenario_is(l, "for"))
			r = scenario_time(l, &length);
		else
			break;
	}
	ret->until = length < 0 ? INT64_MAX : ret->from + length;
	return r;
}

static int on_driver(struct scenario_line *l)
{
	struct vgpu_driver *d = &l->scenario->driver;
	int r = scenario_text(l, d->version, sizeof(d->version) - 4);

	/* NVML's own version is the driver's behind the CUDA generation: 13.590.48.01. */
	if (!r)
		snprintf(d->nvml_version, sizeof(d->nvml_version), "13.%.27s", d->version);
	return r;
}

static int on_nvml(struct scenario_line *l)
{
	struct vgpu_driver *d = &l->scenario->driver;

	return scenario_text(l, d->nvml_version, sizeof(d->nvml_version));
}

/* "13.1" is 13010, as cuDriverGetVersion has it. */
static int on_cuda(struct scenario_line *l)
{
	const char *w = l->at < l->n ? l->word[l->at++] : "";
	struct scan s = scan_of(w, strlen(w));
	uint64_t major, minor;

	if (!scan_u64(&s, &major) || !scan_lit(&s, ".") || !scan_u64(&s, &minor) || !scan_end(&s) ||
	    major > 99 || minor > 9)
		return scenario_wrong(l, "a CUDA version such as 12.4 is wanted", w);
	l->scenario->driver.cuda = (int)(major * 1000 + minor * 10);
	return 0;
}

static int on_init_error(struct scenario_line *l)
{
	int64_t v = 0;
	int r = scenario_int(l, 0, 999, &v);

	l->scenario->driver.init_error = (int)v;
	return r;
}

static int on_process_layout(struct scenario_line *l)
{
	int64_t v = 0;
	int r = scenario_int(l, 1, 535, &v);

	if (!r && v > 3 && v != 535)
		return scenario_wrong(l, "process_layout is 3, 2, 1 or 535", NULL);
	l->scenario->driver.process_layout = (int)v;
	return r;
}

static int on_strict_versions(struct scenario_line *l)
{
	l->scenario->driver.strict_versions = true;
	return 0;
}

static int on_no_process_utilization(struct scenario_line *l)
{
	l->scenario->driver.no_process_utilization = true;
	return 0;
}

static int on_pcie_read(struct scenario_line *l)
{
	int64_t ns = 0;
	int r = scenario_time(l, &ns);

	if (!r && ns > 60000000000)
		return scenario_wrong(l, "a minute at most", NULL);
	l->scenario->driver.pcie_read_ms = (int)(ns / 1000000);
	return r;
}

static int on_call_time(struct scenario_line *l)
{
	int64_t ns = 0;
	int r = scenario_time(l, &ns);

	if (!r && ns > 60000000000)
		return scenario_wrong(l, "a minute at most", NULL);
	l->scenario->driver.call_us = (int)(ns / 1000);
	return r;
}

static int on_pids(struct scenario_line *l)
{
	struct scenario *s = l->scenario;

	if (scenario_is(l, "inner")) {
		s->pids = PIDS_INNER;
	} else if (scenario_is(l, "hidden")) {
		s->pids = PIDS_HIDDEN;
	} else if (scenario_is(l, "offset")) {
		s->pids = PIDS_OFFSET;
		return scenario_int(l, 0, 1 << 30, &s->pid_offset);
	} else {
		return scenario_wrong(l, "pids offset N, pids inner or pids hidden is wanted",
				      NULL);
	}
	return 0;
}

/* gpu "NAME" [x N] */
static int on_gpu(struct scenario_line *l)
{
	struct scenario *s = l->scenario;
	char name[96];
	int64_t n = 1;
	int r = scenario_text(l, name, sizeof(name));

	if (!r && scenario_is(l, "x"))
		r = scenario_int(l, 1, VGPU_DEVICES, &n);
	if (r)
		return r;
	if (s->n_devices + n > VGPU_DEVICES)
		return scenario_wrong(l, "16 GPUs at most", NULL);
	l->first_device = s->n_devices;
	for (; n > 0; n--) {
		struct scenario_device *d = &s->device[s->n_devices++];

		scenario_product(name, d);
		d->about.minor = -1;
	}
	return 0;
}

static const struct {
	const char *name;
	int (*take)(struct scenario_line *);
} statements[] = {
	{ "driver", on_driver },
	{ "nvml", on_nvml },
	{ "cuda", on_cuda },
	{ "init_error", on_init_error },
	{ "process_layout", on_process_layout },
	{ "strict_versions", on_strict_versions },
	{ "pcie_read", on_pcie_read },
	{ "call_time", on_call_time },
	{ "no_process_utilization", on_no_process_utilization },
	{ "pids", on_pids },
	{ "gpu", on_gpu },
};

/* The same words for every device of a `gpu ... x N`. */
static int device_line(struct scenario_line *l)
{
	int r = 0;

	if (l->first_device >= l->scenario->n_devices)
		return scenario_wrong(l, "an indented line before the first gpu", NULL);
	while (l->at < l->n && !r) {
		int at = l->at, behind = at;

		for (int i = l->first_device; i < l->scenario->n_devices && !r; i++) {
			l->at = at + 1;
			r = scenario_device_statement(l, l->word[at], &l->scenario->device[i]);
			behind = l->at;
		}
		l->at = behind;
	}
	return r;
}

int scenario_statement(struct scenario_line *l)
{
	if (l->indented)
		return device_line(l);
	for (size_t i = 0; i < ARRAY_LEN(statements); i++)
		if (scenario_is(l, statements[i].name))
			return statements[i].take(l);
	return scenario_wrong(
	    l, "no such statement about the driver (those about a GPU are indented)", l->word[0]);
}
