/* SPDX-License-Identifier: MIT
 *
 * A queue's folder: "lock" (held while it is open), "position" (which file is read up to where) and files
 * 0000000000000001.queue and on. The folder is private to its user, and yet nothing in it is believed: links are not
 * followed, what is not a plain file of ours is left alone, every record must have its checksum.
 */
#include "base/crc32c.h"
#include "base/err.h"
#include "base/io.h"
#include "push/spool_part.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME_DIGITS = 16, NAME_BYTES = 32, FOUND_MAX = 4096 };

static const char suffix[] = ".queue";

struct position {
	uint64_t number, read;
	uint32_t crc, zero;
};

static uint32_t position_crc(const struct position *p)
{
	return crc32c(0, p, offsetof(struct position, crc));
}

static const char *name_of(uint64_t number, char *buf, size_t size)
{
	snprintf(buf, size, "%016llx%s", (unsigned long long)number, suffix);
	return buf;
}

static bool number_of(const char *name, uint64_t *ret)
{
	uint64_t v = 0;

	if (strlen(name) != NAME_DIGITS + sizeof(suffix) - 1 ||
	    strcmp(name + NAME_DIGITS, suffix) != 0)
		return false;
	for (size_t i = 0; i < NAME_DIGITS; i++) {
		const char *digits = "0123456789abcdef", *at = strchr(digits, name[i]);

		if (!at)
			return false;
		v = v << 4 | (uint64_t)(at - digits);
	}
	*ret = v;
	return v > 0 && v < UINT64_MAX / 2;
}

