/* SPDX-License-Identifier: MIT
 *
 * /proc/vmstat: what the memory management had to do since boot.
 *
 *	workingset_refault_anon 0
 *	workingset_refault_file 203959
 *	pswpin 0
 *	pswpout 0
 *	allocstall_dma32 0
 *	allocstall_normal 0
 *	pgfault 4021498
 *	pgmajfault 1390
 *	pgsteal_kswapd 0
 *	pgsteal_direct 0
 *	pgscan_kswapd 0
 *	pgscan_direct 0
 *	pgscan_direct_throttle 0
 *	oom_kill 0
 *
 * Pages, but oom_kill, allocstall and pgscan_direct_throttle (times). Names differ:
 *	pgscan_direct, pgscan_kswapd, pgsteal_*	one a zone (..._normal) before 4.8
 *	allocstall				one a zone since 4.8
 *	workingset_refault			files only, until 5.8; _file and _anon since 5.9
 *	pgsteal_khugepaged, pgsteal_proactive	6.x: further reasons to reclaim
 *	pgsteal_anon, pgsteal_file		since 5.8: the same pages once more, by kind; left out
 *	oom_kill				since 4.13
 * Whole machine, also in a container. Cost: 35 us on 2 CPUs; it sums over all CPUs.
 */
#include "collect/vmstat.h"

#include "base/clock.h"
#include "base/scan.h"
#include "collect/whole.h"

#include <errno.h>
#include <string.h>

struct vmstat_state {
	struct whole file;
};

/* Rows with `zones` match "name" and "name_ZONE"; several lines of one key are summed. */
static const struct row {
	const char *name;
	enum vmstat_key key;
	bool zones;
} rows[] = {
	{ "pswpin", VMSTAT_SWAP_IN, false },
	{ "pswpout", VMSTAT_SWAP_OUT, false },
	{ "pgfault", VMSTAT_FAULTS, false },
	{ "pgmajfault", VMSTAT_MAJOR_FAULTS, false },
	{ "pgscan_direct", VMSTAT_SCAN_DIRECT, true },
	{ "pgscan_kswapd", VMSTAT_SCAN_KSWAPD, true },
	{ "pgsteal_direct", VMSTAT_RECLAIMED, true },
	{ "pgsteal_kswapd", VMSTAT_RECLAIMED, true },
	{ "pgsteal_khugepaged", VMSTAT_RECLAIMED, false },
	{ "pgsteal_proactive", VMSTAT_RECLAIMED, false },
	{ "workingset_refault", VMSTAT_REFAULT_FILE, false },
	{ "workingset_refault_file", VMSTAT_REFAULT_FILE, false },
	{ "workingset_refault_anon", VMSTAT_REFAULT_ANON, false },
	{ "allocstall", VMSTAT_ALLOC_STALLS, true },
	{ "oom_kill", VMSTAT_OOM_KILLS, false },
};

static const char *const zones[] = { "_dma", "_dma32", "_normal", "_high", "_movable", "_device" };

static bool equal(const char *p, size_t n, const char *text)
{
	return strlen(text) == n && memcmp(p, text, n) == 0;
}

static bool row_matches(const struct row *row, const char *name, size_t n)
{
	size_t len = strlen(row->name);

	if (n < len || memcmp(name, row->name, len) != 0)
		return false;
	if (n == len)
		return true;
	for (size_t i = 0; row->zones && i < sizeof(zones) / sizeof(zones[0]); i++)
		if (equal(name + len, n - len, zones[i]))
			return true;
	return false;
}

static const struct row *find_row(const char *name, size_t n)
{
	if (!strchr("apwo", name[0]))
		return NULL;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (row_matches(&rows[i], name, n))
			return &rows[i];
	return NULL;
}

int vmstat_parse(const char *text, size_t n, struct vmstat *ret)
{
	struct scan s = scan_of(text, n), line;
	struct vmstat v;
	bool any = false;

	for (int i = 0; i < VMSTAT_KEYS; i++)
		v.value[i] = -1;
	while (whole_line(&s, &line)) {
		const struct row *row;
		const char *name;
		size_t len;
		int64_t x, sum;

		if (!scan_word(&line, &name, &len) || !(row = find_row(name, len)) ||
		    !scan_i64(&line, &x) || x < 0)
			continue;
		sum = v.value[row->key];
		if (__builtin_add_overflow(sum < 0 ? 0 : sum, x, &sum))
			continue;
		v.value[row->key] = sum;
		any = true;
	}
	if (!any)
		return -EINVAL;
	*ret = v;
	return 0;
}

static const enum metric_id ids[VMSTAT_KEYS] = {
	[VMSTAT_SWAP_IN] = M_VM_SWAP_IN,
	[VMSTAT_SWAP_OUT] = M_VM_SWAP_OUT,
	[VMSTAT_FAULTS] = M_VM_FAULTS,
	[VMSTAT_MAJOR_FAULTS] = M_VM_MAJOR_FAULTS,
	[VMSTAT_SCAN_DIRECT] = M_VM_SCAN_DIRECT,
	[VMSTAT_SCAN_KSWAPD] = M_VM_SCAN_KSWAPD,
	[VMSTAT_RECLAIMED] = M_VM_RECLAIMED,
	[VMSTAT_REFAULT_FILE] = M_VM_REFAULT_FILE,
	[VMSTAT_REFAULT_ANON] = M_VM_REFAULT_ANON,
	[VMSTAT_ALLOC_STALLS] = M_VM_ALLOC_STALLS,
	[VMSTAT_OOM_KILLS] = M_VM_OOM_KILLS,
};

static int vmstat_look(struct collect *c, struct vmstat_state *st, struct vmstat *ret)
{
	int r = whole_read(c->host, &st->file, "proc/vmstat");

	return r < 0 ? r : vmstat_parse(st->file.text, st->file.n, ret);
}

static int vmstat_open(struct collect *c, void *state, struct frame *f)
{
	struct vmstat_state *st = state;
	struct vmstat v;
	int r;

	whole_init(&st->file);
	r = vmstat_look(c, st, &v);
	for (int i = 0; r == 0 && i < VMSTAT_KEYS; i++)
		if (v.value[i] < 0)
			frame_gap(f, ids[i], ID_HOST, GAP_NOT_SUPPORTED);
	if (r < 0)
		whole_done(&st->file);
	return r;
}

static int vmstat_read(struct collect *c, void *state, struct frame *f)
{
	int64_t page_kib = c->host->page_bytes / 1024;
	struct vmstat v;
	int r = vmstat_look(c, state, &v);

	for (int i = 0; r == 0 && i < VMSTAT_KEYS; i++) {
		bool pages = i == VMSTAT_SWAP_IN || i == VMSTAT_SWAP_OUT;
		int64_t raw = v.value[i];

		if (raw >= 0 && !(pages && __builtin_mul_overflow(raw, page_kib, &raw)))
			frame_put(f, ids[i], ID_HOST, raw);
	}
	return r;
}

static void vmstat_close(void *state)
{
	struct vmstat_state *st = state;

	whole_done(&st->file);
}

const struct collector vmstat_collector = {
	.name = "vmstat",
	.help = "faults, swapping, reclaim, refaults, OOM kills of the machine (/proc/vmstat)",
	.state_size = sizeof(struct vmstat_state),
	.every_ns = NS_PER_S,
	.open = vmstat_open,
	.read = vmstat_read,
	.close = vmstat_close,
	.sample_metric = M_VM_FAULTS,
};
