/* SPDX-License-Identifier: MIT
 *
 * /proc/meminfo: where the machine's memory is.
 *
 *	MemTotal:       24682416 kB
 *	MemFree:        24156512 kB
 *	MemAvailable:   24283100 kB
 *	Buffers:            4344 kB
 *	Cached:           274284 kB
 *	...
 *	SReclaimable:     138664 kB
 *
 * KiB, though it says kB. MemAvailable since 3.14; without it there is no sample, as what a program
 * can still get is not MemFree. In a container it is the whole machine's. Cost: 14 us.
 */
#include "collect/mem.h"

#include "base/clock.h"
#include "base/scan.h"
#include "collect/whole.h"

#include <errno.h>
#include <string.h>

enum { TEXT_BYTES = 8192 }; /* 1.6 KB of it used by Linux 6.18 */

struct mem_state {
	struct host_file file;
	char text[TEXT_BYTES];
};

/* The first one is the one that must be there. */
static const char *const keys[MEM_KEYS] = {
	"MemTotal",  "MemFree",      "MemAvailable", "Cached",    "Buffers",   "Shmem",
	"AnonPages", "SReclaimable", "Dirty",        "Writeback", "SwapTotal", "SwapFree",
};

const enum metric_id mem_metrics[MEM_KEYS] = {
	M_MEM_TOTAL,   M_MEM_FREE,      M_MEM_AVAILABLE, M_MEM_CACHED,
	M_MEM_BUFFERS, M_MEM_SHMEM,     M_MEM_ANON,      M_MEM_SLAB_FREEABLE,
	M_MEM_DIRTY,   M_MEM_WRITEBACK, M_SWAP_TOTAL,    M_SWAP_FREE,
};

static int key_index(const char *name, size_t n)
{
	for (int i = 0; i < MEM_KEYS; i++)
		if (keys[i][0] == name[0] && strlen(keys[i]) == n && !memcmp(keys[i], name, n))
			return i;
	return -1;
}

int mem_parse(const char *text, size_t n, struct mem *ret)
{
	struct scan s = scan_of(text, n), line;
	struct mem m;

	for (int i = 0; i < MEM_KEYS; i++)
		m.kib[i] = -1;
	while (whole_line(&s, &line)) {
		const char *name = line.p;
		int64_t kib;
		int i;

		if (!scan_after(&line, ':') || line.p - name < 2)
			continue;
		i = key_index(name, (size_t)(line.p - name - 1));
		if (i >= 0 && scan_i64(&line, &kib) && kib >= 0 && scan_lit(&line, " kB"))
			m.kib[i] = kib;
	}
	if (m.kib[0] < 0)
		return -EINVAL;
	*ret = m;
	return 0;
}

static int mem_look(struct collect *c, struct mem_state *st, struct mem *ret)
{
	ssize_t n = host_read(c->host, &st->file, "proc/meminfo", st->text, sizeof(st->text));

	return n < 0 ? (int)n : mem_parse(st->text, (size_t)n, ret);
}

static int mem_open(struct collect *c, void *state, struct frame *f)
{
	struct mem_state *st = state;
	struct mem m;
	int r;

	st->file.fd = -1;
	r = mem_look(c, st, &m);
	for (int i = 0; r == 0 && i < MEM_KEYS; i++)
		if (m.kib[i] < 0)
			frame_gap(f, mem_metrics[i], ID_HOST, GAP_NOT_SUPPORTED);
	if (r < 0)
		host_file_close(&st->file);
	return r;
}

static int mem_read(struct collect *c, void *state, struct frame *f)
{
	struct mem m;
	int r = mem_look(c, state, &m);

	for (int i = 0; r == 0 && i < MEM_KEYS; i++)
		if (m.kib[i] >= 0)
			frame_put(f, mem_metrics[i], ID_HOST, m.kib[i]);
	return r;
}

static void mem_close(void *state)
{
	struct mem_state *st = state;

	host_file_close(&st->file);
}

const struct collector mem_collector = {
	.name = "mem",
	.help = "memory and swap of the machine (/proc/meminfo)",
	.state_size = sizeof(struct mem_state),
	.every_ns = NS_PER_S,
	.open = mem_open,
	.read = mem_read,
	.close = mem_close,
	.sample_metric = M_MEM_TOTAL,
};
