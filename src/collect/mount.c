/* SPDX-License-Identifier: MIT
 *
 * How full the file systems are that a job depends on: /dev/shm (loader workers pass batches through
 * it), the one of its working folder, and /tmp; and, only to know that it is there, the first network file
 * system that a path on its command line leads to (--data=/mnt/set). Which mounts these are is read from
 * /proc/PID/mountinfo of the job's first process (form and sample: mountinfo.c), read again only when
 * the kernel says that it changed; the space comes from statvfs(). Cost: 65 us with 20 mounts.
 *
 * A job in a mount namespace of its own (a container seen from outside) has another /dev/shm than
 * we: it is reached through /proc/PID/root.
 *
 * Only file systems that are known to be local are asked: statvfs() on a network file system whose
 * server is gone never returns. The others are announced with a gap. A fixture has no file systems
 * to ask, so there all have one.
 */
#include "collect/mount.h"

#include "base/clock.h"
#include "base/io.h"
#include "base/text.h"
#include "collect/mountinfo.h"
#include "collect/whole.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { WATCHED = 4, PATH_BYTES = 4096, WORDS_MAX = 64 };

struct watch {
	int64_t mount; /* id in mountinfo, -1: none */
	uint32_t id;
	bool ask;  /* statvfs is safe */
	bool said; /* its gap has been noted */
	char point[PATH_BYTES];
};

struct mount_state {
	struct whole table;
	struct watch watch[WATCHED]; /* /dev/shm, working folder, /tmp, data; doubles are empty */
	bool other_namespace;        /* paths go through proc/PID/root */
};

/* "proc/self" for the whole machine. */
static void proc_path(const struct collect *c, const char *file, char *buf, size_t size)
{
	if (c->job.root > 0)
		snprintf(buf, size, "proc/%d/%s", (int)c->job.root, file);
	else
		snprintf(buf, size, "proc/self/%s", file);
}

/* Whether the job sees other mounts than we do. When it is gone or not ours to look at, what was
 * known stays. */
static bool in_other_namespace(const struct collect *c, const struct mount_state *st)
{
	char path[64], theirs[64], ours[64];

	if (!c->host->live || c->job.root <= 0)
		return false;
	proc_path(c, "ns/mnt", path, sizeof(path));
	if (io_readlink(c->host->root, path, theirs, sizeof(theirs)) <= 0 ||
	    io_readlink(c->host->root, "proc/self/ns/mnt", ours, sizeof(ours)) <= 0)
		return st->other_namespace;
	return strcmp(theirs, ours) != 0;
}

/* A kept mountinfo descriptor polls as readable with an error once after each change. */
static bool table_changed(const struct mount_state *st)
{
	struct pollfd p = { .fd = st->table.file.fd, .events = POLLPRI };

	return p.fd < 0 || !st->table.n || poll(&p, 1, 0) != 0;
}

static int read_table(struct collect *c, struct mount_state *st)
{
	char path[64];
	bool other = in_other_namespace(c, st);

	if (other != st->other_namespace)
		host_file_close(&st->table.file);
	st->other_namespace = other;
	if (!table_changed(st))
		return 0;
	if (!other)
		return whole_read(c->host, &st->table, "proc/self/mountinfo");
	proc_path(c, "mountinfo", path, sizeof(path));
	return whole_read(c->host, &st->table, path);
}

static void watch_life(struct frame *f, enum life_change change, const struct watch *w,
		       const char *detail)
{
	frame_life(f,
		   &(struct life){
		       .change = change, .id = w->id, .parent = ID_HOST, .kind = ENTITY_MOUNT },
		   w->point, detail);
}

static void watch_end(struct frame *f, struct watch *w)
{
	if (w->mount >= 0)
		watch_life(f, LIFE_GONE, w, NULL);
	w->mount = -1;
}

static bool watched_already(const struct mount_state *st, int n, int64_t mount)
{
	for (int i = 0; i < n; i++)
		if (st->watch[i].mount == mount)
			return true;
	return false;
}

/* Finds the mount of a path and lets watch number i follow it. */
static void follow(struct collect *c, struct mount_state *st, int i, const char *path,
		   struct frame *f)
{
	struct watch *w = &st->watch[i];
	struct mountinfo m;
	char type[64], source[256], detail[PATH_BYTES];
	bool local;

	if (!path || !mountinfo_find(st->table.text, st->table.n, path, &m, &local) ||
	    watched_already(st, i, m.id)) {
		watch_end(f, w);
		return;
	}
	if (w->mount == m.id)
		return;
	watch_end(f, w);
	if (!mountinfo_unescape(m.point, w->point, sizeof(w->point)))
		return;
	(void)mountinfo_unescape(m.type, type, sizeof(type));
	(void)mountinfo_unescape(m.source, source, sizeof(source));
	snprintf(detail, sizeof(detail), "%s on %s from %s", type, w->point,
		 source[0] ? source : "nothing");
	w->mount = m.id;
	w->id = collect_id(c);
	w->ask = local && c->host->live;
	w->said = false;
	watch_life(f, LIFE_BORN, w, detail);
}

