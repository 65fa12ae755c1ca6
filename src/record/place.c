/* SPDX-License-Identifier: MIT */
#include "record/place.h"

#include "base/auto.h"
#include "base/err.h"
#include "base/io.h"
#include "base/text.h"
#include "record/store.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

bool place_is_network(long type)
{
	static const unsigned long types[] = {
		0x6969,     /* NFS */
		0x517b,     /* SMB */
		0xff534d42, /* CIFS */
		0xfe534d42, /* SMB2 */
		0x0bd00bd0, /* Lustre */
		0x47504653, /* GPFS */
		0x65735546, /* FUSE: sshfs, s3fs, and local ones too, which cannot be told apart */
		0x00c36400, /* Ceph */
		0x01021997, /* 9p */
		0x5346414f, /* AFS */
		0x6b414653, /* kAFS */
		0x73757245, /* Coda */
		0x19830326, /* BeeGFS */
		0xaad7aaea, /* PanFS */
		0x20030528, /* OrangeFS */
	};

	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		if (((unsigned long)type & 0xffffffff) == types[i])
			return true;
	return false;
}

static bool is_network(const char *folder)
{
	struct statfs s;

	return statfs(folder, &s) == 0 && place_is_network((long)s.f_type);
}

int place_make(const char *folder)
{
	char path[PATH_MAX];

	if (!text_copy(path, sizeof(path), folder))
		return -ENAMETOOLONG;
	for (char *p = path + 1;; p++) {
		char c = *p;

		if (c && c != '/')
			continue;
		*p = '\0';
		if (mkdir(path, 0700) < 0 && errno != EEXIST) {
			int error = -errno;
			struct stat st;

			/* A parent that is there but closed to us says EACCES before EEXIST. */
			if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
				return error;
		}
		if (!c)
			return 0;
		*p = c;
	}
}

static const char *home(void)
{
	const char *h = getenv("HOME");
	const struct passwd *pw;

	if (h && h[0])
		return h;
	pw = getpwuid(getuid());
	return pw && pw->pw_dir ? pw->pw_dir : NULL;
}

static bool join(char *ret, size_t size, const char *a, const char *b)
{
	return snprintf(ret, size, "%s%s", a, b) < (int)size;
}

int store_dir(bool create, char *ret, size_t size, struct err *e)
{
	const char *own = getenv("SPOTTER_DIR"), *state = getenv("XDG_STATE_HOME");
	bool fits;
	char why[80];
	int r;

	if (own && own[0]) {
		fits = join(ret, size, own, "");
	} else if (state && state[0] == '/') {
		fits = join(ret, size, state, "/spotter/runs");
	} else {
		if (!home())
			return err_set(e, -ENOENT, "there is no home folder to keep runs in");
		fits = join(ret, size, home(), "/.local/state/spotter/runs");
	}
	if (!fits)
		return err_set(e, -ENAMETOOLONG, "the name of the folder of runs is too long");
	r = create ? place_make(ret) : 0;
	if (r < 0) {
		err_set(e, r, "cannot make the folder of runs '%s': %s", ret,
			err_name(r, why, sizeof(why)));
		err_hint(e, "set SPOTTER_DIR to a folder that can be written");
	}
	return r;
}

static int can_write(const char *folder)
{
	return access(folder, W_OK | X_OK) == 0 ? 0 : -errno;
}

/* A folder of our own under $TMPDIR, /tmp or /var/tmp, on this machine. */
static int private_folder(char *ret, size_t size)
{
	const char *const tops[] = { getenv("TMPDIR"), "/tmp", "/var/tmp" };
	int error = -ENOENT;

	for (size_t i = 0; i < ARRAY_LEN(tops); i++) {
		struct stat st;

		if (!tops[i] || tops[i][0] != '/' || is_network(tops[i]) ||
		    snprintf(ret, size, "%s/spotter-%u", tops[i], (unsigned)getuid()) >= (int)size)
			continue;
		if (mkdir(ret, 0700) < 0 && errno != EEXIST) {
			error = -errno;
			continue;
		}
		/* Somebody else may have made it first, or made it a link: then it is not ours. */
		if (lstat(ret, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == getuid() &&
		    (st.st_mode & 077) == 0 && can_write(ret) == 0)
			return 0;
		error = -EACCES;
	}
	return error;
}

static void folder_of(const char *path, char *ret, size_t size)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		text_copy(ret, size, ".");
	else
		snprintf(ret, size, "%.*s", slash == path ? 1 : (int)(slash - path), path);
}

