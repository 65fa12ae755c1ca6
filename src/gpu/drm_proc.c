/* SPDX-License-Identifier: MIT
 *
 * Who has a GPU's file open. Other users' descriptors cannot be seen without privileges: how many
 * processes use a GPU is then not known, which is not the same as few.
 *
 * A client (one opening of the file) that several processes inherited or were sent is counted once, for
 * the one with the lowest number.
 */
#include "base/auto.h"
#include "base/io.h"
#include "base/scan.h"
#include "base/text.h"
#include "gpu/drm.h"
#include "gpu/owner.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum {
	FDS_MAX = 4096, /* of one process: a server with more of them is cut */
	WAIT_MAX = 4,   /* log2 of the sweeps between two looks at a process without a GPU */
};

struct sweep_run {
	struct gpu_world *w;
	struct drm_sweep *sweep;
	const struct drm_cards *cards;
	int first;
};

static struct drm_use *use_of(struct drm_sweep *sweep, int32_t pid, int row)
{
	struct drm_use *u;

	/* Those of one process stand together at the end. */
	for (size_t i = sweep->now.n; i-- > 0 && sweep->now.v[i].pid == pid;)
		if (sweep->now.v[i].row == row)
			return &sweep->now.v[i];
	u = vec_push(&sweep->now);
	if (u) {
		u->pid = pid;
		u->row = row;
		u->memory_kb = u->shared_kb = u->share = -1;
	}
	return u;
}

static void add_known(int64_t *sum, int64_t v)
{
	if (v >= 0)
		*sum = (*sum < 0 ? 0 : *sum) + (v > INT64_MAX / 4096 ? 0 : v);
}

static struct fdinfo_engine *engine_of(struct drm_use *u, const struct fdinfo_engine *e)
{
	for (int i = 0; i < u->n_engines; i++)
		if (strcmp(u->engine[i].name, e->name) == 0)
			return &u->engine[i];
	if (u->n_engines >= FDINFO_ENGINES)
		return NULL;
	u->engine[u->n_engines] = *e;
	u->engine[u->n_engines].time_ns = u->engine[u->n_engines].cycles = -1;
	return &u->engine[u->n_engines++];
}

static void add_client(struct drm_use *u, const struct fdinfo *f)
{
	add_known(&u->memory_kb, fdinfo_device_kb(f));
	add_known(&u->shared_kb, fdinfo_shared_kb(f));
	if (f->share > u->share)
		u->share = f->share;
	for (int i = 0; i < f->n_engines; i++) {
		struct fdinfo_engine *e = engine_of(u, &f->engine[i]);

		if (!e)
			continue;
		add_known(&e->time_ns, f->engine[i].time_ns);
		add_known(&e->cycles, f->engine[i].cycles);
		/* All clients see the same clock of the engine pass. */
		if (f->engine[i].total > e->total)
			e->total = f->engine[i].total;
	}
}

/* Place among our cards of the one behind "/dev/dri/renderD128" or "/dev/dri/card0"; -1: another
 * vendor's. Reading no fdinfo of a card that hangs: it may wait for the same lock. */
static int card_of(const struct sweep_run *run, const char *link)
{
	struct scan s = scan_of(link, strlen(link));
	bool render = scan_lit(&s, "/dev/dri/renderD");
	uint64_t number;

	if ((!render && !scan_lit(&s, "/dev/dri/card")) || !scan_u64(&s, &number) ||
	    number > INT_MAX)
		return -1;
	for (int i = 0; i < run->cards->n; i++) {
		const struct drm_card *c = &run->cards->card[i];

		if ((render ? c->render : c->card) == (int)number)
			return gpu_skipped(run->w, c->pci) ? -1 : i;
	}
	return -1;
}

/* One descriptor that leads to a DRM file. */
static void look_at_file(const struct sweep_run *run, int32_t pid, const char *fd, int card)
{
	const struct drm_card *c = &run->cards->card[card];
	char path[64], text[4096];
	struct fdinfo f;
	struct drm_use *u;
	uint64_t key;
	uint32_t seen;
	ssize_t n;

	snprintf(path, sizeof(path), "proc/%d/fdinfo/%.12s", (int)pid, fd);
	gpu_call_begin(run->w, 0, "fdinfo", c->pci, card);
	n = io_read(run->w->root, path, text, sizeof(text));
	gpu_call_end(run->w, 0);
	if (n <= 0 || !fdinfo_parse(text, (size_t)n, &f) || strcmp(f.pdev, c->pci) != 0)
		return;
	key = map_mix(f.client) ^ (uint64_t)card;
	if (f.has_client && map_get(&run->sweep->clients, key, &seen))
		return;
	if (f.has_client)
		(void)map_put(&run->sweep->clients, key, 1);
	u = use_of(run->sweep, pid, run->first + card);
	if (u)
		add_client(u, &f);
}

