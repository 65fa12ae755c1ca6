/* SPDX-License-Identifier: MIT
 *
 * /proc/diskstats: what the block devices did since they came.
 *
 *	   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
 *	 254       0 vda 47941 7667 2591482 27177 44964 19665 2748192 6488 3 16988 34252 4792 51 419192 460 2996 124
 *	 254       1 vda1 47000 7600 2590000 27000 44000 19000 2740000 6400 0 16900 34200 0 0 0 0 0 0
 *
 * major minor name, then reads, merged, sectors (512 bytes), ms; the same of writes; requests in
 * flight, ms with one in flight, ms weighted by their number. Discards follow since 4.18, flushes
 * since 5.5: not read. Times are printed in 32 bits and start again after 50 days.
 *
 * Whole devices only: a partition has sys/class/block/NAME/partition. Disks made of others (dm-0,
 * md0) are listed beside them, so sums over all count twice. A device that has done nothing yet
 * (nbd3) is not announced. Cost: 2 us a line; what is a partition is asked once a device.
 */
#include "collect/disk.h"

#include "base/clock.h"
#include "base/text.h"
#include "base/vec.h"
#include "collect/whole.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { DEVICES_MAX = 16384 };

struct device {
	unsigned major, minor;
	char name[DISK_NAME_BYTES];
	uint32_t id; /* 0: not announced */
	bool whole;  /* no partition, no loop device */
	bool seen;   /* in this reading */
};

struct disk_state {
	struct whole file;
	VEC(struct device) devices; /* in the order of the file */
};

bool disk_name_counts(const char *name)
{
	static const char *const skip[] = { "loop", "ram", "zram", "sr", "fd" };

	for (size_t i = 0; i < sizeof(skip) / sizeof(skip[0]); i++) {
		size_t n = strlen(skip[i]);

		if (strncmp(name, skip[i], n) == 0 && name[n] >= '0' && name[n] <= '9')
			return false;
	}
	return true;
}

static bool parse_line(struct scan *line, struct disk *ret)
{
	struct disk d = { 0 };
	uint64_t major, minor;
	const char *name;
	size_t n;

	if (!scan_u64(line, &major) || !scan_u64(line, &minor) || major > 4095 || minor > 1048575 ||
	    !scan_word(line, &name, &n) || n >= sizeof(d.name))
		return false;
	d.major = (unsigned)major;
	d.minor = (unsigned)minor;
	memcpy(d.name, name, n);
	for (int i = 0; i < DISK_COLUMNS; i++)
		if (!scan_i64(line, &d.value[i]))
			return false;
	*ret = d;
	return true;
}

bool disk_next(struct scan *s, struct disk *ret)
{
	struct scan line;

	while (whole_line(s, &line))
		if (parse_line(&line, ret))
			return true;
	return false;
}

/* "cciss/c0d0" is "cciss!c0d0" in sysfs. */
static bool is_partition(const struct host *h, const char *name)
{
	char path[80];
	struct stat st;
	int n = snprintf(path, sizeof(path), "sys/class/block/%s/partition", name);

	for (char *p = path + strlen("sys/class/block/"); p < path + n - strlen("/partition"); p++)
		if (*p == '/')
			*p = '!';
	return fstatat(h->root, path, &st, 0) == 0;
}

static void disk_life(struct frame *f, enum life_change change, const struct device *dev)
{
	frame_life(f,
		   &(struct life){
		       .change = change, .id = dev->id, .parent = ID_HOST, .kind = ENTITY_DISK },
		   dev->name, NULL);
}

static bool same_device(const struct device *dev, const struct disk *d)
{
	return dev->major == d->major && dev->minor == d->minor && !strcmp(dev->name, d->name);
}

/* The row of this device, a new one if need be. The file keeps its order, so the guess is right
 * but when devices came or went. NULL without memory or with absurdly many. */
