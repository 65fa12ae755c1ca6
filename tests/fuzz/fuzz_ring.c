/* SPDX-License-Identifier: MIT
 *
 * A ring that anybody may have written. The input is the header (64 bytes), eight names and then slots, of
 * which the second half is put there while the ring is read. A slot whose first spare word is 0 gets the turn
 * and check of its place: what is behind them would else never be reached.
 */
#include "fuzz.h"
#include "mark/ring.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	HEAD = 64,
	NAMES = 8 * RING_NAME_BYTES,
	SLOTS_AT = RING_HEADER + RING_NAMES * RING_NAME_BYTES,
};

_Static_assert(sizeof(struct ring_header) <= HEAD, "the header is all in the input");

static void put(int fd, const void *p, size_t n, size_t at)
{
	must(pwrite(fd, p, n, (off_t)at) == (ssize_t)n, "writing to memory");
}

/* Slots from..to-1 of the input, each in its place. */
static void put_slots(int fd, const uint8_t *data, size_t from, size_t to)
{
	struct ring_slot s;

	for (size_t i = from; i < to; i++) {
		memcpy(&s, data + i * sizeof(s), sizeof(s));
		if (!s.spare[0]) {
			s.turn = 2 * i + 2;
			s.check = ring_check(i, &s);
		}
		put(fd, &s, sizeof(s), SLOTS_AT + i % RING_SLOTS * sizeof(s));
	}
}

static void check_mark(const struct mark *m)
{
	bool named = m->kind == MARK_SCALAR || m->kind == MARK_PHASE_BEGIN ||
		     m->kind == MARK_PHASE_END || m->kind == MARK_SETTING || m->kind == MARK_SOURCE;

	must(m->kind > MARK_NONE && m->kind < MARK_KINDS, "a kind that there is");
	must(strnlen(m->name, RING_NAME_BYTES) < RING_NAME_BYTES, "a name ends");
	must(named == (m->name[0] != '\0'), "those have a name that need one");
}

static void read_all(struct ring_reader *r, uint64_t *seen)
{
	const struct ring_header *h = ring_head(r);
	struct mark m;
	int n = 0;

	for (uint64_t lost = 0; n < 3 * RING_SLOTS; n++) {
		int more = ring_next(r, &m, &lost);

		*seen += lost + (uint64_t)more;
		lost = 0;
		must(h->rank >= -1 && (h->world == -1 || h->world > h->rank), "a rank of a world");
		if (!more)
			break;
		check_mark(&m);
	}
	must(n <= RING_SLOTS, "no more marks than there are places");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	size_t slots = n > HEAD + NAMES ? (n - HEAD - NAMES) / sizeof(struct ring_slot) : 0;
	size_t early = slots / 2;
	struct ring_reader *r = NULL;
	struct ring_header h = { 0 };
	uint64_t seen = 0;
	int fd;

	if (n < HEAD + NAMES)
		return 0;
	fd = memfd_create("ring", MFD_CLOEXEC);
	must(fd >= 0 && !ftruncate(fd, RING_BYTES), "memory");
	memcpy(&h, data, sizeof(h));
	put(fd, data, HEAD, 0);
	put(fd, data + HEAD, NAMES, RING_HEADER);
	put_slots(fd, data + HEAD + NAMES, 0, early);
	if (ring_open_fd(&r, dup(fd)) == 0) {
		read_all(r, &seen);
		put_slots(fd, data + HEAD + NAMES, early, slots);
		h.head += slots - early;
		put(fd, &h, sizeof(h), 0);
		read_all(r, &seen);
		must(seen <= (h.head > slots ? h.head : slots), "each number is told once");
		ring_reader_close(r);
	} else {
		must(r == NULL, "a ring or none");
	}
	close(fd);
	return 0;
}
