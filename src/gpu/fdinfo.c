/* SPDX-License-Identifier: MIT */
#include "gpu/fdinfo.h"

#include "base/scan.h"

#include <string.h>

/* A word into a fixed text; false when it does not fit: half a name would be another's. */
static bool take_word(struct scan s, char *dst, size_t size)
{
	const char *p;
	size_t n;

	if (!scan_word(&s, &p, &n) || n >= size)
		return false;
	memcpy(dst, p, n);
	dst[n] = '\0';
	return true;
}

/* Fits, and does not end before its end. */
static bool is_name(struct scan name, size_t size)
{
	size_t n = (size_t)(name.end - name.p);

	return n > 0 && n < size && !memchr(name.p, '\0', n);
}

static struct fdinfo_engine *engine(struct fdinfo *f, struct scan name)
{
	size_t n = (size_t)(name.end - name.p);
	struct fdinfo_engine *e;

	if (!is_name(name, sizeof(e->name)))
		return NULL;
	for (int i = 0; i < f->n_engines; i++)
		if (strlen(f->engine[i].name) == n && memcmp(f->engine[i].name, name.p, n) == 0)
			return &f->engine[i];
	if (f->n_engines >= FDINFO_ENGINES)
		return NULL;
	e = &f->engine[f->n_engines++];
	*e = (struct fdinfo_engine){ .time_ns = -1, .cycles = -1, .total = -1, .capacity = 1 };
	memcpy(e->name, name.p, n);
	return e;
}

static struct fdinfo_region *region(struct fdinfo *f, struct scan name)
{
	size_t n = (size_t)(name.end - name.p);
	struct fdinfo_region *r;

	if (!is_name(name, sizeof(r->name)))
		return NULL;
	for (int i = 0; i < f->n_regions; i++)
		if (strlen(f->region[i].name) == n && memcmp(f->region[i].name, name.p, n) == 0)
			return &f->region[i];
	if (f->n_regions >= FDINFO_REGIONS)
		return NULL;
	r = &f->region[f->n_regions++];
	*r = (struct fdinfo_region){ .memory = -1, .total = -1, .resident = -1 };
	memcpy(r->name, name.p, n);
	return r;
}

/* "16384 KiB", "2 MiB", "0": without a unit bytes. "kB" is what the old form calls KiB. */
static bool take_bytes(struct scan s, int64_t *ret)
{
	uint64_t v;
	unsigned shift = 0;

	if (!scan_u64(&s, &v))
		return false;
	scan_blank(&s);
	if (scan_lit(&s, "KiB") || scan_lit(&s, "kB") || scan_lit(&s, "kiB"))
		shift = 10;
	else if (scan_lit(&s, "MiB"))
		shift = 20;
	else if (scan_lit(&s, "GiB"))
		shift = 30;
	if (v > (uint64_t)INT64_MAX >> shift)
		return false;
	*ret = (int64_t)(v << shift);
	return true;
}

static void take_count(struct scan value, int64_t *ret)
{
	uint64_t v;

	if (ret && scan_u64(&value, &v) && v <= INT64_MAX)
		*ret = (int64_t)v;
}

static void engine_key(struct fdinfo *f, struct scan key, struct scan value)
{
	struct fdinfo_engine *e;

	if (scan_lit(&key, "drm-engine-capacity-")) {
		e = engine(f, key);
		take_count(value, e ? &e->capacity : NULL);
		if (e && (e->capacity < 1 || e->capacity > 1024))
			e->capacity = 1;
	} else if (scan_lit(&key, "drm-engine-")) {
		e = engine(f, key);
		take_count(value, e ? &e->time_ns : NULL);
	} else if (scan_lit(&key, "drm-total-cycles-")) {
		e = engine(f, key);
		take_count(value, e ? &e->total : NULL);
	} else if (scan_lit(&key, "drm-cycles-")) {
		e = engine(f, key);
		take_count(value, e ? &e->cycles : NULL);
	}
}

static void region_key(struct fdinfo *f, struct scan key, struct scan value)
{
	struct fdinfo_region *r = NULL;
	int64_t bytes, *to = NULL;

	if (scan_lit(&key, "drm-memory-"))
		to = (r = region(f, key)) ? &r->memory : NULL;
	else if (scan_lit(&key, "drm-resident-"))
		to = (r = region(f, key)) ? &r->resident : NULL;
	else if (scan_lit(&key, "drm-total-"))
		to = (r = region(f, key)) ? &r->total : NULL;
	if (to && take_bytes(value, &bytes))
		*to = bytes;
}

