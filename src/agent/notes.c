/* SPDX-License-Identifier: MIT */
#include "agent/notes.h"

#include "agent/discover.h"
#include "agent/records.h"
#include "base/auto.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/scan.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	ENVIRON_MOST = 1 << 20,
	MAPS_MOST = 16 << 20,
	MAPS_A_TICK = 8,    /* reading one takes 0.1 to 1 ms, and its memory's lock for as long */
	MAPS_LEAST_MB = 32, /* no framework is smaller */
	WAIT_FIRST_S = 2,   /* imports take a while */
	WAIT_MOST_S = 300,
	FILES_MOST = 4096,
};

static uint64_t hash(uint64_t h, const void *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		h = (h ^ ((const unsigned char *)p)[i]) * 0x100000001b3ull; /* FNV-1a */
	return h;
}

void notes_open(struct notes *n, const struct host *host)
{
	char text[64];
	ssize_t got = io_read(host->root, "proc/sys/kernel/random/boot_id", text, sizeof(text));

	*n = (struct notes){ .host = host };
	n->boot = hash(0xcbf29ce484222325ull, text, got > 0 ? (size_t)got : 0);
}

void notes_done(struct notes *n)
{
	vec_done(&n->v);
	map_done(&n->by_id);
	map_done(&n->by_pid);
}

struct note *note_of(const struct notes *n, uint32_t entity)
{
	uint32_t at;

	return map_get(&n->by_id, entity, &at) ? &n->v.v[at] : NULL;
}

struct note *note_of_pid(const struct notes *n, int64_t pid)
{
	uint32_t at;

	return pid > 0 && map_get(&n->by_pid, (uint64_t)pid, &at) ? &n->v.v[at] : NULL;
}

size_t notes_hidden(const struct notes *n)
{
	size_t hidden = 0;

	for (size_t i = 0; i < n->v.n; i++)
		hidden += n->v.v[i].hidden;
	return hidden;
}

static int add(struct notes *n, const struct entity *e, int64_t now)
{
	struct note *x = vec_push(&n->v);
	const int64_t who[] = { e->key, e->start_ns };

	if (!x)
		return -ENOMEM;
	*x = (struct note){ .id = e->id,
			    .pid = e->key,
			    .identity = map_mix(hash(n->boot, who, sizeof(who))),
			    .uid = NO_UID,
			    .rank_hint = -1,
			    .maps_due_ns = now,
			    .maps_wait_ns = WAIT_FIRST_S * NS_PER_S };
	job_env_none(&x->env);
	if (n->host->live && strcmp(e->name, "spotter") == 0 && e->key != n->host->self) {
		x->files_due_ns = now;
		x->files_wait_ns = NS_PER_S;
	}
	return map_put(&n->by_id, e->id, (uint32_t)n->v.n - 1) &&
		       map_put(&n->by_pid, (uint64_t)e->key, (uint32_t)n->v.n - 1)
		   ? 0
		   : -ENOMEM;
}

/* Those that ended go, the others keep their order. */
static int sweep(struct notes *n, const struct world *w)
{
	size_t kept = 0;

	for (size_t i = 0; i < n->v.n; i++)
		if (entity_find(&w->entities, n->v.v[i].id))
			n->v.v[kept++] = n->v.v[i];
	if (kept == n->v.n)
		return 0;
	n->v.n = kept;
	map_clear(&n->by_id);
	map_clear(&n->by_pid);
	for (size_t i = 0; i < kept; i++)
		if (!map_put(&n->by_id, n->v.v[i].id, (uint32_t)i) ||
		    !map_put(&n->by_pid, (uint64_t)n->v.v[i].pid, (uint32_t)i))
			return -ENOMEM;
	return 0;
}

/* Who started it, not in whose name it acts: "Uid:\t1000\t0\t0\t0" (real, effective...) is user 1000's su. Some of those
 * programs (sudo) then become root altogether, with an environment that anybody gave them: what has the bit is nobody's. No
 * training has it. In a captured machine there are no users: all is ours, as its records are. */
static uid_t user_of(const struct notes *n, int64_t pid)
{
	char path[48], text[1024];
	struct scan s;
	struct stat st;
	uint64_t real;
	ssize_t got;

	if (!n->host->live)
		return geteuid();
	snprintf(path, sizeof(path), "proc/%lld/exe", (long long)pid);
	if (fstatat(n->host->root, path, &st, 0) == 0 && st.st_mode & S_ISUID)
		return NO_UID;
	snprintf(path, sizeof(path), "proc/%lld/status", (long long)pid);
	got = io_read(n->host->root, path, text, sizeof(text));
	if (got <= 0 || !scan_key(scan_of(text, (size_t)got), "Uid", &s) || !scan_u64(&s, &real) ||
	    real >= NO_UID)
		return NO_UID;
	return (uid_t)real;
}

static void read_environ(struct notes *n, struct note *x)
{
	char path[48];
	size_t size;
	int error = 0;
	auto_free char *text = NULL;

	snprintf(path, sizeof(path), "proc/%lld/environ", (long long)x->pid);
	text = io_slurp(n->host->root, path, ENVIRON_MOST, &size, &error);
	x->asked = true;
	x->uid = user_of(n, x->pid);
	x->hidden = !text && (error == -EACCES || error == -EPERM);
	if (text)
		job_env_read(text, size, &x->env);
	else
		job_env_none(&x->env);
}

static void read_maps(struct notes *n, struct note *x)
{
	char path[48];
	size_t size;
	int error;
	auto_free char *text = NULL;

	snprintf(path, sizeof(path), "proc/%lld/maps", (long long)x->pid);
	text = io_slurp(n->host->root, path, MAPS_MOST, &size, &error);
	if (text)
		x->framework = framework_in(text, size);
	x->changed = false;
}

