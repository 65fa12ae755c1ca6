/* SPDX-License-Identifier: MIT
 *
 * The reading end of a ring. The file belongs to the program that is watched: it may hold anything, change at
 * any moment and be cut short, so it is read (about 1 us a call in shared memory) and never mapped, where a
 * cut file would be a SIGBUS. Nothing of it is an index or a size before it was checked.
 */
#include "base/auto.h"
#include "base/clock.h"
#include "mark/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BATCH = 64 }; /* slots a call: 4 KiB */

/* How long a mark that was begun may stay unfinished. Its thread needs nanoseconds, or a turn on a CPU; if
 * it was killed there, those behind it must not wait for ever. */
#define PATIENCE_NS NS_PER_S
/* More marks than that nobody makes: 100 million a second for two years. */
#define NUMBER_MAX (1ull << 53)

struct ring_reader {
	int fd;
	uint64_t next;         /* number of the mark that comes next */
	int64_t unfinished_ns; /* since when that is begun and not there; 0 it is not */
	uint64_t head_after;   /* head, read after the batch */
	unsigned at, n;        /* of the batch; batch[at] is mark `next` */
	struct ring_header head;
	struct ring_slot batch[BATCH];
	char name[RING_NAMES][RING_NAME_BYTES]; /* "" not read yet */
};

static bool read_exactly(int fd, void *to, size_t n, off_t from)
{
	ssize_t got;

	do {
		got = pread(fd, to, n, from);
	} while (got < 0 && errno == EINTR);
	return got == (ssize_t)n;
}

static bool head_read(struct ring_reader *r)
{
	struct ring_header h;

	if (!read_exactly(r->fd, &h, sizeof(h), 0))
		return false;
	if (h.magic != RING_MAGIC || h.version != RING_VERSION || h.slots != RING_SLOTS ||
	    h.names != RING_NAMES || h.bytes != RING_BYTES)
		return false;
	if (h.rank < 0)
		h.rank = -1;
	if (h.rank < 0 || h.world <= h.rank)
		h.world = -1;
	r->head = h;
	return true;
}

int ring_open_fd(struct ring_reader **ret, int fd)
{
	auto_close int own = fd;
	struct ring_reader *r;
	struct stat st;

	if (fstat(own, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size != RING_BYTES)
		return -EINVAL;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	r->fd = own;
	if (!head_read(r)) {
		free(r);
		return -EINVAL;
	}
	steal_fd(&own);
	*ret = r;
	return 0;
}

int ring_open(struct ring_reader **ret, int folder_fd, const char *file)
{
	int fd = openat(folder_fd, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);

	return fd < 0 ? -errno : ring_open_fd(ret, fd);
}

void ring_reader_close(struct ring_reader *r)
{
	if (!r)
		return;
	close(r->fd);
	free(r);
}

const struct ring_header *ring_head(const struct ring_reader *r)
{
	return &r->head;
}

static off_t slot_place(uint64_t n)
{
	return RING_HEADER + RING_NAMES * RING_NAME_BYTES +
	       (off_t)(n % RING_SLOTS) * (off_t)sizeof(struct ring_slot);
}

/* Slots from `next` on, and the head before and after: a slot that the head has not come round to again was
 * not being written over while it was read. */
static bool slots_read(struct ring_reader *r, unsigned n)
{
	if (!read_exactly(r->fd, r->batch, n * sizeof(r->batch[0]), slot_place(r->next)))
		return false;
	if (!head_read(r))
		return false;
	r->head_after = r->head.head;
	r->at = 0;
	r->n = n;
	return true;
}

/* The next batch; false: nothing there, or nothing that makes sense. */
static bool batch_fill(struct ring_reader *r, uint64_t *lost)
{
	uint64_t head, n;

	r->at = r->n = 0;
	if (!head_read(r))
		return false;
	head = r->head.head;
	if (head <= r->next || head > NUMBER_MAX)
		return false;
	if (head - r->next > RING_SLOTS) {
		*lost += head - r->next - RING_SLOTS;
		r->next = head - RING_SLOTS;
	}
	n = head - r->next;
	if (n > BATCH)
		n = BATCH;
	if (n > RING_SLOTS - r->next % RING_SLOTS)
		n = RING_SLOTS - r->next % RING_SLOTS;
	return slots_read(r, (unsigned)n);
}

enum fate { THERE, LOST, UNFINISHED };

static enum fate slot_fate(const struct ring_reader *r)
{
	const struct ring_slot *s = &r->batch[r->at];
	uint64_t there = 2 * r->next + 2;

	if (r->head_after > r->next + RING_SLOTS || s->turn > there)
		return LOST;
	if (s->turn < there)
		return UNFINISHED;
	return s->check == ring_check(r->next, s) ? THERE : LOST;
}

/* An unfinished one is waited for, but not for ever. */
static bool give_up(struct ring_reader *r)
{
	int64_t now = clock_mono_ns();

	if (!r->unfinished_ns)
		r->unfinished_ns = now;
	return r->head.ended || now - r->unfinished_ns > PATIENCE_NS;
}

/* The name behind that number, "" when there is none. */
static const char *name_read(struct ring_reader *r, uint32_t number)
{
	char *name;

	if (!number || number > RING_NAMES)
		return "";
	name = r->name[number - 1];
	if (!*name) {
		char text[RING_NAME_BYTES];

		if (!read_exactly(r->fd, text, sizeof(text),
				  RING_HEADER + (off_t)(number - 1) * RING_NAME_BYTES))
			return "";
		text[sizeof(text) - 1] = '\0';
		memcpy(name, text, sizeof(text));
	}
	return name;
}

static bool has_name(enum mark_kind kind)
{
	return kind == MARK_SCALAR || kind == MARK_PHASE_BEGIN || kind == MARK_PHASE_END ||
	       kind == MARK_SETTING || kind == MARK_SOURCE;
}

static bool decode(struct ring_reader *r, const struct ring_slot *s, struct mark *ret)
{
	struct mark m = { .t_ns = s->t_ns, .number = s->number, .value = s->value, .name = "" };

	if (s->kind <= MARK_NONE || s->kind >= MARK_KINDS)
		return false;
	m.kind = (enum mark_kind)s->kind;
	if (has_name(m.kind)) {
		m.name = name_read(r, s->name);
		if (!*m.name)
			return false;
	}
	*ret = m;
	return true;
}

int ring_next(struct ring_reader *r, struct mark *ret, uint64_t *lost)
{
	/* A writer that is always ahead must not keep us here. */
	for (int tries = 0; tries < 2 * RING_SLOTS; tries++) {
		enum fate fate;
		bool good;

		if (r->at >= r->n && !batch_fill(r, lost))
			return 0;
		fate = slot_fate(r);
		if (fate != THERE) {
			/* The copy may be of a moment ago, and its words of different moments. */
			if (!slots_read(r, 1))
				return 0;
			fate = slot_fate(r);
		}
		if (fate == UNFINISHED && !give_up(r)) {
			r->n = 0;
			return 0;
		}
		good = fate == THERE && decode(r, &r->batch[r->at], ret);
		r->unfinished_ns = 0;
		r->next++;
		r->at++;
		if (good)
			return 1;
		++*lost;
	}
	return 0;
}