static void gap(struct watch *w, struct frame *f, enum gap_why why)
{
	if (w->said)
		return;
	frame_gap(f, M_MOUNT_SIZE, w->id, why);
	frame_gap(f, M_MOUNT_AVAILABLE, w->id, why);
	w->said = true;
}

/* As seen by the job: in its own namespace the point is below proc/PID/root. */
static int ask(struct collect *c, const struct mount_state *st, const struct watch *w,
	       struct statvfs *ret)
{
	char path[PATH_BYTES + 32];

	if (st->other_namespace)
		snprintf(path, sizeof(path), "/proc/%d/root%s", (int)c->job.root, w->point);
	else
		text_copy(path, sizeof(path), w->point);
	return statvfs(path, ret) < 0 ? -errno : 0;
}

static void put_space(struct collect *c, struct mount_state *st, struct watch *w, struct frame *f)
{
	struct statvfs v;
	int r;

	if (!w->ask) {
		gap(w, f, GAP_NOT_SUPPORTED);
		return;
	}
	r = ask(c, st, w, &v);
	if (r < 0 || !v.f_frsize) {
		gap(w, f, r == -EACCES || r == -EPERM ? GAP_NO_PERMISSION : GAP_LOST);
		return;
	}
	if (w->said) {
		frame_gap(f, M_MOUNT_SIZE, w->id, GAP_OVER);
		frame_gap(f, M_MOUNT_AVAILABLE, w->id, GAP_OVER);
		w->said = false;
	}
	frame_put(f, M_MOUNT_SIZE, w->id, (int64_t)((double)v.f_blocks * v.f_frsize / 1024));
	frame_put(f, M_MOUNT_AVAILABLE, w->id, (int64_t)((double)v.f_bavail * v.f_frsize / 1024));
}

/* The path in a word of a command line: "/mnt/set", "--data=/mnt/set"; NULL: none. */
static const char *path_in(const char *word)
{
	const char *equals = strchr(word, '=');

	if (word[0] == '/')
		return word;
	return equals && equals[1] == '/' ? equals + 1 : NULL;
}

/* The first of its words that leads to a file system of the network. The path is looked up in the table and
 * not touched. */
static void follow_data(struct collect *c, struct mount_state *st, int i, struct frame *f)
{
	char path[64], words[PATH_BYTES];
	struct mountinfo m;
	bool local;
	ssize_t n;

	if (c->job.root <= 0)
		return;
	proc_path(c, "cmdline", path, sizeof(path));
	n = io_read(c->host->root, path, words, sizeof(words));
	for (ssize_t at = 0, k = 0; at < n && k < WORDS_MAX; k++) {
		const char *word = words + at, *found = path_in(word);

		at += (ssize_t)strlen(word) + 1;
		if (!found || !mountinfo_find(st->table.text, st->table.n, found, &m, &local) ||
		    mountinfo_type_local(m.type) || watched_already(st, i, m.id))
			continue;
		follow(c, st, i, found, f);
		return;
	}
}

static int mount_open(struct collect *c, void *state, struct frame *f)
{
	struct mount_state *st = state;
	int r;

	(void)f;
	whole_init(&st->table);
	for (int i = 0; i < WATCHED; i++)
		st->watch[i].mount = -1;
	r = read_table(c, st);
	if (r < 0)
		whole_done(&st->table);
	return r;
}

static int mount_read(struct collect *c, void *state, struct frame *f)
{
	struct mount_state *st = state;
	char cwd[PATH_BYTES], path[64];
	int r = read_table(c, st);

	if (r < 0)
		return r;
	proc_path(c, "cwd", path, sizeof(path));
	follow(c, st, 0, "/dev/shm", f);
	/* The job may be gone or another user's: then what was followed before still is. */
	if (io_readlink(c->host->root, path, cwd, sizeof(cwd)) > 0)
		follow(c, st, 1, cwd[0] == '/' ? cwd : NULL, f);
	follow(c, st, 2, "/tmp", f);
	follow_data(c, st, 3, f);
	for (int i = 0; i < WATCHED; i++)
		if (st->watch[i].mount >= 0)
			put_space(c, st, &st->watch[i], f);
	return 0;
}

static void mount_close(void *state)
{
	struct mount_state *st = state;

	whole_done(&st->table);
}

const struct collector mount_collector = {
	.name = "mount",
	.help = "space on /dev/shm, the working folder's file system and /tmp (statvfs)",
	.state_size = sizeof(struct mount_state),
	.every_ns = 5 * NS_PER_S,
	.open = mount_open,
	.read = mount_read,
	.close = mount_close,
	.sample_metric = M_MOUNT_SIZE,
};
