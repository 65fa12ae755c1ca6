/* SPDX-License-Identifier: MIT */
#include "gpu/drm.h"

#include "base/io.h"
#include "base/scan.h"
#include "base/text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static bool listed(const char *const *names, const char *name)
{
	for (; *names; names++)
		if (strcmp(*names, name) == 0)
			return true;
	return false;
}

/* "PCI_ID=1002:73BF": two numbers in hex. */
static bool take_ids(struct scan s, uint32_t *a, uint32_t *b)
{
	uint64_t x, y;

	if (!scan_hex(&s, &x) || !scan_lit(&s, ":") || !scan_hex(&s, &y) || x > 0xffff ||
	    y > 0xffff)
		return false;
	*a = (uint32_t)x;
	*b = (uint32_t)y;
	return true;
}

static void take_text(const struct scan *s, char *dst, size_t size)
{
	size_t n = (size_t)(s->end - s->p);

	if (n == 0 || n >= size)
		return;
	memcpy(dst, s->p, n);
	dst[n] = '\0';
}

/* device/uevent, which touches no hardware:
 *   DRIVER=amdgpu
 *   PCI_CLASS=30000
 *   PCI_ID=1002:73BF
 *   PCI_SUBSYS_ID=1002:0E3A
 *   PCI_SLOT_NAME=0000:03:00.0
 * Partitions of a MI300 are platform devices without these lines: they are part of their GPU. */
static bool read_uevent(int root, struct drm_card *c)
{
	char path[64], text[1024];
	struct scan s, line;
	ssize_t n;

	snprintf(path, sizeof(path), "%s/uevent", c->device);
	n = io_read(root, path, text, sizeof(text));
	if (n <= 0)
		return false;
	s = scan_of(text, (size_t)n);
	while (scan_line(&s, &line)) {
		uint64_t v;

		if (scan_lit(&line, "DRIVER="))
			take_text(&line, c->driver, sizeof(c->driver));
		else if (scan_lit(&line, "PCI_SLOT_NAME="))
			take_text(&line, c->pci, sizeof(c->pci));
		else if (scan_lit(&line, "PCI_ID="))
			(void)take_ids(line, &c->vendor_id, &c->device_id);
		else if (scan_lit(&line, "PCI_SUBSYS_ID="))
			(void)take_ids(line, &c->subsystem_vendor, &c->subsystem_device);
		else if (scan_lit(&line, "PCI_CLASS=") && scan_hex(&line, &v) && v <= 0xffffff)
			c->pci_class = (uint32_t)v;
	}
	return c->pci[0] && c->driver[0];
}

/* The number behind a name, "card12" -> 12; -1: another name ("card0-DP-1" is a connector). */
static int number_of(const char *name, const char *prefix)
{
	struct scan s = scan_of(name, strlen(name));
	uint64_t n;

	return scan_lit(&s, prefix) && scan_u64(&s, &n) && scan_end(&s) && n < 100000 ? (int)n : -1;
}

static void find_inside(int root, struct drm_card *c)
{
	char path[64];
	struct io_dir dir;
	const char *name;

	snprintf(path, sizeof(path), "%s/drm", c->device);
	if (io_dir_open(&dir, root, path) == 0) {
		while ((name = io_dir_next(&dir)))
			if (number_of(name, "renderD") >= 0)
				c->render = number_of(name, "renderD");
		io_dir_close(&dir);
	}
	snprintf(path, sizeof(path), "%s/hwmon", c->device);
	if (io_dir_open(&dir, root, path) == 0) {
		while ((name = io_dir_next(&dir)))
			if (number_of(name, "hwmon") >= 0 && !c->hwmon[0])
				snprintf(c->hwmon, sizeof(c->hwmon), "%s/hwmon/hwmon%d", c->device,
					 number_of(name, "hwmon"));
		io_dir_close(&dir);
	}
}

