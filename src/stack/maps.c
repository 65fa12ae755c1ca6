/* SPDX-License-Identifier: MIT
 *
 * A line of maps:
 *	7f2c1a000000-7f2c1a0c5000 r--p 00000000 fe:00 1318 /usr/lib/libpython3.12.so.1.0
 *
 * A program may have a million of them (60,000 buffers that are protected one by one are 3 MB of text,
 * 10 ms to read): they are read a buffer at a time, and only what is code, and the other parts of a file
 * that has code, is kept.
 */
#include "stack/image.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/io.h"
#include "base/scan.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define MAPPING_MAX 200000
#define BUFFER      16384 /* longer than any line: a path has 4096 bytes, few of them escaped */
#define READ_MAX    (256u << 20) /* bytes; vm.max_map_count is 65530 if nobody raised it */
#define TEXT_MAX    (1u << 20)   /* kept; 300 libraries have 200 KB */
#define LINES_MAX   8192         /* kept */
#define PARTS_MAX   64 /* of a file before its first code; an image has its code in the second */

struct reading {
	struct buf text;
	size_t lines;
	/* The file whose parts are being read: its lines stay only if one of them is code. */
	size_t group; /* where they begin */
	unsigned parts;
	bool code;
	uint64_t device, inode, end;
};

static bool parse_line(struct scan line, const char *text, struct elf_mapping *ret)
{
	const char *mode;
	uint64_t major, minor;
	size_t mode_n;

	*ret = (struct elf_mapping){ 0 };
	if (!scan_hex(&line, &ret->start) || !scan_lit(&line, "-") || !scan_hex(&line, &ret->end) ||
	    !scan_word(&line, &mode, &mode_n) || mode_n < 4)
		return false;
	scan_blank(&line);
	if (!scan_hex(&line, &ret->offset))
		return false;
	scan_blank(&line);
	if (!scan_hex(&line, &major) || !scan_lit(&line, ":") || !scan_hex(&line, &minor) ||
	    !scan_u64(&line, &ret->inode) || ret->start >= ret->end)
		return false;
	ret->device = major << 32 | (uint32_t)minor;
	ret->readable = mode[0] == 'r';
	ret->writable = mode[1] == 'w';
	ret->executable = mode[2] == 'x';
	scan_blank(&line);
	if (!scan_end(&line)) {
		ret->name = (uint32_t)(line.p - text);
		ret->name_n = (uint32_t)(line.end - line.p);
	}
	return true;
}

int elf_parse_maps(const char *text, size_t n, elf_mappings *ret)
{
	struct scan all = scan_of(text, n), line;

	ret->n = 0;
	while (scan_line(&all, &line) && ret->n < MAPPING_MAX) {
		struct elf_mapping one, *slot;

		if (!parse_line(line, text, &one))
			continue;
		slot = vec_push(ret);
		if (!slot)
			return -ENOMEM;
		*slot = one;
	}
	return 0;
}

static void drop_parts(struct reading *r)
{
	r->text.len = r->group;
	r->lines -= r->parts;
	r->parts = 0;
}

static void begin_group(struct reading *r, const struct elf_mapping *m)
{
	if (!r->code)
		drop_parts(r);
	r->group = r->text.len;
	r->parts = 0;
	r->code = false;
	r->device = m->device;
	r->inode = m->inode;
}

/* Most lines of those who have many: neither code nor of a file. Told without reading numbers. */
static bool plain_data(struct scan line)
{
	const char *mode = memchr(line.p, ' ', (size_t)(line.end - line.p)); /* " rw-p " */

	return mode && line.end - mode > 4 && mode[3] != 'x' &&
	       !memchr(mode, '/', (size_t)(line.end - mode));
}

static void take_line(struct reading *r, struct scan line)
{
	struct elf_mapping m;
	size_t n = (size_t)(line.end - line.p);
	bool file, part;

	if (plain_data(line) || !parse_line(line, line.p, &m))
		return;
	file = m.inode || (m.name && line.p[m.name] == '/');
	if (!file && !m.executable)
		return;
	/* Text that was moved to huge pages is anonymous, between the other parts of its file. */
	part = r->parts && ((file && m.device == r->device && m.inode == r->inode) ||
			    (!file && !m.name && m.start == r->end));
	if (!part)
		begin_group(r, &m);
	else if (!r->code && r->parts >= PARTS_MAX)
		drop_parts(r); /* a data file that is mapped in pieces */
	if (r->lines >= LINES_MAX || r->text.len + n + 1 >= TEXT_MAX)
		return;
	buf_put(&r->text, line.p, n);
	buf_char(&r->text, '\n');
	r->lines++;
	r->parts++;
	r->code = r->code || m.executable;
	r->end = m.end;
}

/* Gives the whole lines among n bytes; how many bytes those were. */
static size_t take_lines(struct reading *r, char *at, size_t n, bool *overlong)
{
	char *begin = at, *end = at + n, *newline;

	while ((newline = memchr(begin, '\n', (size_t)(end - begin)))) {
		if (!*overlong)
			take_line(r, scan_of(begin, (size_t)(newline - begin)));
		*overlong = false;
		begin = newline + 1;
	}
	return (size_t)(begin - at);
}

static int read_lines(struct reading *r, int fd)
{
	char buffer[BUFFER];
	size_t have = 0, all = 0, used;
	bool overlong = false;
	ssize_t n;

	while (all < READ_MAX) {
		n = read(fd, buffer + have, sizeof(buffer) - have);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		all += (size_t)n;
		have += (size_t)n;
		used = take_lines(r, buffer, have, &overlong);
		have -= used;
		memmove(buffer, buffer + used, have);
		if (have == sizeof(buffer)) {
			overlong = true;
			have = 0;
		}
	}
	if (!r->code)
		drop_parts(r);
	return buf_ok(&r->text) ? 0 : -ENOMEM;
}

char *elf_read_maps(pid_t pid, size_t *ret_n, int *ret_err)
{
	struct reading r = { 0 };
	auto_close int fd = -1;
	char path[64];
	int result;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	fd = io_open(AT_FDCWD, path);
	buf_init(&r.text, TEXT_MAX + 1);
	result = fd < 0 ? fd : read_lines(&r, fd);
	if (result == 0 &&
	    !buf_reserve(&r.text, 1)) /* a process without any: there is a text still */
		result = -ENOMEM;
	if (result < 0) {
		buf_done(&r.text);
		*ret_err = result;
		return NULL;
	}
	r.text.data[r.text.len] = '\0';
	*ret_n = r.text.len;
	return r.text.data;
}