static bool is_key(const struct scan *key, const char *name)
{
	size_t n = strlen(name);

	return (size_t)(key->end - key->p) == n && memcmp(key->p, name, n) == 0;
}

static bool begins(const struct scan *key, const char *with)
{
	struct scan s = *key;

	return scan_lit(&s, with);
}

/* "gfx0", "compute1", "dec0": engine names of the old form, each with its percentage. */
static bool is_old_engine(struct scan key)
{
	uint64_t number;

	return (scan_lit(&key, "gfx") || scan_lit(&key, "compute") || scan_lit(&key, "dma") ||
		scan_lit(&key, "dec") || scan_lit(&key, "enc_1") || scan_lit(&key, "enc") ||
		scan_lit(&key, "uvdd") || scan_lit(&key, "uvde") || scan_lit(&key, "jpeg")) &&
	       scan_u64(&key, &number) && scan_end(&key);
}

static void old_key(struct fdinfo *f, struct scan key, struct scan value)
{
	static const char vram[] = "vram", gtt[] = "gtt";
	struct fdinfo_region *r = NULL;
	int64_t v;

	if (is_key(&key, "pdev"))
		(void)take_word(value, f->pdev, sizeof(f->pdev));
	else if (is_key(&key, "pasid") && !f->has_client)
		/* Kernels of 5.19 and later write both: drm-client-id is the one that tells
		 * two opened files of one process apart. */
		f->has_client = scan_u64(&value, &f->client);
	else if (is_key(&key, "vram mem"))
		r = region(f, scan_of(vram, strlen(vram)));
	else if (is_key(&key, "gtt mem"))
		r = region(f, scan_of(gtt, strlen(gtt)));
	else if (is_old_engine(key) && scan_fixed(&value, 2, &v) && scan_lit(&value, "%") &&
		 v >= 0 && v <= 10000 && v > f->share)
		f->share = v;
	if (r && take_bytes(value, &v))
		r->memory = v;
}

bool fdinfo_parse(const char *text, size_t n, struct fdinfo *ret)
{
	struct scan s = scan_of(text, n), line;

	*ret = (struct fdinfo){ .share = -1 };
	while (scan_line(&s, &line)) {
		struct scan key = line, value = line;

		if (!scan_after(&value, ':'))
			continue;
		key.end = value.p - 1;
		if (!begins(&key, "drm-"))
			old_key(ret, key, value);
		else if (is_key(&key, "drm-driver"))
			(void)take_word(value, ret->driver, sizeof(ret->driver));
		else if (is_key(&key, "drm-pdev"))
			(void)take_word(value, ret->pdev, sizeof(ret->pdev));
		else if (is_key(&key, "drm-client-id"))
			ret->has_client = scan_u64(&value, &ret->client);
		else if (begins(&key, "drm-engine-") || begins(&key, "drm-cycles-") ||
			 begins(&key, "drm-total-cycles-"))
			engine_key(ret, key, value);
		else
			region_key(ret, key, value);
	}
	return ret->pdev[0] && (ret->driver[0] || ret->n_regions > 0 || ret->share >= 0);
}

static int64_t sum_kb(const struct fdinfo *f, const char *a, const char *b)
{
	int64_t sum = -1;

	for (int i = 0; i < f->n_regions; i++) {
		const struct fdinfo_region *r = &f->region[i];
		int64_t v = r->resident >= 0 ? r->resident : r->memory >= 0 ? r->memory : r->total;

		if ((strncmp(r->name, a, strlen(a)) != 0 && strncmp(r->name, b, strlen(b)) != 0) ||
		    v < 0)
			continue;
		/* At most 8 regions of 2^53 KiB: no overflow. */
		sum = (sum < 0 ? 0 : sum) + v / 1024;
	}
	return sum;
}

int64_t fdinfo_device_kb(const struct fdinfo *f)
{
	return sum_kb(f, "vram", "local");
}

int64_t fdinfo_shared_kb(const struct fdinfo *f)
{
	return sum_kb(f, "gtt", "system");
}
