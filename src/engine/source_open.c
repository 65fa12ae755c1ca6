/* SPDX-License-Identifier: MIT
 *
 * The kernel judges: the calling thread takes the user, the groups and the (missing) capabilities of the watched
 * process for as long as the file is looked up and opened. Mode bits of the file alone would not do, as folders on
 * the way, access lists and file servers have their say, too. setfsuid(2) is made for this: it is per thread, and the
 * user in question may neither signal nor trace a thread that has only this of theirs.
 */
#include "engine/source_open.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/scan.h"
#include "base/vec.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	LOCKS_MAX = 1 << 20,
	STATUS_MAX = 1 << 20, /* a process may be in 65536 groups */
	CAPS_WORDS = 2,
};

struct rights {
	uid_t uid;
	gid_t gid;
	VEC(gid_t) groups;
	struct __user_cap_data_struct caps[CAPS_WORDS];
};

static void rights_done(struct rights *r)
{
	vec_done(&r->groups);
}

bool source_is_named(const char *file)
{
	size_t n = strlen(file);

	return n >= 4 && strcmp(file + n - 3, ".py") == 0;
}

/* "Uid:	1000	1000	1000	1000": real, effective, saved, for files. A process whose four differ is a set-id
 * program: it has become one since it gave the name (exec), or else its name was given by one user and would be read
 * with the rights of another. Its source is left alone. */
static bool read_id(struct scan status, const char *key, uint32_t *ret)
{
	struct scan line;
	uint64_t v;

	if (!scan_key(status, key, &line))
		return false;
	for (int i = 0; i < 4; i++) {
		if (!scan_u64(&line, &v) || v >= UINT32_MAX || (i && v != *ret))
			return false;
		*ret = (uint32_t)v;
	}
	return true;
}

/* "Groups:	4 24 27 1000 ": also none at all. */
static bool read_groups(struct scan status, struct rights *r)
{
	struct scan line;
	uint64_t v;

	if (!scan_key(status, "Groups", &line))
		return false;
	while (scan_u64(&line, &v)) {
		gid_t *g = v < UINT32_MAX ? vec_push(&r->groups) : NULL;

		if (!g)
			return false;
		*g = (gid_t)v;
	}
	return true;
}

static bool read_rights(int proc, struct rights *r)
{
	size_t n = 0;
	int error = 0;
	auto_free char *text = io_slurp(proc, "status", STATUS_MAX, &n, &error);
	struct scan status = scan_of(text ? text : "", n);

	return read_id(status, "Uid", &r->uid) && read_id(status, "Gid", &r->gid) &&
	       read_groups(status, r);
}

static bool get_caps(struct __user_cap_data_struct caps[CAPS_WORDS])
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };

	return syscall(SYS_capget, &head, caps) == 0;
}

static bool set_caps(const struct __user_cap_data_struct caps[CAPS_WORDS])
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };

	return syscall(SYS_capset, &head, caps) == 0;
}

/* What this thread has. */
static bool own_rights(struct rights *r)
{
	int n = getgroups(0, NULL);

	/* an id that is none: tells the one it has */
	r->uid = (uid_t)syscall(SYS_setfsuid, -1);
	r->gid = (gid_t)syscall(SYS_setfsgid, -1);
	if (n < 0 || !vec_reserve(&r->groups, (size_t)n + 1))
		return false;
	n = getgroups(n, r->groups.v);
	r->groups.n = n > 0 ? (size_t)n : 0;
	return n >= 0 && get_caps(r->caps);
}

/* System calls as they are: those of the C library change all threads of the process. */
static bool set_ids(const struct rights *r)
{
	if (syscall(SYS_setgroups, r->groups.n, r->groups.v) < 0)
		return false;
	(void)syscall(SYS_setfsgid, r->gid);
	(void)syscall(SYS_setfsuid, r->uid);
	/* these two do not tell whether they did it */
	return (gid_t)syscall(SYS_setfsgid, -1) == r->gid &&
	       (uid_t)syscall(SYS_setfsuid, -1) == r->uid;
}

/* The capabilities that open what mode bits forbid. Others are left: giving back needs some of them. */
static const uint32_t caps_to_read = 1u << CAP_DAC_OVERRIDE | 1u << CAP_DAC_READ_SEARCH;

/* Nothing to change: the process is root's; or the recorder is a plain user's, as is what it can look into. */
static bool may_the_same(const struct rights *who, const struct rights *own)
{
	return who->uid == 0 || (who->uid == own->uid && !(own->caps[0].effective & caps_to_read));
}

