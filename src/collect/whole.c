/* SPDX-License-Identifier: MIT */
#include "collect/whole.h"

#include "base/auto.h"
#include "base/io.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum { FIRST_BYTES = 4096, MOST_BYTES = 16 << 20 };

void whole_init(struct whole *w)
{
	*w = (struct whole){ .file = { .fd = -1 } };
}

void whole_done(struct whole *w)
{
	free(w->text);
	host_file_close(&w->file);
	whole_init(w);
}

static int grow(struct whole *w)
{
	size_t cap = w->cap ? w->cap * 2 : FIRST_BYTES;
	char *text;

	if (cap > MOST_BYTES)
		return -EFBIG;
	text = realloc(w->text, cap);
	if (!text)
		return -ENOMEM;
	w->text = text;
	w->cap = cap;
	return 0;
}

static int read_all(struct whole *w, int fd)
{
	size_t n = 0;

	for (;;) {
		ssize_t got;
		int r = n + 1 < w->cap ? 0 : grow(w);

		if (r < 0)
			return r;
		got = pread(fd, w->text + n, w->cap - 1 - n, (off_t)n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		n += (size_t)got;
	}
	w->text[n] = '\0';
	w->n = n;
	return 0;
}

int whole_read(const struct host *h, struct whole *w, const char *path)
{
	int r;

	w->n = 0;
	if (w->file.fd < 0) {
		r = io_open(h->root, path);
		if (r < 0)
			return r;
		w->file.fd = r;
	}
	r = read_all(w, w->file.fd);
	if (r < 0 || !h->live)
		host_file_close(&w->file);
	return r;
}

bool whole_line(struct scan *s, struct scan *ret_line)
{
	return scan_line(s, ret_line) && ret_line->end < s->end && *ret_line->end == '\n';
}