static struct device *find_device(struct collect *c, struct disk_state *st, const struct disk *d,
				  size_t guess)
{
	struct device *dev;

	if (guess < st->devices.n && same_device(&st->devices.v[guess], d))
		return &st->devices.v[guess];
	for (size_t i = 0; i < st->devices.n; i++)
		if (same_device(&st->devices.v[i], d))
			return &st->devices.v[i];
	if (st->devices.n >= DEVICES_MAX)
		return NULL;
	dev = vec_push(&st->devices);
	if (!dev)
		return NULL;
	dev->major = d->major;
	dev->minor = d->minor;
	text_copy(dev->name, sizeof(dev->name), d->name);
	dev->whole = disk_name_counts(d->name) && !is_partition(c->host, d->name);
	return dev;
}

static void put_disk(struct collect *c, struct device *dev, const struct disk *d, struct frame *f)
{
	static const struct {
		enum disk_column column;
		enum metric_id metric;
	} out[] = {
		{ DISK_SECTORS_READ, M_DISK_READ },   { DISK_SECTORS_WRITTEN, M_DISK_WRITTEN },
		{ DISK_READS, M_DISK_READS },         { DISK_WRITES, M_DISK_WRITES },
		{ DISK_READ_MS, M_DISK_READ_TIME },   { DISK_WRITE_MS, M_DISK_WRITE_TIME },
		{ DISK_BUSY_MS, M_DISK_BUSY },        { DISK_QUEUE_MS, M_DISK_QUEUE_TIME },
		{ DISK_IN_FLIGHT, M_DISK_IN_FLIGHT },
	};

	if (!dev->id && !d->value[DISK_READS] && !d->value[DISK_WRITES] &&
	    !d->value[DISK_IN_FLIGHT])
		return;
	if (!dev->id) {
		dev->id = collect_id(c);
		disk_life(f, LIFE_BORN, dev);
	}
	for (size_t i = 0; i < sizeof(out) / sizeof(out[0]); i++)
		frame_put(f, out[i].metric, dev->id, d->value[out[i].column]);
}

/* Rows of devices that are gone close up, the order stays. */
static void drop_unseen(struct disk_state *st, struct frame *f)
{
	size_t kept = 0;

	for (size_t i = 0; i < st->devices.n; i++) {
		struct device *dev = &st->devices.v[i];

		if (!dev->seen) {
			if (dev->id)
				disk_life(f, LIFE_GONE, dev);
			continue;
		}
		dev->seen = false;
		st->devices.v[kept++] = *dev;
	}
	st->devices.n = kept;
}

static int disk_open(struct collect *c, void *state, struct frame *f)
{
	struct disk_state *st = state;

	int r;

	(void)f;
	whole_init(&st->file);
	r = whole_read(c->host, &st->file, "proc/diskstats");
	if (r < 0)
		whole_done(&st->file);
	return r;
}

static int disk_read(struct collect *c, void *state, struct frame *f)
{
	struct disk_state *st = state;
	struct disk d;
	struct scan s;
	int r = whole_read(c->host, &st->file, "proc/diskstats");

	if (r < 0)
		return r;
	s = scan_of(st->file.text, st->file.n);
	for (size_t i = 0; disk_next(&s, &d); i++) {
		struct device *dev = find_device(c, st, &d, i);

		if (!dev)
			return -ENOMEM;
		dev->seen = true;
		if (dev->whole)
			put_disk(c, dev, &d, f);
	}
	drop_unseen(st, f);
	return 0;
}

static void disk_close(void *state)
{
	struct disk_state *st = state;

	whole_done(&st->file);
	vec_done(&st->devices);
}

const struct collector disk_collector = {
	.name = "disk",
	.help = "bytes, requests and busy time of whole disks (/proc/diskstats)",
	.state_size = sizeof(struct disk_state),
	.every_ns = NS_PER_S,
	.open = disk_open,
	.read = disk_read,
	.close = disk_close,
	.sample_metric = M_DISK_READ,
};