/* 1: has a DRM file open; 0: none; -errno. */
static int look_at_process(const struct sweep_run *run, int32_t pid)
{
	char path[40], link[64];
	struct io_dir dir;
	const char *name;
	int error, found = 0, looked = 0;

	snprintf(path, sizeof(path), "proc/%d/fd", (int)pid);
	error = io_dir_open(&dir, run->w->root, path);
	if (error)
		return error;
	while (looked++ < FDS_MAX && (name = io_dir_next(&dir))) {
		ssize_t n = io_readlink(dir.fd, name, link, sizeof(link));

		int card = n > 0 ? card_of(run, link) : -1;

		if (card >= 0)
			look_at_file(run, pid, name, card);
		if (card >= 0 || (n > 0 && strcmp(link, "/dev/kfd") == 0))
			found = 1;
	}
	io_dir_close(&dir);
	return found;
}

/* Is it time to look at this process? */
static bool is_due(struct drm_sweep *sweep, int32_t pid, uint32_t *ret_wait)
{
	uint32_t v;

	*ret_wait = 0;
	if (!map_get(&sweep->quiet, (uint64_t)pid, &v))
		return true;
	*ret_wait = v & 7;
	return (int32_t)((sweep->round << 3) - (v & ~7u)) >= 0;
}

static int by_number(const void *a, const void *b)
{
	const int32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The pids that are due, in order: a client that a process and its child both have is then, but for
 * numbers that start again, the process's. */
static bool find_due(const struct sweep_run *run)
{
	struct drm_sweep *sweep = run->sweep;
	struct io_dir dir;
	uint32_t wait;
	int64_t pid;

	sweep->due.n = 0;
	if (io_dir_open(&dir, run->w->root, "proc") != 0)
		return false;
	while ((pid = io_dir_next_number(&dir)) > 0) {
		int32_t *slot;

		if (pid > INT_MAX || !is_due(sweep, (int32_t)pid, &wait))
			continue;
		slot = vec_push(&sweep->due);
		if (!slot)
			break;
		*slot = (int32_t)pid;
	}
	io_dir_close(&dir);
	if (sweep->due.n > 1)
		qsort(sweep->due.v, sweep->due.n, sizeof(sweep->due.v[0]), by_number);
	return true;
}

static void look_at_all(const struct sweep_run *run)
{
	struct drm_sweep *sweep = run->sweep;

	sweep->unreadable = 0;
	/* So that pids that are gone do not stay for ever. */
	if (sweep->round % 256 == 0)
		map_clear(&sweep->quiet);
	if (!find_due(run)) {
		sweep->unreadable = 1;
		return;
	}
	for (size_t i = 0; i < sweep->due.n; i++) {
		int32_t pid = sweep->due.v[i];
		int found = look_at_process(run, pid);
		uint32_t wait;

		(void)is_due(sweep, pid, &wait);
		/* One that may not be looked at is asked again each time: one openat. */
		if (found == -EACCES || found == -EPERM)
			sweep->unreadable++;
		else if (found > 0)
			(void)map_del(&sweep->quiet, (uint64_t)pid);
		else if (run->w->live && found == 0)
			(void)map_put(&sweep->quiet, (uint64_t)pid,
				      (sweep->round + (1u << wait)) << 3 |
					  (wait < WAIT_MAX ? wait + 1 : wait));
	}
}

/* sys/class/kfd/kfd/topology/nodes/N: gpu_id "54321", properties with "drm_render_minor 128". */
static int row_of_kfd_node(const struct sweep_run *run, int node, uint64_t *ret_gpu)
{
	char path[80], text[4096];
	uint64_t minor;
	ssize_t n;

	snprintf(path, sizeof(path), "sys/class/kfd/kfd/topology/nodes/%d/gpu_id", node);
	if (io_read_u64(run->w->root, path, ret_gpu) != 0 || *ret_gpu == 0)
		return -1; /* 0: a CPU */
	snprintf(path, sizeof(path), "sys/class/kfd/kfd/topology/nodes/%d/properties", node);
	n = io_read(run->w->root, path, text, sizeof(text));
	if (n <= 0 || !scan_key_u64(scan_of(text, (size_t)n), "drm_render_minor", &minor))
		return -1;
	for (int i = 0; i < run->cards->n; i++)
		if (run->cards->card[i].render >= 0 &&
		    (uint64_t)run->cards->card[i].render == minor)
			return run->first + i;
	return -1;
}

/* proc/PID/vram_GPUID: bytes this process has through ROCm, readable whosever it is. The same memory
 * shows in fdinfo of its render node where we may read that: the larger of both is told. */
static void kfd_process(const struct sweep_run *run, int32_t pid, uint64_t gpu, int row)
{
	char path[80];
	uint64_t bytes;
	struct drm_use *u = NULL;

	snprintf(path, sizeof(path), "sys/class/kfd/kfd/proc/%d/vram_%llu", (int)pid,
		 (unsigned long long)gpu);
	if (io_read_u64(run->w->root, path, &bytes) != 0)
		return;
	for (size_t i = 0; i < run->sweep->now.n && !u; i++)
		if (run->sweep->now.v[i].pid == pid && run->sweep->now.v[i].row == row)
			u = &run->sweep->now.v[i];
	/* A ROCm process registers with every GPU: one on which it has nothing is not its user. */
	if (!u && bytes > 0)
		u = use_of(run->sweep, pid, row);
	if (!u)
		return;
	u->kfd = true;
	if (bytes / 1024 <= INT64_MAX / 4096 && (int64_t)(bytes / 1024) > u->memory_kb)
		u->memory_kb = (int64_t)(bytes / 1024);
}

/* KFD numbers processes as the machine's first pid namespace does: from inside a container they cannot
 * be told from ours, and the memory is in fdinfo already. */
static void look_at_kfd(const struct sweep_run *run)
{
	struct io_dir dir;
	int64_t pid;
	uint64_t gpu[GPU_DEVICES];
	int row[GPU_DEVICES], n = 0;

	if (!gpu_first_namespace(run->w->root))
		return;
	for (int node = 0; node < 2 * GPU_DEVICES && n < GPU_DEVICES; node++) {
		row[n] = row_of_kfd_node(run, node, &gpu[n]);
		if (row[n] >= 0)
			n++;
	}
	if (n == 0 || io_dir_open(&dir, run->w->root, "sys/class/kfd/kfd/proc") != 0)
		return;
	while ((pid = io_dir_next_number(&dir)) > 0)
		for (int i = 0; pid <= INT_MAX && i < n; i++)
			kfd_process(run, (int32_t)pid, gpu[i], row[i]);
	io_dir_close(&dir);
}

/* One engine's share between two looks, 1e-4; -1: not known. */
static int64_t engine_share(const struct fdinfo_engine *a, const struct fdinfo_engine *b,
			    int64_t elapsed_ns)
{
	int64_t used, of;

	if (b->time_ns >= 0) {
		used = a ? b->time_ns - a->time_ns : -1;
		of = elapsed_ns;
		if (a && a->time_ns < 0)
			used = -1;
	} else {
		if (!a || b->cycles < 0 || a->cycles < 0 || a->total < 0)
			return -1;
		used = b->cycles - a->cycles;
		of = b->total - a->total;
	}
	/* Backwards: a client was closed between the two. */
	if (used < 0 || of <= 0)
		return -1;
	used = (int64_t)((double)used / (double)of / (double)b->capacity * 1e4 + 0.5);
	return used > 10000 ? 10000 : used;
}

struct drm_load drm_load_between(const struct drm_use *before, const struct drm_use *now,
				 int64_t elapsed_ns)
{
	struct drm_load load = { .busy = -1, .encoder = -1, .decoder = -1 };

	for (int i = 0; before && i < now->n_engines; i++) {
		const struct fdinfo_engine *e = &now->engine[i], *was = NULL;
		int64_t share, *kind = &load.busy;

		for (int j = 0; j < before->n_engines; j++)
			if (strcmp(before->engine[j].name, e->name) == 0)
				was = &before->engine[j];
		share = engine_share(was, e, elapsed_ns);
		if (strncmp(e->name, "enc", 3) == 0)
			kind = &load.encoder;
		else if (strncmp(e->name, "dec", 3) == 0)
			kind = &load.decoder;
		if (share > *kind)
			*kind = share;
		if (share > load.busy)
			load.busy = share;
	}
	return load;
}

static const struct drm_use *use_before(const struct drm_sweep *sweep, const struct drm_use *u)
{
	for (size_t i = 0; i < sweep->before.n; i++)
		if (sweep->before.v[i].pid == u->pid && sweep->before.v[i].row == u->row)
			return &sweep->before.v[i];
	return NULL;
}

/* Counted time of the busiest engine. Cycles have no length: there the shares we saw are added up. */
static int64_t counted_time(const struct drm_use *u, const struct drm_use *was,
			    const struct drm_load *load, int64_t elapsed_ns)
{
	int64_t most = -1;

	for (int i = 0; i < u->n_engines; i++)
		if (u->engine[i].time_ns >= 0 &&
		    u->engine[i].time_ns / u->engine[i].capacity > most)
			most = u->engine[i].time_ns / u->engine[i].capacity;
	if (most >= 0)
		return most;
	if (u->n_engines == 0)
		return -1;
	return (was ? was->time_ns : 0) +
	       (load->busy > 0 ? (int64_t)((double)elapsed_ns * 1e-4 * (double)load->busy) : 0);
}

static bool draws_only(const struct drm_use *u)
{
	bool draws = false;

	if (u->kfd)
		return false;
	for (int i = 0; i < u->n_engines; i++) {
		if (strcmp(u->engine[i].name, "compute") == 0 && u->engine[i].time_ns > 0)
			return false;
		draws |= strcmp(u->engine[i].name, "gfx") == 0 && u->engine[i].time_ns > 0;
	}
	return draws;
}

static void tell(const struct sweep_run *run, struct drm_use *u, struct gpu_snapshot *s)
{
	const struct drm_use *was = use_before(run->sweep, u);
	int64_t elapsed = s->taken_ns - run->sweep->taken_ns;
	struct drm_load load = drm_load_between(was, u, elapsed);
	struct gpu_process *p = gpu_add_process(s, u->row, u->pid);
	char path[40], name[64];

	u->time_ns = counted_time(u, was, &load, elapsed > 0 ? elapsed : 0);
	if (!p)
		return;
	p->memory_kb = u->memory_kb;
	/* An integrated GPU has no memory but the machine's. */
	if (s->device[u->row].unified && (p->memory_kb < 0 || u->shared_kb > p->memory_kb))
		p->memory_kb = u->shared_kb;
	p->busy = load.busy >= 0 ? load.busy : u->share;
	p->encoder = load.encoder;
	p->decoder = load.decoder;
	p->time_ns = u->time_ns;
	p->graphics = draws_only(u);
	snprintf(path, sizeof(path), "proc/%d/comm", (int)u->pid);
	if (io_read(run->w->root, path, name, sizeof(name)) > 0) {
		name[strcspn(name, "\n")] = '\0';
		text_safe_copy(p->name, sizeof(p->name), name);
	}
}

void drm_processes(struct gpu_world *w, struct drm_sweep *sweep, const struct drm_cards *cards,
		   int first, struct gpu_snapshot *s)
{
	struct sweep_run run = { .w = w, .sweep = sweep, .cards = cards, .first = first };
	int count[GPU_DEVICES] = { 0 };
	__typeof__(sweep->now) spare;

	sweep->now.n = 0;
	map_clear(&sweep->clients);
	look_at_all(&run);
	look_at_kfd(&run);
	for (size_t i = 0; i < sweep->now.n; i++) {
		tell(&run, &sweep->now.v[i], s);
		count[sweep->now.v[i].row]++;
	}
	for (int i = first; i < first + cards->n; i++) {
		if (gpu_skipped(w, cards->card[i - first].pci))
			gpu_lacks(&s->device[i], M_GPU_PROCESSES, GPU_HUNG);
		else if (sweep->unreadable)
			gpu_lacks(&s->device[i], M_GPU_PROCESSES, GPU_NO_PERMISSION);
		else
			gpu_put(&s->device[i], M_GPU_PROCESSES, count[i]);
	}
	sweep->round++;
	sweep->taken_ns = s->taken_ns;
	spare = sweep->before;
	sweep->before = sweep->now;
	sweep->now = spare;
}

void drm_sweep_done(struct drm_sweep *sweep)
{
	map_done(&sweep->quiet);
	map_done(&sweep->clients);
	vec_done(&sweep->due);
	vec_done(&sweep->now);
	vec_done(&sweep->before);
}
