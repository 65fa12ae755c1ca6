/* SPDX-License-Identifier: MIT
 *
 * ZE_AFFINITY_MASK ("0,1.0": root device, or a tile of it) and ONEAPI_DEVICE_SELECTOR
 * ("level_zero:0,2;opencl:cpu", "*:gpu", "!level_zero:1").
 */
#include "base/scan.h"
#include "gpu/visible.h"
#include "gpu/visible_list.h"

#include <string.h>

/* Level Zero puts discrete GPUs before the integrated one unless told to count by PCI address. */
static bool order_known(const struct gpu_snapshot *s, const struct visible_rows *rows,
			const char *environ, size_t n)
{
	struct scan value;

	if (visible_env(environ, n, "ZE_ENABLE_PCI_ID_DEVICE_ORDER", &value) &&
	    visible_word(&value, "1"))
		return true;
	for (int i = 1; i < rows->n; i++)
		if (s->device[rows->row[i]].unified != s->device[rows->row[0]].unified)
			return false;
	return true;
}

/* "1" or "1.0": the number of the GPU, of which at least a tile is wanted. */
static bool root_device(struct scan entry, uint64_t *ret)
{
	uint64_t tile;

	if (entry.p >= entry.end || *entry.p < '0' || *entry.p > '9' || !scan_u64(&entry, ret))
		return false;
	while (scan_lit(&entry, "."))
		if (!scan_lit(&entry, "*") && !scan_u64(&entry, &tile))
			return false;
	return scan_end(&entry);
}

/* Some, but not all, of GPUs whose numbers are not known. */
static bool cannot_tell(const struct gpu_snapshot *s, bool ordered, int count, int n,
			struct gpu_visible *v)
{
	if (ordered || count == 0 || count >= n)
		return false;
	visible_all(s, GPU_INTEL, GPU_ALLOWED_UNKNOWN, v);
	visible_why(v,
		    "Level Zero numbers integrated and discrete GPUs in an order of its own: set "
		    "ZE_ENABLE_PCI_ID_DEVICE_ORDER=1");
	return true;
}

/* Entries that name no GPU are passed over. */
static bool affinity(const struct gpu_snapshot *s, struct scan list, bool ordered,
		     struct visible_rows *rows, struct gpu_visible *v)
{
	bool taken[GPU_DEVICES] = { false };
	struct visible_rows kept = { .n = 0 };
	struct scan entry;
	uint64_t index;

	while (visible_entry(&list, &entry))
		if (root_device(entry, &index) && index < (uint64_t)rows->n)
			taken[index] = true;
	for (int i = 0; i < rows->n; i++)
		if (taken[i])
			kept.row[kept.n++] = rows->row[i];
	if (cannot_tell(s, ordered, kept.n, rows->n, v))
		return false;
	visible_all(s, GPU_INTEL, GPU_ALLOWED_NO, v);
	for (int i = 0; i < kept.n; i++)
		v->allowed[kept.row[i]] = GPU_ALLOWED_YES;
	*rows = kept;
	return true;
}

/* One "backend:devices" term; `taken` by place in the list of rows. */
static void selector_term(struct scan term, int n, bool *taken)
{
	struct scan devices = term, backend = term, entry;
	uint64_t index;

	if (!scan_after(&devices, ':'))
		return;
	backend.end = devices.p - 1;
	if (!visible_word(&backend, "level_zero") && !visible_word(&backend, "opencl") &&
	    !visible_word(&backend, "*"))
		return;
	while (visible_entry(&devices, &entry)) {
		bool every = visible_word(&entry, "*") || visible_word(&entry, "gpu") ||
			     visible_word(&entry, "*.*") || visible_word(&entry, "gpu.*");

		for (int i = 0; every && i < n; i++)
			taken[i] = true;
		if (!every && root_device(entry, &index) && index < (uint64_t)n)
			taken[index] = true;
	}
}

static void selector(const struct gpu_snapshot *s, struct scan list, bool ordered,
		     const struct visible_rows *rows, struct gpu_visible *v)
{
	bool taken[GPU_DEVICES] = { false }, dropped[GPU_DEVICES] = { false };
	bool accepts = false;
	int count = 0;

	while (list.p < list.end) {
		const char *semicolon = memchr(list.p, ';', (size_t)(list.end - list.p));
		struct scan term = { .p = list.p, .end = semicolon ? semicolon : list.end };
		bool not_these;

		scan_blank(&term);
		not_these = scan_lit(&term, "!");
		selector_term(term, rows->n, not_these ? dropped : taken);
		accepts |= !not_these;
		list.p = term.end + (semicolon != NULL);
	}
	for (int i = 0; i < rows->n; i++) {
		taken[i] = (taken[i] || !accepts) && !dropped[i];
		count += taken[i];
	}
	if (cannot_tell(s, ordered, count, rows->n, v))
		return;
	visible_all(s, GPU_INTEL, GPU_ALLOWED_NO, v);
	for (int i = 0; i < rows->n; i++)
		if (taken[i])
			v->allowed[rows->row[i]] = GPU_ALLOWED_YES;
}

void visible_intel(const struct gpu_snapshot *s, const char *environ, size_t n,
		   struct gpu_visible *v)
{
	struct visible_rows rows;
	struct scan value;
	bool ordered;

	visible_rows(s, GPU_INTEL, &rows);
	ordered = order_known(s, &rows, environ, n);
	/* An empty mask is none. */
	if (visible_env(environ, n, "ZE_AFFINITY_MASK", &value) && !scan_end(&value)) {
		visible_shown(v, GPU_INTEL, "ZE_AFFINITY_MASK", value);
		if (!affinity(s, value, ordered, &rows, v))
			return;
	}
	/* Its numbers count what the mask left. */
	if (visible_env(environ, n, "ONEAPI_DEVICE_SELECTOR", &value) && !scan_end(&value)) {
		visible_shown(v, GPU_INTEL, "ONEAPI_DEVICE_SELECTOR", value);
		selector(s, value, ordered, &rows, v);
	}
}
