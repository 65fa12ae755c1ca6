/* SPDX-License-Identifier: MIT
 *
 * CUDA_VISIBLE_DEVICES in all its forms: "1,0", "", "-1", "GPU-4d1c" (a unique beginning), "MIG-...".
 * The list ends at the first entry that is wrong, as the driver's does. On a GPU in MIG mode an index
 * or GPU uuid means its first instance.
 */
#include "cuda_local.h"

#include "base/scan.h"

static double speed(const struct vgpu_about *a)
{
	return (double)a->cores * a->clock_sm_max;
}

static uint64_t place(const struct vgpu_about *a)
{
	return (uint64_t)a->domain << 32 | (uint64_t)a->bus << 16 | a->device;
}

/* The fastest first unless CUDA_DEVICE_ORDER=PCI_BUS_ID; equals by their place on the bus. */
static void enumerate(const struct scenario *s, bool by_place, int order[VGPU_DEVICES])
{
	for (int i = 0; i < s->n_devices; i++) {
		const struct vgpu_about *a = &s->device[i].about;
		int k = i;

		for (; k > 0; k--) {
			const struct vgpu_about *b = &s->device[order[k - 1]].about;
			bool before = place(a) < place(b);

			if (!by_place && speed(a) > speed(b))
				before = true;
			if (!by_place && speed(a) < speed(b))
				before = false;
			if (!before)
				break;
			order[k] = order[k - 1];
		}
		order[k] = i;
	}
}

static bool starts(const char *text, const char *word, size_t n)
{
	return strlen(text) >= n && strncasecmp(text, word, n) == 0;
}

static struct cuda_visible whole(const struct scenario *s, int device)
{
	return (struct cuda_visible){ device, s->device[device].about.mig ? 0 : -1 };
}

/* Exactly one device or instance whose uuid starts so. */
static bool by_uuid(const struct scenario *s, const char *word, size_t n, struct cuda_visible *ret)
{
	int found = 0;

	for (int d = 0; d < s->n_devices; d++) {
		const struct vgpu_about *a = &s->device[d].about;

		if (starts(a->uuid, word, n)) {
			*ret = whole(s, d);
			found++;
		}
		for (int p = 0; p < a->n_partitions; p++) {
			char old[128]; /* MIG-GPU-uuid/gi/ci, until driver 470 */

			snprintf(old, sizeof(old), "MIG-%s/%d/%d", a->uuid, a->partition[p].gi,
				 a->partition[p].ci);
			if (!starts(a->partition[p].uuid, word, n) && !starts(old, word, n))
				continue;
			*ret = (struct cuda_visible){ d, p };
			found++;
		}
	}
	return found == 1 && n > 4;
}

static bool entry(const struct scenario *s, const int order[VGPU_DEVICES], const char *word,
		  size_t n, struct cuda_visible *ret)
{
	struct scan c = scan_of(word, n);
	uint64_t index;

	if (scan_u64(&c, &index) && scan_end(&c)) {
		if (index >= (uint64_t)s->n_devices)
			return false;
		*ret = whole(s, order[index]);
		return true;
	}
	if (n < 4 || (strncasecmp(word, "GPU-", 4) != 0 && strncasecmp(word, "MIG-", 4) != 0))
		return false;
	return by_uuid(s, word, n, ret);
}

int cuda_visible(const struct scenario *s, const char *visible, const char *order_word,
		 struct cuda_visible *ret)
{
	int order[VGPU_DEVICES], n = 0;

	enumerate(s, order_word && strcmp(order_word, "PCI_BUS_ID") == 0, order);
	if (!visible) {
		for (; n < s->n_devices; n++)
			ret[n] = whole(s, order[n]);
		return n;
	}
	while (n < CUDA_VISIBLE) {
		size_t length;
		bool again = false;

		visible += strspn(visible, " \t");
		length = strcspn(visible, ", \t");
		if (!length || !entry(s, order, visible, length, &ret[n]))
			break;
		for (int i = 0; i < n; i++)
			again |=
			    ret[i].device == ret[n].device && ret[i].partition == ret[n].partition;
		if (again)
			break;
		n++;
		visible += length;
		visible += strspn(visible, " \t");
		if (*visible++ != ',')
			break;
	}
	return n;
}