void drm_find(int root, uint32_t vendor_id, const char *const *drivers, struct drm_cards *ret)
{
	struct io_dir dir;
	const char *name;

	ret->n = 0;
	if (io_dir_open(&dir, root, "sys/class/drm") != 0)
		return;
	while (ret->n < GPU_DEVICES && (name = io_dir_next(&dir))) {
		struct drm_card c = { .card = number_of(name, "card"), .render = -1 };
		int at = ret->n;

		if (c.card < 0)
			continue;
		snprintf(c.top, sizeof(c.top), "sys/class/drm/card%d", c.card);
		snprintf(c.device, sizeof(c.device), "sys/class/drm/card%d/device", c.card);
		if (!read_uevent(root, &c) || c.vendor_id != vendor_id ||
		    !listed(drivers, c.driver))
			continue;
		find_inside(root, &c);
		/* All addresses have the same width: the order of the text is that of the bus. */
		for (; at > 0 && strcmp(ret->card[at - 1].pci, c.pci) > 0; at--)
			ret->card[at] = ret->card[at - 1];
		ret->card[at] = c;
		ret->n++;
	}
	io_dir_close(&dir);
}

enum gpu_have drm_have(int error)
{
	switch (error) {
	case 0:
		return GPU_KNOWN;
	case -ENOENT:
	case -ENOTDIR:
	case -EISDIR:
	case -EOPNOTSUPP:
	case -EINVAL: /* hwmon answers this for a sensor that is not fitted */
		return GPU_NOT_SUPPORTED;
	case -EACCES:
	case -EPERM:
		return GPU_NO_PERMISSION;
	case -ENODEV:
	case -ENXIO:
		return GPU_LOST;
	default:
		return GPU_FAILED;
	}
}

ssize_t drm_text(const struct drm_reader *r, const char *dir, const char *name, char *buf,
		 size_t size)
{
	char path[160];
	ssize_t n;

	buf[0] = '\0';
	if (!dir[0] || snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int)sizeof(path))
		return -ENOENT;
	gpu_call_begin(r->w, r->lane, name, r->card->pci, r->index);
	n = io_read(r->w->root, path, buf, size);
	gpu_call_end(r->w, r->lane);
	while (n > 0 && (buf[n - 1] == '\n' || buf[n - 1] == ' '))
		buf[--n] = '\0';
	return n;
}

enum gpu_have drm_number(const struct drm_reader *r, const char *dir, const char *name,
			 int64_t *ret)
{
	char text[64];
	ssize_t n = drm_text(r, dir, name, text, sizeof(text));
	struct scan s;

	if (n < 0)
		return drm_have((int)n);
	s = scan_of(text, (size_t)n);
	return scan_i64(&s, ret) && scan_end(&s) ? GPU_KNOWN : GPU_FAILED;
}

void drm_metric(const struct drm_reader *r, struct gpu_device *d, enum metric_id m, const char *dir,
		const char *name, int64_t num, int64_t den)
{
	int64_t v;
	enum gpu_have have = drm_number(r, dir, name, &v);

	/* No figure that is read this way can be below zero. */
	if (have == GPU_KNOWN && (v < 0 || v > INT64_MAX / num))
		have = GPU_FAILED;
	if (have == GPU_KNOWN)
		gpu_put(d, m, v * num / den);
	else
		gpu_lacks(d, m, have);
}

void drm_property(const struct drm_reader *r, struct gpu_device *d, enum gpu_property_id p,
		  const char *dir, const char *name, int64_t den)
{
	int64_t v;
	enum gpu_have have = drm_number(r, dir, name, &v);

	if (have == GPU_KNOWN && v >= 0)
		gpu_put_number(d, p, v / den);
	else
		gpu_lacks_property(d, p, have == GPU_KNOWN ? GPU_NOT_SUPPORTED : have);
}

void drm_property_text(const struct drm_reader *r, struct gpu_device *d, enum gpu_property_id p,
		       const char *dir, const char *name)
{
	char text[128];
	ssize_t n = drm_text(r, dir, name, text, sizeof(text));

	if (n > 0)
		gpu_put_text(d, p, text);
	else
		gpu_lacks_property(d, p, n < 0 ? drm_have((int)n) : GPU_NOT_SUPPORTED);
}

/* "active", "suspended", "suspending", "resuming", "error", "unsupported". */
bool drm_asleep(const struct drm_reader *r)
{
	char text[32];

	return drm_text(r, r->card->device, "power/runtime_status", text, sizeof(text)) > 0 &&
	       (strcmp(text, "suspended") == 0 || strcmp(text, "suspending") == 0);
}

int drm_link_generation(const char *text, size_t n)
{
	static const int64_t tenths[] = { 25, 50, 80, 160, 320, 640 };
	struct scan s = scan_of(text, n);
	int64_t v;

	if (!scan_fixed(&s, 1, &v))
		return 0;
	for (size_t i = 0; i < sizeof(tenths) / sizeof(tenths[0]); i++)
		if (v == tenths[i])
			return (int)i + 1;
	return 0;
}