/* --out FILE: there, or nowhere. */
static int check_out(const char *out, const char *folder, struct err *e)
{
	struct stat st;
	char why[80];
	int r;

	if (lstat(out, &st) == 0) {
		if (S_ISDIR(st.st_mode))
			return err_set(e, -EISDIR, "'%s' is a folder: give the name of a file",
				       out);
		err_set(e, -EEXIST, "'%s' exists already", out);
		err_hint(e, "remove it first, or choose another name");
		return -EEXIST;
	}
	r = can_write(folder);
	if (r < 0) {
		err_set(e, r, "cannot write '%s': %s", out, err_name(r, why, sizeof(why)));
		err_hint(e, "choose a folder that exists and can be written");
	}
	return r;
}

/* The run is to end up at `wanted`; where is it written meanwhile? */
static int place_at(const char *id, const char *wanted, const char *folder, struct store_place *p)
{
	char local[PATH_MAX / 2];

	if (!is_network(folder)) {
		text_copy(p->path, sizeof(p->path), wanted);
		return 0;
	}
	if (private_folder(local, sizeof(local)) < 0) {
		text_copy(p->path, sizeof(p->path), wanted);
		snprintf(p->remark, sizeof(p->remark),
			 "recording on a network file system, as there is no local place");
		return 0;
	}
	text_copy(p->final, sizeof(p->final), wanted);
	snprintf(p->path, sizeof(p->path), "%s/%s.spot", local, id);
	return 0;
}

int store_place(const char *id, const char *out, struct store_place *ret, struct err *e)
{
	struct store_place p = { 0 };
	struct err home_error = { 0 };
	char folder[PATH_MAX], wanted[PATH_MAX + 64], why[80];
	int r;

	if (out) {
		if (strlen(out) >= PATH_MAX - 16)
			return err_set(e, -ENAMETOOLONG, "the name of the file is too long");
		folder_of(out, folder, sizeof(folder));
		r = check_out(out, folder, e);
		if (r >= 0)
			r = place_at(id, out, folder, &p);
		if (r >= 0)
			*ret = p;
		return r;
	}
	r = store_dir(true, folder, sizeof(folder), &home_error);
	if (r >= 0)
		r = can_write(folder);
	snprintf(wanted, sizeof(wanted), "%s/%s.spot", folder, id);
	if (r >= 0 && strlen(wanted) < PATH_MAX) {
		place_at(id, wanted, folder, &p);
		*ret = p;
		return 0;
	}
	r = r < 0 ? r : -ENAMETOOLONG;
	if (private_folder(folder, sizeof(folder) / 2) < 0) {
		err_set(e, r, "there is no place to write the record: %s",
			home_error.code ? home_error.text : err_name(r, why, sizeof(why)));
		err_hint(e, "set SPOTTER_DIR to a folder that can be written, or use --out FILE");
		return r;
	}
	snprintf(p.path, sizeof(p.path), "%.*s/%s.spot", PATH_MAX / 2, folder, id);
	snprintf(p.remark, sizeof(p.remark),
		 "the folder of runs cannot be written (%s): recorded in %.120s",
		 err_name(r, why, sizeof(why)), folder);
	*ret = p;
	return 0;
}

static int copy_bytes(int from, int to)
{
	char buf[65536];
	ssize_t n;

	while ((n = read(from, buf, sizeof(buf))) != 0) {
		int r;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		r = io_write_all(to, buf, (size_t)n);
		if (r < 0)
			return r;
	}
	return fsync(to) < 0 ? -errno : 0;
}

/* Across file systems: a complete copy under another name first, so that nobody sees half a file. */
static int copy_over(const char *path, const char *final)
{
	char part[PATH_MAX + 16];
	auto_close int from = open(path, O_RDONLY | O_CLOEXEC), to = -1;
	int r;

	if (from < 0)
		return -errno;
	snprintf(part, sizeof(part), "%s.part", final);
	to = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (to < 0)
		return -errno;
	r = copy_bytes(from, to);
	if (r >= 0 && rename(part, final) < 0)
		r = -errno;
	if (r < 0)
		unlink(part);
	else
		unlink(path);
	return r;
}

int store_settle(const struct store_place *p, struct err *e)
{
	char why[80];
	int r = 0;

	if (!p->final[0])
		return 0;
	if (access(p->final, F_OK) == 0)
		r = -EEXIST;
	else if (rename(p->path, p->final) < 0)
		r = errno == EXDEV ? copy_over(p->path, p->final) : -errno;
	if (r >= 0)
		return 0;
	err_set(e, r, "cannot move the record to '%s': %s; it stays at '%s'", p->final,
		err_name(r, why, sizeof(why)), p->path);
	return r;
}
