/* SPDX-License-Identifier: MIT
 *
 * The masks of NVIDIA and AMD; those of Intel are in visible_intel.c.
 */
#include "gpu/visible.h"

#include "base/scan.h"
#include "base/text.h"
#include "gpu/visible_list.h"

#include <stdio.h>
#include <string.h>

bool visible_env(const char *environ, size_t n, const char *name, struct scan *ret)
{
	size_t length = strlen(name);

	for (const char *p = environ, *end = environ + n; p < end;) {
		size_t left = (size_t)(end - p), line = strnlen(p, left);

		if (line > length && p[length] == '=' && memcmp(p, name, length) == 0) {
			*ret = scan_of(p + length + 1, line - length - 1);
			return true;
		}
		p += line + 1;
	}
	return false;
}

bool visible_entry(struct scan *list, struct scan *ret)
{
	const char *comma;

	if (!list->p)
		return false;
	comma = list->p < list->end ? memchr(list->p, ',', (size_t)(list->end - list->p)) : NULL;
	*ret = (struct scan){ .p = list->p, .end = comma ? comma : list->end };
	list->p = comma ? comma + 1 : NULL;
	while (ret->p < ret->end && (*ret->p == ' ' || *ret->p == '\t'))
		ret->p++;
	while (ret->p < ret->end && (ret->end[-1] == ' ' || ret->end[-1] == '\t'))
		ret->end--;
	return true;
}

bool visible_word(const struct scan *s, const char *word)
{
	size_t n = strlen(word);

	return (size_t)(s->end - s->p) == n && memcmp(s->p, word, n) == 0;
}

void visible_shown(struct gpu_visible *v, enum gpu_vendor vendor, const char *name,
		   struct scan value)
{
	char text[sizeof(v->value[0])];
	size_t n = (size_t)(value.end - value.p);

	if (n >= sizeof(text))
		n = sizeof(text) - 1;
	if (n)
		memcpy(text, value.p, n);
	text[n] = '\0';
	v->masked[vendor] = true;
	text_copy(v->variable[vendor], sizeof(v->variable[vendor]), name);
	text_safe_copy(v->value[vendor], sizeof(v->value[vendor]), text);
}

void visible_why(struct gpu_visible *v, const char *why)
{
	if (!v->why[0])
		text_copy(v->why, sizeof(v->why), why);
}

void visible_rows(const struct gpu_snapshot *s, enum gpu_vendor vendor, struct visible_rows *ret)
{
	int rows = s->n_devices < GPU_DEVICES ? s->n_devices : GPU_DEVICES;

	ret->n = 0;
	for (int i = 0; i < rows; i++) {
		int at = ret->n;

		if (s->device[i].vendor != vendor || s->device[i].partition >= 0)
			continue;
		for (; at > 0 && s->device[ret->row[at - 1]].index > s->device[i].index; at--)
			ret->row[at] = ret->row[at - 1];
		ret->row[at] = i;
		ret->n++;
	}
}

void visible_all(const struct gpu_snapshot *s, enum gpu_vendor vendor, enum gpu_allowed a,
		 struct gpu_visible *v)
{
	for (int i = 0; i < s->n_devices && i < GPU_DEVICES; i++)
		if (s->device[i].vendor == vendor)
			v->allowed[i] = (uint8_t)a;
}

/* A whole GPU is allowed. By its number or UUID CUDA takes one of its MIG instances, and which one
 * is nowhere said. */
static void allow_whole(const struct gpu_snapshot *s, int row, struct gpu_visible *v)
{
	v->allowed[row] = GPU_ALLOWED_YES;
	for (int i = 0; i < s->n_devices && i < GPU_DEVICES; i++) {
		if (s->device[i].partition < 0 || s->device[i].parent != row ||
		    v->allowed[i] == GPU_ALLOWED_YES)
			continue;
		v->allowed[i] = GPU_ALLOWED_UNKNOWN;
		visible_why(v, "CUDA picks a MIG instance itself unless one is named by its UUID");
	}
}

static void allow_partition(const struct gpu_snapshot *s, int row, struct gpu_visible *v)
{
	v->allowed[row] = GPU_ALLOWED_YES;
	if (s->device[row].parent >= 0 && s->device[row].parent < GPU_DEVICES)
		v->allowed[s->device[row].parent] = GPU_ALLOWED_YES;
}