int spool_folder_create(struct spool *q, uint64_t number)
{
	char name[NAME_BYTES];
	int fd = openat(q->folder, name_of(number, name, sizeof(name)),
			O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	return fd < 0 ? -errno : fd;
}

void spool_folder_remove(struct spool *q, uint64_t number)
{
	char name[NAME_BYTES];

	if (q->folder >= 0)
		(void)unlinkat(q->folder, name_of(number, name, sizeof(name)), 0);
}

/* Lost, or half-written, it costs that some requests are sent twice: engines take equal samples for one. */
void spool_folder_note(struct spool *q, uint64_t number, uint64_t read)
{
	struct position p = { .number = number, .read = read };

	p.crc = position_crc(&p);
	if (q->position >= 0 && pwrite(q->position, &p, sizeof(p), 0) != sizeof(p))
		q->stats.error = errno ? -errno : -EIO;
}

static struct position position_read(int fd)
{
	struct position p;

	if (pread(fd, &p, sizeof(p), 0) != sizeof(p) || p.crc != position_crc(&p) ||
	    p.number > UINT64_MAX / 2)
		return (struct position){ 0 };
	return p;
}

/* Walks the records, cuts off what is none, and finds where reading goes on. */
static void walk(struct spool *q, struct spool_segment *s, uint64_t file_size, uint64_t read)
{
	struct spool_header h;
	uint64_t at = 0, samples = 0;
	uint32_t records = 0;

	while (at < file_size && spool_read(q, s, at, &h) == 0) {
		at += sizeof(h) + h.length;
		samples += h.samples;
		records++;
		if (at == read) {
			s->read = read;
			samples = records = 0;
		}
	}
	s->size = at;
	s->records = records;
	s->samples = samples;
	if (at < file_size) {
		q->stats.damaged++;
		if (ftruncate(s->fd, (off_t)at) < 0)
			q->stats.error = -errno;
	}
}

static void take_file(struct spool *q, uint64_t number, const struct position *p)
{
	struct spool_segment s = { .number = number };
	char name[NAME_BYTES];
	struct stat st;

	s.fd = openat(q->folder, name_of(number, name, sizeof(name)),
		      O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (s.fd < 0)
		return;
	if (fstat(s.fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid()) {
		close(s.fd);
		return;
	}
	if (number >= p->number)
		walk(q, &s, (uint64_t)st.st_size, number == p->number ? p->read : 0);
	if (s.read >= s.size) { /* all sent, or nothing in it */
		close(s.fd);
		spool_folder_remove(q, number);
		return;
	}
	q->segments[q->n++] = s;
	q->bytes += s.size;
}

static int by_number(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* More files than we would ever make: the newest are taken, the others removed. */
static int take_files(struct spool *q, const struct position *p)
{
	uint64_t *found = calloc(FOUND_MAX, sizeof(*found));
	size_t n = 0, first;
	struct io_dir d;
	const char *name;
	int error = found ? io_dir_open(&d, q->folder, ".") : -ENOMEM;

	if (error < 0) {
		free(found);
		return error;
	}
	while (n < FOUND_MAX && (name = io_dir_next(&d)))
		n += number_of(name, &found[n]);
	io_dir_close(&d);
	qsort(found, n, sizeof(*found), by_number);
	/* One place is left for the file that is written next. */
	first = n >= SPOOL_SEGMENTS_MAX ? n - SPOOL_SEGMENTS_MAX + 1 : 0;
	for (size_t i = 0; i < first; i++) {
		q->stats.damaged++;
		spool_folder_remove(q, found[i]);
	}
	for (size_t i = first; i < n; i++)
		take_file(q, found[i], p);
	q->next_number = (n && found[n - 1] > p->number ? found[n - 1] : p->number) + 1;
	free(found);
	return 0;
}

/* The parent too, one level: DIR/remote-write in a DIR that is new. */
static int make(const char *path)
{
	const char *slash = strrchr(path, '/');
	char parent[4096];

	if (mkdir(path, 0700) == 0 || errno == EEXIST)
		return 0;
	if (errno != ENOENT || !slash || slash == path || (size_t)(slash - path) >= sizeof(parent))
		return -errno;
	memcpy(parent, path, (size_t)(slash - path));
	parent[slash - path] = 0;
	if (mkdir(parent, 0700) < 0 && errno != EEXIST)
		return -errno;
	return mkdir(path, 0700) == 0 || errno == EEXIST ? 0 : -errno;
}

static int enter(struct spool *q, const char *path, struct err *e)
{
	char why[80];
	struct stat st;
	int error = make(path);

	if (!error) {
		q->folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		error = q->folder < 0 || fstat(q->folder, &st) < 0 ? -errno : 0;
	}
	if (error < 0) {
		err_set(e, error, "cannot use the queue folder '%s': %s", path,
			err_name(error, why, sizeof(why)));
		err_hint(e, "--push-queue names a folder that this user can write to");
		return error;
	}
	if (st.st_uid != geteuid())
		return err_set(e, -EPERM, "the queue folder '%s' belongs to somebody else", path);
	(void)fchmod(q->folder, 0700);
	return 0;
}

static int open_own(int folder, const char *name)
{
	struct stat st;
	int fd = openat(folder, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		return fd;
	close(fd);
	return -EINVAL;
}

int spool_folder_open(struct spool *q, const char *path, struct err *e)
{
	struct position p;
	char why[80];
	int error = enter(q, path, e);

	if (error < 0)
		return error;
	q->lock = open_own(q->folder, "lock");
	if (q->lock >= 0 && flock(q->lock, LOCK_EX | LOCK_NB) < 0) {
		err_set(e, -EBUSY, "the queue folder '%s' is in use by another process", path);
		err_hint(e, "each process needs a folder of its own");
		return -EBUSY;
	}
	q->position = open_own(q->folder, "position");
	error = q->lock < 0 ? q->lock : q->position < 0 ? q->position : 0;
	if (!error) {
		p = position_read(q->position);
		error = take_files(q, &p);
	}
	if (error < 0)
		return err_set(e, error, "cannot use the queue folder '%s': %s", path,
			       err_name(error, why, sizeof(why)));
	return 0;
}