static void find_framework(struct notes *n, const struct world *w, struct note *x, int64_t now,
			   int *left)
{
	double rss = world_value(w, M_PROC_RSS, x->id);

	if ((x->framework && !x->changed) || x->hidden || now < x->maps_due_ns || *left <= 0 ||
	    !(rss >= MAPS_LEAST_MB * 1e6))
		return;
	read_maps(n, x);
	--*left;
	x->maps_due_ns = now + x->maps_wait_ns;
	x->maps_wait_ns *= 2;
	if (x->maps_wait_ns > WAIT_MOST_S * NS_PER_S)
		x->maps_wait_ns = WAIT_MOST_S * NS_PER_S;
}

/* Do pids mean the same to this process and to us? Where it cannot be seen, they do: most machines have one space. */
static bool shares_pids(int64_t pid)
{
	char path[48], ours[64], theirs[64];
	ssize_t a = io_readlink(-1, "/proc/self/ns/pid", ours, sizeof(ours)), b;

	snprintf(path, sizeof(path), "/proc/%lld/ns/pid", (long long)pid);
	b = io_readlink(-1, path, theirs, sizeof(theirs));
	return a < 0 || b < 0 || strcmp(ours, theirs) == 0;
}

static bool is_record(const char *path)
{
	size_t n = strlen(path);

	return n > 5 && path[0] == '/' && strcmp(path + n - 5, ".spot") == 0;
}

/* Whoever only looks at a record has it open as well. /proc/PID/fdinfo/FD: "pos:\t0\nflags:\t02500002\n...", in octal. */
static bool writes(int64_t pid, int64_t fd)
{
	char path[64], text[512];
	const char *flags;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%lld/fdinfo/%lld", (long long)pid, (long long)fd);
	n = io_read(-1, path, text, sizeof(text) - 1);
	if (n <= 0)
		return false;
	text[n] = '\0';
	flags = strstr(text, "flags:\t");
	return flags && (strtol(flags + 7, NULL, 8) & O_ACCMODE) == O_RDWR;
}

/* The file a recorder writes is one it has open. */
static bool find_record(const struct note *x, struct records *records)
{
	struct io_dir dir;
	char path[64], link[PATH_MAX];
	int left = FILES_MOST;
	bool found = false;
	int64_t fd;

	snprintf(path, sizeof(path), "/proc/%lld/fd", (long long)x->pid);
	if (io_dir_open(&dir, -1, path) < 0)
		return false;
	while (!found && left-- > 0 && (fd = io_dir_next_number(&dir)) > 0) {
		snprintf(path, sizeof(path), "/proc/%lld/fd/%lld", (long long)x->pid,
			 (long long)fd);
		if (io_readlink(-1, path, link, sizeof(link)) > 0 && is_record(link) &&
		    writes(x->pid, fd))
			found = records_offer(records, (pid_t)x->pid, x->uid, link,
					      shares_pids(x->pid));
	}
	io_dir_close(&dir);
	return found;
}

static void watch_recorder(struct note *x, struct records *records, int64_t now)
{
	if (!records || !x->files_due_ns || now < x->files_due_ns)
		return;
	if (find_record(x, records)) {
		x->files_due_ns = 0;
		return;
	}
	x->files_due_ns = now + x->files_wait_ns;
	x->files_wait_ns *= 2;
	if (x->files_wait_ns > WAIT_MOST_S * NS_PER_S)
		x->files_wait_ns = WAIT_MOST_S * NS_PER_S;
}

/* After an exec all of it may be different. */
static void note_changes(struct notes *n, const struct frame *f)
{
	for (size_t i = 0; i < f->lives.n; i++) {
		const struct life *l = &f->lives.v[i];
		struct note *x =
		    l->kind == ENTITY_PROC && l->change == LIFE_CHANGED ? note_of(n, l->id) : NULL;

		if (!x)
			continue;
		x->asked = false;
		x->changed = true;
		x->maps_due_ns = f->mono_ns;
		x->maps_wait_ns = WAIT_FIRST_S * NS_PER_S;
		if (n->host->live && strcmp(frame_text(f, l->name), "spotter") == 0) {
			x->files_due_ns = f->mono_ns;
			x->files_wait_ns = NS_PER_S;
		}
	}
}

static void note_gpus(struct notes *n, const struct world *w)
{
	for (size_t i = 0; i < w->entities.rows.n; i++) {
		const struct entity *e = &w->entities.rows.v[i];
		struct note *x =
		    e->kind == ENTITY_GPU_PROC && e->key > 0 ? note_of_pid(n, e->key) : NULL;

		if (x)
			x->gpu = true;
	}
}

int notes_tick(struct notes *n, const struct world *w, const struct frame *f,
	       struct records *records)
{
	int maps = MAPS_A_TICK, r = sweep(n, w);

	for (size_t i = 0; r == 0 && i < w->entities.rows.n; i++) {
		const struct entity *e = &w->entities.rows.v[i];

		if (e->kind == ENTITY_PROC && !note_of(n, e->id))
			r = add(n, e, f->mono_ns);
	}
	if (r < 0)
		return r;
	note_changes(n, f);
	for (size_t i = 0; i < n->v.n; i++) {
		struct note *x = &n->v.v[i];

		x->gpu = false;
		if (!x->asked)
			read_environ(n, x);
		find_framework(n, w, x, f->mono_ns, &maps);
		watch_recorder(x, records, f->mono_ns);
	}
	note_gpus(n, w);
	return 0;
}
