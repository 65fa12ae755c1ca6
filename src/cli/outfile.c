/* SPDX-License-Identifier: MIT */
#include "cli/outfile.h"

#include "base/err.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int fail(struct err *e, int code, const char *path)
{
	char why[80];

	return err_set(e, code, "cannot write '%s': %s", path, err_name(code, why, sizeof(why)));
}

static int refuse(struct err *e, const char *path)
{
	err_set(e, -EEXIST, "'%s' is there already", path);
	err_hint(e, "--force overwrites it");
	return -EEXIST;
}

/* Mode of a file that somebody asked for by name: what open(2) would have given. */
static void plain_mode(int fd)
{
	mode_t mask = umask(0);

	umask(mask);
	(void)fchmod(fd, 0666 & ~mask);
}

static int open_beside(struct outfile *o, struct err *e)
{
	char dir[PATH_MAX];
	char *slash;

	text_copy(dir, sizeof(dir), o->path);
	slash = strrchr(dir, '/');
	if (slash)
		slash[slash == dir] = '\0'; /* "/file" is in "/" */
	/* A nameless file leaves nothing behind, however the process ends. */
	o->fd = open(slash ? dir : ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
	if (o->fd >= 0)
		return 0;
	snprintf(o->temporary, sizeof(o->temporary), "%s.XXXXXX", o->path);
	o->fd = mkostemp(o->temporary, O_CLOEXEC);
	if (o->fd < 0)
		return fail(e, -errno, o->path);
	o->named = true;
	plain_mode(o->fd);
	return 0;
}

int outfile_open(struct outfile *o, const char *path, bool replace, struct err *e)
{
	struct stat st;

	*o = (struct outfile){ .fd = -1, .replace = replace };
	if (!*path)
		return err_set(e, -EINVAL, "the name of the file is empty");
	if (!text_copy(o->path, sizeof(o->path), path))
		return fail(e, -ENAMETOOLONG, path);
	if (stat(path, &st) < 0)
		return errno == ENOENT ? open_beside(o, e) : fail(e, -errno, path);
	if (S_ISDIR(st.st_mode))
		return fail(e, -EISDIR, path);
	if (S_ISREG(st.st_mode))
		return replace ? open_beside(o, e) : refuse(e, path);
	o->direct = true;
	o->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	return o->fd < 0 ? fail(e, -errno, path) : 0;
}

/* Name for the nameless: link(2) refuses an existing name by itself, which no check before could. */
static int give_name(struct outfile *o, struct err *e)
{
	char self[40];

	snprintf(self, sizeof(self), "/proc/self/fd/%d", o->fd);
	if (!o->replace) {
		if (linkat(AT_FDCWD, self, AT_FDCWD, o->path, AT_SYMLINK_FOLLOW) == 0)
			return 0;
		return errno == EEXIST ? refuse(e, o->path) : fail(e, -errno, o->path);
	}
	for (unsigned i = 0; i < 100; i++) {
		snprintf(o->temporary, sizeof(o->temporary), "%s.%u-%u", o->path,
			 (unsigned)getpid(), i);
		o->named = linkat(AT_FDCWD, self, AT_FDCWD, o->temporary, AT_SYMLINK_FOLLOW) == 0;
		if (o->named || errno != EEXIST)
			break;
	}
	return o->named ? 0 : fail(e, -errno, o->path);
}

int outfile_commit(struct outfile *o, struct err *e)
{
	int r;

	if (o->direct)
		return 0;
	if (fsync(o->fd) < 0)
		return fail(e, -errno, o->path);
	if (!o->named) {
		r = give_name(o, e);
		if (r < 0 || !o->named)
			return r;
	} else if (!o->replace && link(o->temporary, o->path) < 0) {
		return errno == EEXIST ? refuse(e, o->path) : fail(e, -errno, o->path);
	} else if (!o->replace) {
		return 0; /* the temporary name goes in outfile_done */
	}
	if (rename(o->temporary, o->path) < 0)
		return fail(e, -errno, o->path);
	o->named = false;
	return 0;
}

bool outfile_is_same(const char *a, const char *b)
{
	struct stat x, y;

	return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

void outfile_done(struct outfile *o)
{
	if (o->fd >= 0)
		close(o->fd);
	if (o->named)
		unlink(o->temporary);
	o->fd = -1;
	o->named = false;
}
