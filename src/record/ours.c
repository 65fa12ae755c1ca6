/* SPDX-License-Identifier: MIT */
#include "record/ours.h"

#include "base/auto.h"
#include "base/io.h"
#include "base/scan.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	LINKS_MOST = 40,    /* in one path, as the kernel has it */
	UNMAPPED = 65534,   /* /proc/sys/kernel/overflowuid, which nobody changes */
	MAP_MOST = 1 << 16, /* 340 lines, Linux 4.15 */
};

/* A group of one's own is what many systems give every user with a umask of 002; root has no such thing. */
static bool others_may_write(const struct stat *st)
{
	mode_t others = S_IWOTH | S_IWGRP;

	if (st->st_gid == getegid() && geteuid() != 0)
		others = S_IWOTH;
	return st->st_mode & others;
}

/* "/a/b" becomes "/a", "/a" becomes "/"; false: there is nothing above. */
static bool go_up(char *path)
{
	char *slash = strrchr(path, '/');

	if (!slash || !slash[1])
		return false;
	slash[slash == path] = '\0';
	return true;
}

static bool is_trusted(uid_t uid)
{
	return uid == 0 || uid == geteuid();
}

bool run_file_map_has(const char *map, size_t n, uint64_t uid)
{
	struct scan text = scan_of(map, n), s;
	uint64_t inside, outside, count;
	bool any = false;

	while (scan_line(&text, &s)) {
		if (!scan_u64(&s, &inside) || !scan_u64(&s, &outside) || !scan_u64(&s, &count))
			return true;
		if (uid >= inside && uid - inside < count)
			return true;
		any = true;
	}
	return !any;
}

/* Is it a user of this user namespace like any other, who can own things? */
static bool is_mapped(uid_t uid)
{
	size_t n = 0;
	int error;
	auto_free char *map = io_slurp(AT_FDCWD, "/proc/self/uid_map", MAP_MOST, &n, &error);

	return !map || run_file_map_has(map, n, uid);
}

/* The same for folders above and links on the way: in a container without root's own user, what is root's belongs to
 * nobody. Where nobody is a user of the container, it may as well be that user's. */
static bool may_lead(uid_t uid)
{
	return is_trusted(uid) || (uid == UNMAPPED && !is_mapped(UNMAPPED));
}

/* Can nobody swap a folder above this one? */
static bool is_firm(char *folder)
{
	struct stat st;

	while (go_up(folder)) {
		if (lstat(folder, &st) < 0 || !S_ISDIR(st.st_mode) || !may_lead(st.st_uid))
			return false;
		/* in a folder like /tmp only who owns something may rename it */
		if (others_may_write(&st) && !(st.st_mode & S_ISVTX))
			return false;
	}
	return true;
}

bool run_file_is_ours(const char *full)
{
	char folder[PATH_MAX];
	struct stat st;

	snprintf(folder, sizeof(folder), "%s", full);
	if (lstat(full, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid())
		return false;
	if (!go_up(folder) || lstat(folder, &st) < 0 || !S_ISDIR(st.st_mode) ||
	    st.st_uid != geteuid() || others_may_write(&st))
		return false;
	return is_firm(folder);
}

/* Those one shares a folder with by choice may make one's own reader fail; root's they may not. */
static bool others_may_swap(const struct stat *st)
{
	return st->st_mode & (geteuid() == 0 ? S_IWOTH | S_IWGRP : S_IWOTH);
}

enum beside { BESIDE_NONE, BESIDE_SAFE, BESIDE_UNSAFE };

static enum beside look_beside(const char *full, const char *ending)
{
	char name[PATH_MAX + 8];
	struct stat st;

	snprintf(name, sizeof(name), "%s%s", full, ending);
	if (lstat(name, &st) < 0)
		return errno == ENOENT ? BESIDE_NONE : BESIDE_UNSAFE;
	return S_ISREG(st.st_mode) && is_trusted(st.st_uid) && !others_may_swap(&st)
		   ? BESIDE_SAFE
		   : BESIDE_UNSAFE;
}

bool run_file_is_safe(const char *full)
{
	enum beside wal = look_beside(full, "-wal"), shm = look_beside(full, "-shm");
	char folder[PATH_MAX];
	struct stat st;

	if (lstat(full, &st) < 0 || !S_ISREG(st.st_mode) || !is_trusted(st.st_uid) ||
	    wal == BESIDE_UNSAFE || shm == BESIDE_UNSAFE)
		return false;
	snprintf(folder, sizeof(folder), "%s", full);
	if (!go_up(folder) || lstat(folder, &st) < 0 || !S_ISDIR(st.st_mode) ||
	    !is_trusted(st.st_uid))
		return false;
	/* In one like /tmp nobody can take ours away, but anybody can put what is not there yet. */
	if (others_may_swap(&st) &&
	    !(st.st_mode & S_ISVTX && wal == BESIDE_SAFE && shm == BESIDE_SAFE))
		return false;
	return geteuid() != 0 || is_firm(folder);
}

/* "/a" and "b" of 1 byte: "/a/b". */
static bool append(char *path, const char *name, size_t n)
{
	size_t at = strlen(path);

	return snprintf(path + at, PATH_MAX - at, "%s%.*s", at > 1 ? "/" : "", (int)n, name) <
	       (int)(PATH_MAX - at);
}

/* `done` is a link: it becomes the folder to go on from, and `rest` what the link says before what was left. */
static int follow(char *done, char *rest, const struct stat *st)
{
	char target[PATH_MAX], joined[PATH_MAX];
	ssize_t n;

	if (geteuid() == 0 && !may_lead(st->st_uid))
		return -EPERM;
	n = readlink(done, target, sizeof(target) - 1);
	if (n < 0)
		return -errno;
	target[n] = '\0';
	if (snprintf(joined, sizeof(joined), "%s%s", target, rest) >= (int)sizeof(joined))
		return -ENAMETOOLONG;
	text_copy(rest, PATH_MAX, joined);
	if (target[0] == '/')
		text_copy(done, PATH_MAX, "/");
	else
		(void)go_up(done);
	return 0;
}

/* One name further: 1, 0 when there is none, -errno. */
static int resolve_step(char *done, char *rest, int *links)
{
	size_t at = strspn(rest, "/"), n = strcspn(rest + at, "/");
	char name[NAME_MAX + 1];
	struct stat st;

	if (!n)
		return 0;
	if (n > NAME_MAX)
		return -ENAMETOOLONG;
	snprintf(name, sizeof(name), "%.*s", (int)n, rest + at);
	memmove(rest, rest + at + n, strlen(rest + at + n) + 1);
	if (strcmp(name, ".") == 0)
		return 1;
	if (strcmp(name, "..") == 0) {
		(void)go_up(done);
		return 1;
	}
	if (!append(done, name, n))
		return -ENAMETOOLONG;
	if (lstat(done, &st) < 0)
		return -errno;
	if (S_ISLNK(st.st_mode)) {
		int r = ++*links > LINKS_MOST ? -ELOOP : follow(done, rest, &st);

		return r < 0 ? r : 1;
	}
	return 1;
}

int run_file_resolve(const char *path, char *ret)
{
	char rest[PATH_MAX];
	int links = 0, r;

	if (!*path)
		return -ENOENT;
	if (!text_copy(rest, sizeof(rest), path))
		return -ENAMETOOLONG;
	if (path[0] == '/')
		text_copy(ret, PATH_MAX, "/");
	else if (!getcwd(ret, PATH_MAX))
		return -errno;
	while ((r = resolve_step(ret, rest, &links)) > 0)
		;
	return r;
}