static bool same_letters(const char *a, const char *b, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char x = a[i] >= 'A' && a[i] <= 'Z' ? (char)(a[i] + 32) : a[i];
		char y = b[i] >= 'A' && b[i] <= 'Z' ? (char)(b[i] + 32) : b[i];

		if (x != y)
			return false;
	}
	return true;
}

int visible_uuid(const struct gpu_snapshot *s, enum gpu_vendor vendor, bool partition,
		 const struct scan *entry)
{
	size_t n = (size_t)(entry->end - entry->p);
	int found = -1;

	for (int i = 0; i < s->n_devices && i < GPU_DEVICES; i++) {
		const struct gpu_device *d = &s->device[i];
		size_t length = strnlen(d->uuid, sizeof(d->uuid));

		if (d->vendor != vendor || (d->partition >= 0) != partition || length < n ||
		    !same_letters(d->uuid, entry->p, n))
			continue;
		if (length == n)
			return i;
		if (found >= 0)
			return -1; /* a beginning that several share names none */
		found = i;
	}
	return found;
}

/* "MIG-GPU-5c89852c-d268-c3f3-1b07-005d5ae1dc3f/7/0": GPU, GPU instance, compute instance (drivers
 * before 470); "MIG-41b35014-3f8a-5b4c-..." since. */
static int find_mig(const struct gpu_snapshot *s, const struct scan *entry)
{
	struct scan old = *entry, gpu;
	const char *slash = memchr(entry->p, '/', (size_t)(entry->end - entry->p));
	uint64_t instance, compute;
	int parent;

	if (!slash)
		return visible_uuid(s, GPU_NVIDIA, true, entry);
	gpu = (struct scan){ .p = entry->p + strlen("MIG-"), .end = slash };
	old.p = slash + 1;
	if (gpu.p > gpu.end || !scan_u64(&old, &instance) || !scan_lit(&old, "/") ||
	    !scan_u64(&old, &compute) || !scan_end(&old))
		return -1;
	parent = visible_uuid(s, GPU_NVIDIA, false, &gpu);
	for (int i = 0; parent >= 0 && i < s->n_devices && i < GPU_DEVICES; i++)
		if (s->device[i].partition >= 0 && s->device[i].parent == parent &&
		    s->device[i].instance >= 0 && (uint64_t)s->device[i].instance == instance &&
		    s->device[i].compute_instance >= 0 &&
		    (uint64_t)s->device[i].compute_instance == compute)
			return i;
	return -1;
}

bool visible_index(struct scan entry, uint64_t *ret)
{
	(void)scan_lit(&entry, "+");
	return entry.p < entry.end && *entry.p >= '0' && *entry.p <= '9' && scan_u64(&entry, ret);
}

bool visible_any(const struct gpu_snapshot *s, enum gpu_vendor vendor, const struct gpu_visible *v)
{
	for (int i = 0; i < s->n_devices && i < GPU_DEVICES; i++)
		if (s->device[i].vendor == vendor && v->allowed[i] != GPU_ALLOWED_NO)
			return true;
	return false;
}

/* CUDA numbers GPUs fastest first (the guess of its runtime) unless CUDA_DEVICE_ORDER=PCI_BUS_ID. Of
 * equal GPUs none is faster: then that is PCI order too, which is NVML's. */
static bool cuda_order_known(const struct gpu_snapshot *s, const struct visible_rows *rows,
			     const char *environ, size_t n)
{
	struct scan order;

	if (visible_env(environ, n, "CUDA_DEVICE_ORDER", &order) &&
	    visible_word(&order, "PCI_BUS_ID"))
		return true;
	for (int i = 1; i < rows->n; i++) {
		const struct gpu_device *a = &s->device[rows->row[0]],
					*b = &s->device[rows->row[i]];

		if (strncmp(a->name, b->name, sizeof(a->name)) != 0)
			return false;
	}
	return true;
}

/* Indices "0,2": as CUDA reads them, with strtoul, so "1gpu" is 1 and "x" ends the list. One that is
 * given twice hides everything (CUDA answers "no device"; PyTorch counts the same way). */
