/* SPDX-License-Identifier: MIT */
#include "record/ours.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
	while (go_up(folder)) {
		if (lstat(folder, &st) < 0 || !S_ISDIR(st.st_mode) ||
		    (st.st_uid != 0 && st.st_uid != geteuid()))
			return false;
		/* in a folder like /tmp only who owns something may rename it */
		if (others_may_write(&st) && !(st.st_mode & S_ISVTX))
			return false;
	}
	return true;
}
