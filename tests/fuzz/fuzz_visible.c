/* SPDX-License-Identifier: MIT
 *
 * A program's environment, with the variables that hide GPUs from it, on a machine that has some of each
 * vendor.
 */
#include "fuzz.h"
#include "gpu/visible.h"

#include <string.h>

static struct gpu_device *add(struct gpu_snapshot *s, enum gpu_vendor v, int index,
			      const char *name, const char *uuid)
{
	struct gpu_device *d = gpu_add_device(s, v);

	d->index = (int16_t)index;
	snprintf(d->name, sizeof(d->name), "%s", name);
	snprintf(d->uuid, sizeof(d->uuid), "%s", uuid);
	snprintf(d->pci, sizeof(d->pci), "0000:%02x:00.0", 0x10 * (v + 1) + index);
	return d;
}

static const struct gpu_snapshot *machine(void)
{
	static struct gpu_snapshot s;
	struct gpu_device *d;

	if (s.n_devices)
		return &s;
	add(&s, GPU_NVIDIA, 0, "A", "GPU-aaaa1111-0000");
	add(&s, GPU_NVIDIA, 1, "A", "GPU-aaaa2222-0000")->partitioned = true;
	d = add(&s, GPU_NVIDIA, 1, "A MIG 3g.40gb", "MIG-11111111-x");
	d->partition = 0;
	d->parent = 1;
	d->instance = 2;
	d->compute_instance = 0;
	add(&s, GPU_AMD, 0, "MI300", "0x1234abcd1234abcd");
	add(&s, GPU_AMD, 1, "MI300", "0x1234abcd99990000");
	add(&s, GPU_INTEL, 0, "Max 1550", "");
	add(&s, GPU_INTEL, 1, "Max 1550", "");
	return &s;
}

static void check_text(const char *text, size_t size)
{
	size_t n = strnlen(text, size);

	must(n < size, "texts end");
	for (size_t i = 0; i < n; i++)
		must((unsigned char)text[i] >= ' ' && text[i] != 0x7f, "texts can be shown");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const struct gpu_snapshot *s = machine();
	char *text = malloc(n ? n : 1); /* no byte more: what is read beyond it is seen */
	struct gpu_visible v;

	if (!text)
		return 0;
	memcpy(text, data, n);
	gpu_visible_read(s, text, n, &v);
	for (int i = 0; i < s->n_devices; i++) {
		must(v.allowed[i] <= GPU_ALLOWED_YES, "it may or it may not");
		must(!v.none[s->device[i].vendor] || v.allowed[i] != GPU_ALLOWED_YES,
		     "what hides all shows none");
	}
	for (int i = 0; i < GPU_VENDORS; i++) {
		must(!v.none[i] || v.masked[i], "without a variable nothing is hidden");
		must(!v.masked[i] == !v.variable[i][0], "a mask has a name");
		check_text(v.variable[i], sizeof(v.variable[i]));
		check_text(v.value[i], sizeof(v.value[i]));
	}
	check_text(v.why, sizeof(v.why));
	free(text);
	return 0;
}