static void cuda_indices(const struct gpu_snapshot *s, struct scan list, bool ordered,
			 const struct visible_rows *rows, struct gpu_visible *v)
{
	bool taken[GPU_DEVICES] = { false };
	struct scan entry;
	uint64_t index;
	int count = 0;

	while (visible_entry(&list, &entry) && visible_index(entry, &index) &&
	       index < (uint64_t)rows->n) {
		if (taken[index])
			return;
		taken[index] = true;
		count++;
	}
	if (!ordered && count > 0 && count < rows->n) {
		visible_all(s, GPU_NVIDIA, GPU_ALLOWED_UNKNOWN, v);
		visible_why(v, "CUDA numbers unlike GPUs by speed, not as the driver does: set "
			       "CUDA_DEVICE_ORDER=PCI_BUS_ID, or name them by UUID");
		return;
	}
	/* All of them, in whatever order, is all of them. */
	for (int i = 0; i < rows->n; i++)
		if (taken[i])
			allow_whole(s, rows->row[i], v);
}

/* The kind of the first entry is that of all: a list is ended by one of another kind. */
static void cuda_names(const struct gpu_snapshot *s, struct scan list, const char *prefix,
		       struct gpu_visible *v)
{
	bool taken[GPU_DEVICES] = { false };
	bool mig = strcmp(prefix, "MIG-") == 0;
	struct scan entry, rest;
	int row, count = 0, chosen[GPU_DEVICES];

	while (visible_entry(&list, &entry)) {
		rest = entry;
		if (!scan_lit(&rest, prefix))
			break;
		row = mig ? find_mig(s, &entry) : visible_uuid(s, GPU_NVIDIA, false, &entry);
		if (row < 0)
			break;
		if (taken[row])
			return;
		taken[row] = true;
		chosen[count++] = row;
	}
	for (int i = 0; i < count; i++) {
		if (mig)
			allow_partition(s, chosen[i], v);
		else
			allow_whole(s, chosen[i], v);
	}
}

static void cuda_mask(const struct gpu_snapshot *s, const char *environ, size_t n,
		      struct scan value, struct gpu_visible *v)
{
	struct visible_rows rows;
	struct scan first = value, list = value;

	visible_rows(s, GPU_NVIDIA, &rows);
	visible_all(s, GPU_NVIDIA, GPU_ALLOWED_NO, v);
	scan_blank(&first);
	if (scan_lit(&first, "GPU-"))
		cuda_names(s, list, "GPU-", v);
	else if (scan_lit(&first, "MIG-"))
		cuda_names(s, list, "MIG-", v);
	else
		cuda_indices(s, list, cuda_order_known(s, &rows, environ, n), &rows, v);
}

/* NVIDIA_VISIBLE_DEVICES is read by the container runtime, not by CUDA: it counts GPUs of the host.
 * Inside, where only those are left, their numbers fit nothing any more. */
static void container_mask(const struct gpu_snapshot *s, struct scan value, struct gpu_visible *v)
{
	struct visible_rows rows;
	struct scan list = value, entry, rest;
	int entries = 0;

	visible_rows(s, GPU_NVIDIA, &rows);
	visible_all(s, GPU_NVIDIA, GPU_ALLOWED_NO, v);
	if (visible_word(&value, "none"))
		return;
	if (visible_word(&value, "void")) {
		/* Device plugins set it when they hand the GPUs in themselves (CDI). */
		visible_all(s, GPU_NVIDIA, GPU_ALLOWED_UNKNOWN, v);
		visible_why(
		    v, "NVIDIA_VISIBLE_DEVICES=void: whoever made the container chose the GPUs");
		return;
	}
	while (visible_entry(&list, &entry)) {
		uint64_t index;
		int row = -1;

		entries++;
		rest = entry;
		if (scan_lit(&rest, "GPU-"))
			row = visible_uuid(s, GPU_NVIDIA, false, &entry);
		else if (scan_lit(&rest, "MIG-"))
			row = find_mig(s, &entry);
		else if (visible_index(entry, &index) && index < (uint64_t)rows.n)
			row = rows.row[index];
		if (row >= 0 && s->device[row].partition >= 0)
			allow_partition(s, row, v);
		else if (row >= 0)
			allow_whole(s, row, v);
	}
	/* As many as there are, or fewer than are asked for: we see what the container sees. */
	if (rows.n <= entries) {
		visible_all(s, GPU_NVIDIA,
			    rows.n == entries ? GPU_ALLOWED_YES : GPU_ALLOWED_UNKNOWN, v);
		if (rows.n < entries)
			visible_why(v, "NVIDIA_VISIBLE_DEVICES counts GPUs of the host");
	}
}

