/* SPDX-License-Identifier: MIT
 *
 * A file is a row of records and nothing else:
 *
 *	u32 "SPQ1", u32 length, u32 samples, u32 crc32c of length, samples and payload; payload
 *
 * Without a folder the files are memory (memfd): the same code, gone with the process.
 */
#include "push/spool.h"

#include "base/crc32c.h"
#include "base/err.h"
#include "push/spool_part.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

uint32_t spool_crc(const struct spool_header *h, const void *payload)
{
	return crc32c(crc32c(0, &h->length, sizeof(h->length) + sizeof(h->samples)), payload,
		      h->length);
}

/* Of bytes in memory, as spool_read() is of a file. */
static bool is_record(const uint8_t *p, size_t n, struct spool_header *ret)
{
	if (n < sizeof(*ret))
		return false;
	memcpy(ret, p, sizeof(*ret));
	return ret->magic == SPOOL_MAGIC && ret->length && ret->length <= SPOOL_RECORD_MAX &&
	       ret->length <= n - sizeof(*ret) && spool_crc(ret, p + sizeof(*ret)) == ret->crc;
}

size_t spool_scan(const void *p, size_t n, uint32_t *ret_records, uint64_t *ret_samples)
{
	struct spool_header h;
	size_t at = 0;

	*ret_records = 0;
	*ret_samples = 0;
	while (is_record((const uint8_t *)p + at, n - at, &h)) {
		at += sizeof(h) + h.length;
		++*ret_records;
		*ret_samples += h.samples;
	}
	return at;
}

static int pread_all(int fd, void *p, size_t n, uint64_t at)
{
	char *s = p;

	while (n) {
		ssize_t got = pread(fd, s, n, (off_t)at);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 ? -errno : -EBADMSG;
		s += got;
		at += (uint64_t)got;
		n -= (size_t)got;
	}
	return 0;
}

static int pwrite_all(int fd, const void *p, size_t n, uint64_t at)
{
	const char *s = p;

	while (n) {
		ssize_t put = pwrite(fd, s, n, (off_t)at);

		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return put < 0 ? -errno : -EIO;
		s += put;
		at += (uint64_t)put;
		n -= (size_t)put;
	}
	return 0;
}

int spool_read(struct spool *q, const struct spool_segment *s, uint64_t at,
	       struct spool_header *ret)
{
	struct spool_header h;
	int error = pread_all(s->fd, &h, sizeof(h), at);

	if (error < 0)
		return error;
	if (h.magic != SPOOL_MAGIC || !h.length || h.length > SPOOL_RECORD_MAX)
		return -EBADMSG;
	buf_reset(&q->scratch);
	if (!buf_reserve(&q->scratch, h.length))
		return -ENOMEM;
	error = pread_all(s->fd, q->scratch.data, h.length, at + sizeof(h));
	if (error < 0)
		return error;
	q->scratch.len = h.length;
	q->scratch.data[h.length] = 0;
	if (spool_crc(&h, q->scratch.data) != h.crc)
		return -EBADMSG;
	*ret = h;
	return 0;
}

void spool_remove_first(struct spool *q)
{
	struct spool_segment *s = q->segments;

	close(s->fd);
	spool_folder_remove(q, s->number);
	q->bytes -= s->size;
	q->n--;
	memmove(s, s + 1, q->n * sizeof(*s));
	q->head_bytes = 0;
}

/* The rest of a file that does not make sense (any more). */
static void cut(struct spool *q, struct spool_segment *s, int error)
{
	if (error == -EBADMSG)
		q->stats.damaged++;
	else
		q->stats.error = error;
	q->stats.disk_records += s->records;
	q->stats.disk_samples += s->samples;
	s->records = 0;
	s->samples = 0;
	s->read = s->size;
}

static void drop_first(struct spool *q)
{
	q->stats.full_records += q->segments[0].records;
	q->stats.full_samples += q->segments[0].samples;
	spool_remove_first(q);
}

/* The file to append to, a new one when the last is full. */
static struct spool_segment *tail(struct spool *q, size_t need, int *ret_error)
{
	struct spool_segment *s = q->n ? &q->segments[q->n - 1] : NULL;
	int fd;