/* False: it may not become that user (a container without CAP_SETUID): then nothing is read. */
static bool take(const struct rights *who, const struct rights *own)
{
	struct __user_cap_data_struct less[CAPS_WORDS];

	if (may_the_same(who, own))
		return true;
	/* asked anew: to be another user has taken some already */
	if ((who->uid != own->uid && !set_ids(who)) || !get_caps(less))
		return false;
	less[0].effective &= ~caps_to_read;
	return set_caps(less);
}

/* Cannot fail: what is given back is permitted. If it did, the thread would go on with less, and read less. */
static void give_back(const struct rights *who, const struct rights *own, int dumpable)
{
	if (may_the_same(who, own))
		return;
	if (who->uid != own->uid) {
		(void)set_ids(own);
		/* the kernel forbids core files of all the process as soon as a thread changes its user */
		if (dumpable == 1)
			(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	}
	(void)set_caps(own->caps);
}

/* Opening a file breaks the lease another process has on it, by a signal that kills who did not expect it.
 * "1: LEASE  ACTIVE    WRITE 4711 fe:00:393218 0 EOF". */
static bool is_leased(const struct stat *st)
{
	size_t n = 0;
	int error = 0;
	auto_free char *text = io_slurp(AT_FDCWD, "/proc/locks", LOCKS_MAX, &n, &error);
	char inode[32];

	if (!text)
		return error == -EFBIG; /* not to be known: better no source */
	snprintf(inode, sizeof(inode), ":%llu ", (unsigned long long)st->st_ino);
	for (char *at = text; (at = strstr(at, "LEASE")); at++) {
		char *end = strchrnul(at, '\n'), *found = strstr(at, inode);

		if (found && found < end)
			return true;
	}
	return false;
}

/* A link "train.py" to "/etc/shadow" is no Python source, even if who watches and who is watched are both root. */
static bool leads_to_source(const char *found)
{
	char path[PATH_MAX];

	return geteuid() != 0 ||
	       (io_readlink(AT_FDCWD, found, path, sizeof(path)) > 0 && source_is_named(path));
}

static int open_in(int root, const char *name, int64_t started_ns, off_t max, struct stat *st)
{
	char path[40];
	auto_close int found = -1;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", root);
	found = io_find(path, name, true);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", found);
	if (found < 0 || fstat(found, st) < 0 || !S_ISREG(st->st_mode) || st->st_size > max ||
	    st->st_mtim.tv_sec > started_ns / NS_PER_S || !leads_to_source(path) || is_leased(st))
		return -1;
	return open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
}

/* A relative name as one from the root of the process: in a chroot, links that start at its working folder would lead
 * out of it. Both links of /proc/PID are told as seen from our own root: "/jail" and "/jail/app" give "/app"; those of a
 * container are "/" and "/app". False: the folder is not inside of the root. */
static bool name_in_root(int proc, const char *file, char *ret, size_t size)
{
	char root[PATH_MAX], cwd[PATH_MAX];
	ssize_t n;
	int len;

	if (file[0] == '/') {
		len = snprintf(ret, size, "%s", file);
		return len > 0 && (size_t)len < size;
	}
	n = io_readlink(proc, "root", root, sizeof(root));
	if (n <= 0 || io_readlink(proc, "cwd", cwd, sizeof(cwd)) <= 0)
		return false;
	n = n == 1 ? 0 : n;
	if (strncmp(cwd, root, (size_t)n) != 0 || cwd[n] == '(' || (cwd[n] && cwd[n] != '/'))
		return false;
	len = snprintf(ret, size, "%s/%s", cwd + n, file);
	return len > 0 && (size_t)len < size;
}

int source_open_as(pid_t pid, const char *file, int64_t started_ns, off_t max, struct stat *ret)
{
	auto_done(rights) struct rights who = { 0 }, own = { 0 };
	auto_close int proc = -1, root = -1;
	char name[PATH_MAX + SOURCE_PATH_BYTES + 2], folder[32];
	int fd = -1, dumpable = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);

	/* one descriptor for all that is asked of the process: its id may be another's in a moment */
	snprintf(folder, sizeof(folder), "/proc/%d", (int)pid);
	proc = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	root = proc < 0 ? -1 : openat(proc, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0 || !name_in_root(proc, file, name, sizeof(name)) || !read_rights(proc, &who) ||
	    !own_rights(&own))
		return -1;
	if (take(&who, &own))
		fd = open_in(root, name, started_ns, max, ret);
	give_back(&who, &own, dumpable);
	return fd;
}