/* "all" hides nothing and gives nothing: images for CUDA have it set for whoever starts them. Empty is
 * as if it were not set: the container runtime does nothing then. */
static bool chooses(struct scan value)
{
	return !scan_end(&value) && !visible_word(&value, "all");
}

static void read_nvidia(const struct gpu_snapshot *s, const char *environ, size_t n,
			struct gpu_visible *v)
{
	struct scan value;

	if (visible_env(environ, n, "CUDA_VISIBLE_DEVICES", &value)) {
		visible_shown(v, GPU_NVIDIA, "CUDA_VISIBLE_DEVICES", value);
		cuda_mask(s, environ, n, value, v);
	} else if (visible_env(environ, n, "NVIDIA_VISIBLE_DEVICES", &value) && chooses(value)) {
		visible_shown(v, GPU_NVIDIA, "NVIDIA_VISIBLE_DEVICES", value);
		container_mask(s, value, v);
	}
}

/* A number and nothing else. */
static bool plain_index(struct scan entry, uint64_t *ret)
{
	return entry.p < entry.end && *entry.p >= '0' && *entry.p <= '9' && scan_u64(&entry, ret) &&
	       scan_end(&entry);
}

/* Keeps of `rows` those that are named, in that order. An invalid entry ends the list. One given twice
 * ends it as well for ROCr (RvdFilter), while HIP (ROCclr) passes over it. */
static void filter(const struct gpu_snapshot *s, struct scan list, bool twice_ends,
		   struct visible_rows *rows)
{
	struct visible_rows kept = { .n = 0 };
	struct scan entry, rest;

	while (visible_entry(&list, &entry)) {
		uint64_t index;
		int row = -1;
		bool twice = false;

		rest = entry;
		if (scan_lit(&rest, "GPU-"))
			row = visible_uuid(s, GPU_AMD, false, &entry);
		else if (plain_index(entry, &index) && index < (uint64_t)rows->n)
			row = rows->row[index];
		for (int i = 0; i < kept.n; i++)
			twice |= kept.row[i] == row;
		if (row < 0 || (twice && twice_ends))
			break;
		if (!twice)
			kept.row[kept.n++] = row;
	}
	*rows = kept;
}

/* ROCr hides first; HIP (and what names itself CUDA on AMD) counts in what is left, OpenCL's ordinal
 * as well. An empty HIP_VISIBLE_DEVICES is as if it were not set, an empty ROCR_ one hides all. */
static void read_amd(const struct gpu_snapshot *s, const char *environ, size_t n,
		     struct gpu_visible *v)
{
	static const char *const upper[] = { "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES",
					     "GPU_DEVICE_ORDINAL" };
	struct visible_rows rows;
	struct scan value;
	bool masked = false;

	visible_rows(s, GPU_AMD, &rows);
	if (visible_env(environ, n, "ROCR_VISIBLE_DEVICES", &value)) {
		visible_shown(v, GPU_AMD, "ROCR_VISIBLE_DEVICES", value);
		filter(s, value, true, &rows);
		masked = true;
	}
	for (size_t i = 0; i < sizeof(upper) / sizeof(upper[0]); i++) {
		if (!visible_env(environ, n, upper[i], &value) || scan_end(&value))
			continue;
		visible_shown(v, GPU_AMD, upper[i], value);
		filter(s, value, false, &rows);
		masked = true;
		break;
	}
	if (!masked)
		return;
	visible_all(s, GPU_AMD, GPU_ALLOWED_NO, v);
	for (int i = 0; i < rows.n; i++)
		v->allowed[rows.row[i]] = GPU_ALLOWED_YES;
}

void gpu_visible_read(const struct gpu_snapshot *s, const char *environ, size_t n,
		      struct gpu_visible *ret)
{
	*ret = (struct gpu_visible){ 0 };
	for (int i = 0; i < GPU_VENDORS; i++)
		visible_all(s, (enum gpu_vendor)i, GPU_ALLOWED_YES, ret);
	read_nvidia(s, environ, n, ret);
	read_amd(s, environ, n, ret);
	visible_intel(s, environ, n, ret);
	for (int i = 0; i < GPU_VENDORS; i++)
		ret->none[i] = ret->masked[i] && !visible_any(s, (enum gpu_vendor)i, ret);
}
