/* SPDX-License-Identifier: MIT
 *
 * /proc/PID/mountinfo, since 2.6.26:
 *
 *	27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
 *	25 24 0:23 / /dev/shm rw,relatime shared:4 - tmpfs tmpfs rw,size=24682416k
 *	40 27 0:52 /docker/4f /sys/fs/cgroup/cpu ro,nosuid master:9 - cgroup cgroup rw,cpu,cpuacct
 *	41 27 0:60 / /mnt/my\040data rw,relatime - nfs4 server:/export rw,vers=4.2
 *
 * id, parent, device, root, point, options of the mount, any number of tags, "-", type, source,
 * options of the file system. Blank, tab, newline and backslash are \040 \011 \012 \134 in paths
 * and sources.
 */
#include "collect/mountinfo.h"

#include "collect/whole.h"

#include <string.h>

static bool scan_field(struct scan *s, struct scan *ret)
{
	const char *p;
	size_t n;

	if (!scan_word(s, &p, &n))
		return false;
	*ret = scan_of(p, n);
	return true;
}

static bool parse_line(struct scan line, struct mountinfo *ret)
{
	struct mountinfo m;
	struct scan tag;

	if (!scan_i64(&line, &m.id) || !scan_i64(&line, &m.parent) || !scan_skip(&line, 1) ||
	    !scan_field(&line, &m.root) || !scan_field(&line, &m.point) || !scan_skip(&line, 1))
		return false;
	do {
		if (!scan_field(&line, &tag))
			return false;
	} while (!mountinfo_is(tag, "-"));
	if (!scan_field(&line, &m.type))
		return false;
	/* An empty source leaves two blanks and no word: then what follows is the options. */
	if (!scan_field(&line, &m.source))
		return false;
	if (!scan_field(&line, &m.options)) {
		m.options = m.source;
		m.source.end = m.source.p;
	}
	*ret = m;
	return true;
}

bool mountinfo_next(struct scan *s, struct mountinfo *ret)
{
	struct scan line;

	while (whole_line(s, &line))
		if (parse_line(line, ret))
			return true;
	return false;
}

static bool octal(const struct scan *s, unsigned *ret)
{
	unsigned v = 0;

	if (s->end - s->p < 4 || s->p[0] != '\\')
		return false;
	for (int i = 1; i < 4; i++) {
		if (s->p[i] < '0' || s->p[i] > '7')
			return false;
		v = v * 8 + (unsigned)(s->p[i] - '0');
	}
	*ret = v;
	return v > 0 && v < 256;
}

bool mountinfo_unescape(struct scan field, char *dst, size_t size)
{
	size_t n = 0;
	unsigned code;

	while (!scan_end(&field)) {
		bool escaped = octal(&field, &code);

		if (n + 1 >= size || *field.p == '\0') {
			dst[0] = '\0';
			return false;
		}
		dst[n++] = escaped ? (char)code : *field.p;
		field.p += escaped ? 4 : 1;
	}
	dst[n] = '\0';
	return true;
}

bool mountinfo_is(struct scan field, const char *text)
{
	return scan_lit(&field, text) && scan_end(&field);
}

bool mountinfo_has(struct scan field, const char *word)
{
	while (!scan_end(&field)) {
		struct scan one = field;

		if (scan_after(&field, ','))
			one.end = field.p - 1;
		else
			field.p = field.end;
		if (mountinfo_is(one, word))
			return true;
	}
	return false;
}

/* A list of what is safe and not of what is not: there will always be one more network file
 * system, and asking one whose server is gone hangs the asker for good. */
bool mountinfo_type_local(struct scan type)
{
	static const char *const local[] = {
		"ext2",   "ext3",     "ext4",      "xfs",   "btrfs",  "tmpfs",   "overlay",
		"f2fs",   "zfs",      "vfat",      "exfat", "rootfs", "ramfs",   "devtmpfs",
		"jfs",    "ntfs3",    "squashfs",  "erofs", "udf",    "iso9660", "bcachefs",
		"nilfs2", "reiserfs", "hugetlbfs", "sysfs", "proc",   "cgroup",  "cgroup2",
	};

	for (size_t i = 0; i < sizeof(local) / sizeof(local[0]); i++)
		if (mountinfo_is(type, local[i]))
			return true;
	return false;
}

/* Length of the mount point when the path is it or lies beneath it, else -1. */
static long covers(struct scan point, const char *path)
{
	char text[4096];
	size_t n;

	if (!mountinfo_unescape(point, text, sizeof(text)))
		return -1;
	n = strlen(text);
	if (n == 1 && text[0] == '/')
		return 0;
	if (!n || strncmp(path, text, n) != 0 || (path[n] != '/' && path[n] != '\0'))
		return -1;
	return (long)n;
}

static bool is_listed(const char *text, size_t n, int64_t id)
{
	struct scan s = scan_of(text, n);
	struct mountinfo m;

	while (mountinfo_next(&s, &m))
		if (m.id == id)
			return true;
	return false;
}

/* The mount all others hang on: its parent is itself or outside of what we may see. */
static bool find_root(const char *text, size_t n, struct mountinfo *ret)
{
	struct scan s = scan_of(text, n);
	struct mountinfo m;

	while (mountinfo_next(&s, &m)) {
		if (!mountinfo_is(m.point, "/") ||
		    (m.parent != m.id && is_listed(text, n, m.parent)))
			continue;
		*ret = m;
		return true;
	}
	return false;
}

/* The first mount a walk towards path meets beyond `at`: among its children on the way the one
 * nearest to the root. */
static bool step(const char *text, size_t n, const char *path, struct mountinfo *at, long *at_len)
{
	struct scan s = scan_of(text, n);
	struct mountinfo m, best = *at;
	long best_len = -1;

	while (mountinfo_next(&s, &m)) {
		long len;

		if (m.parent != at->id || m.id == at->id)
			continue;
		len = covers(m.point, path);
		if (len < *at_len || (best_len >= 0 && len >= best_len))
			continue;
		best = m;
		best_len = len;
	}
	if (best_len < 0)
		return false;
	*at = best;
	*at_len = best_len;
	return true;
}

bool mountinfo_find(const char *text, size_t n, const char *path, struct mountinfo *ret,
		    bool *ret_local)
{
	struct mountinfo at;
	long at_len = 0;
	bool local;

	if (!find_root(text, n, &at))
		return false;
	local = mountinfo_type_local(at.type);
	/* Ids that form a ring cannot come from a kernel; the count stops them. */
	for (int hops = 0; hops < 64 && step(text, n, path, &at, &at_len); hops++)
		local = local && mountinfo_type_local(at.type);
	*ret = at;
	*ret_local = local;
	return true;
}