	if (s && s->size + need <= q->max_bytes / SPOOL_SEGMENTS)
		return s;
	if (q->n == SPOOL_SEGMENTS_MAX)
		drop_first(q);
	fd = q->folder < 0 ? memfd_create("spotter-push", MFD_CLOEXEC)
			   : spool_folder_create(q, q->next_number);
	if (fd < 0) {
		*ret_error = q->folder < 0 ? -errno : fd;
		return NULL;
	}
	s = &q->segments[q->n++];
	*s = (struct spool_segment){ .number = q->next_number++, .fd = fd };
	return s;
}

static int append(struct spool *q, const struct spool_header *h, const void *p)
{
	size_t need = sizeof(*h) + h->length;
	struct spool_segment *s;
	int error = 0;

	while (q->n && q->bytes + need > q->max_bytes)
		drop_first(q);
	s = tail(q, need, &error);
	if (!s)
		return error;
	error = pwrite_all(s->fd, h, sizeof(*h), s->size);
	if (!error)
		error = pwrite_all(s->fd, p, h->length, s->size + sizeof(*h));
	if (error < 0) {
		/* Should this fail too, the next record overwrites what it left, or a reader cuts it. */
		(void)!ftruncate(s->fd, (off_t)s->size);
		return error;
	}
	s->size += need;
	s->records++;
	s->samples += h->samples;
	q->bytes += need;
	return 0;
}

int spool_put(struct spool *q, const void *p, size_t n, uint32_t samples)
{
	struct spool_header h = { .magic = SPOOL_MAGIC, .length = (uint32_t)n, .samples = samples };
	int error = -EMSGSIZE;

	if (n && n <= SPOOL_RECORD_MAX && n + sizeof(h) <= q->max_bytes / 4) {
		h.crc = spool_crc(&h, p);
		error = append(q, &h, p);
	}
	if (error < 0) {
		q->stats.error = error;
		q->stats.disk_records++;
		q->stats.disk_samples += samples;
	}
	return error;
}

int spool_head(struct spool *q, struct buf *out, uint32_t *ret_samples)
{
	while (q->n) {
		struct spool_segment *s = &q->segments[0];
		struct spool_header h;
		int error;

		if (s->read >= s->size) {
			spool_remove_first(q);
			continue;
		}
		error = spool_read(q, s, s->read, &h);
		if (error < 0) {
			cut(q, s, error);
			continue;
		}
		buf_reset(out);
		buf_put(out, q->scratch.data, q->scratch.len);
		if (!buf_ok(out))
			return -ENOMEM;
		q->head_bytes = sizeof(h) + h.length;
		q->head_samples = *ret_samples = h.samples;
		return 0;
	}
	return -ENOENT;
}

void spool_pop(struct spool *q)
{
	struct spool_segment *s = &q->segments[0];

	if (!q->n || !q->head_bytes)
		return;
	s->read += q->head_bytes;
	s->records -= s->records > 0;
	s->samples -= q->head_samples < s->samples ? q->head_samples : s->samples;
	q->head_bytes = 0;
	spool_folder_note(q, s->number, s->read);
	if (s->read >= s->size)
		spool_remove_first(q);
}

void spool_stats(const struct spool *q, struct spool_stats *ret)
{
	*ret = q->stats;
	ret->records = ret->samples = 0;
	ret->bytes = q->bytes;
	for (size_t i = 0; i < q->n; i++) {
		ret->records += q->segments[i].records;
		ret->samples += q->segments[i].samples;
	}
}

int spool_open(const char *folder, uint64_t max_bytes, struct spool **ret, struct err *e)
{
	struct spool *q = calloc(1, sizeof(*q));
	int error;

	if (!q)
		return err_set(e, -ENOMEM, "out of memory");
	q->folder = q->lock = q->position = -1;
	q->next_number = 1;
	q->max_bytes = max_bytes < SPOOL_BYTES_MIN ? SPOOL_BYTES_MIN : max_bytes;
	buf_init(&q->scratch, SPOOL_RECORD_MAX + 1);
	error = folder ? spool_folder_open(q, folder, e) : 0;
	if (error < 0) {
		spool_close(q);
		return error;
	}
	while (q->n && q->bytes > q->max_bytes)
		drop_first(q);
	*ret = q;
	return 0;
}

static void close_if_open(int fd)
{
	if (fd >= 0)
		close(fd);
}

void spool_close(struct spool *q)
{
	if (!q)
		return;
	for (size_t i = 0; i < q->n; i++)
		close(q->segments[i].fd);
	close_if_open(q->position);
	close_if_open(q->folder);
	close_if_open(q->lock);
	buf_done(&q->scratch);
	free(q);
}