static void link_now(const struct drm_reader *r, struct gpu_device *d)
{
	char text[48];
	ssize_t n = drm_text(r, r->card->device, "current_link_speed", text, sizeof(text));
	int generation = n > 0 ? drm_link_generation(text, (size_t)n) : 0;

	/* Integrated GPUs say "Unknown" and width 0. */
	if (generation > 0) {
		gpu_put(d, M_GPU_PCIE_GEN, generation);
		drm_metric(r, d, M_GPU_PCIE_WIDTH, r->card->device, "current_link_width", 1, 1);
		return;
	}
	gpu_lacks(d, M_GPU_PCIE_GEN, n < 0 ? drm_have((int)n) : GPU_NOT_SUPPORTED);
	gpu_lacks(d, M_GPU_PCIE_WIDTH, n < 0 ? drm_have((int)n) : GPU_NOT_SUPPORTED);
}

/* Modules built outside the kernel tell a version; the others are as old as the kernel. */
static void driver_version(const struct drm_reader *r, struct gpu_device *d)
{
	char path[64], text[64] = "";
	ssize_t n;

	snprintf(path, sizeof(path), "sys/module/%s/version", r->card->driver);
	n = io_read(r->w->root, path, text, sizeof(text));
	if (n <= 0)
		n = io_read(r->w->root, "proc/sys/kernel/osrelease", text, sizeof(text));
	if (n <= 0)
		return;
	text[strcspn(text, "\n")] = '\0';
	text_safe_copy(d->driver, sizeof(d->driver), text);
	gpu_put_text(d, GPU_P_DRIVER, text);
}

static void pci_properties(const struct drm_reader *r, struct gpu_device *d)
{
	const struct drm_card *c = r->card;
	struct scan s = scan_of(c->pci, strlen(c->pci));
	uint64_t domain, bus, device;

	if (scan_hex(&s, &domain) && scan_lit(&s, ":") && scan_hex(&s, &bus) && scan_lit(&s, ":") &&
	    scan_hex(&s, &device)) {
		gpu_put_number(d, GPU_P_PCI_DOMAIN, (int64_t)domain);
		gpu_put_number(d, GPU_P_PCI_BUS, (int64_t)bus);
		gpu_put_number(d, GPU_P_PCI_DEVICE, (int64_t)device);
	}
	gpu_put_number(d, GPU_P_PCI_DEVICE_ID, (int64_t)c->device_id << 16 | c->vendor_id);
	gpu_put_number(d, GPU_P_PCI_SUBSYSTEM_ID,
		       (int64_t)c->subsystem_device << 16 | c->subsystem_vendor);
	gpu_put_number(d, GPU_P_PCI_BASE_CLASS, c->pci_class >> 16 & 0xff);
	gpu_put_number(d, GPU_P_PCI_SUB_CLASS, c->pci_class >> 8 & 0xff);
	gpu_put_number(d, GPU_P_MINOR, c->card);
	drm_property(r, d, GPU_P_NUMA_NODE, c->device, "numa_node", 1);
}

void drm_common(const struct drm_reader *r, struct gpu_device *d, enum gpu_depth depth, bool asleep)
{
	char text[48];
	ssize_t n;
	int generation;

	text_safe_copy(d->pci, sizeof(d->pci), r->card->pci);
	driver_version(r, d);
	/* Configuration space cannot be read of a card without power, or it is woken for it. */
	if (depth >= GPU_SLOW && !asleep)
		link_now(r, d);
	if (depth < GPU_ALL)
		return;
	pci_properties(r, d);
	if (asleep)
		return;
	n = drm_text(r, r->card->device, "max_link_speed", text, sizeof(text));
	generation = n > 0 ? drm_link_generation(text, (size_t)n) : 0;
	if (generation > 0) {
		gpu_put_number(d, GPU_P_PCIE_GEN_GPU_MAX, generation);
		drm_property(r, d, GPU_P_PCIE_WIDTH_MAX, r->card->device, "max_link_width", 1);
	} else {
		gpu_lacks_property(d, GPU_P_PCIE_GEN_GPU_MAX,
				   n < 0 ? drm_have((int)n) : GPU_NOT_SUPPORTED);
		gpu_lacks_property(d, GPU_P_PCIE_WIDTH_MAX,
				   n < 0 ? drm_have((int)n) : GPU_NOT_SUPPORTED);
	}
}
