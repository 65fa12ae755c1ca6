/* SPDX-License-Identifier: MIT
 *
 * Where records and shared memory go.
 */
#include "cli/doctor.h"

#include "base/auto.h"
#include "base/err.h"
#include "base/io.h"
#include "base/num.h"
#include "base/text.h"
#include "collect/mountinfo.h"
#include "record/store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

static void look_shm(const struct doctor *d, struct doctor_row *r)
{
	struct statvfs st;
	char size[32], left[32];
	double total, available;

	(void)d;
	if (statvfs("/dev/shm", &st) < 0) {
		doctor_set(r, DOCTOR_MISSING, "there is no /dev/shm");
		doctor_effect(r,
			      "data loaders with worker processes cannot hand over their batches");
		doctor_unlock(r, "sudo mount -t tmpfs tmpfs /dev/shm");
		return;
	}
	total = (double)st.f_blocks * (double)st.f_frsize;
	available = (double)st.f_bavail * (double)st.f_frsize;
	doctor_set(r, DOCTOR_OK, "%s, %s free", num_bytes(total, size, sizeof(size)),
		   num_bytes(available, left, sizeof(left)));
	if (total > 100e6 && available > 50e6)
		return;
	/* 64 MB is what docker gives unless told otherwise: less than one batch of images. */
	r->status = DOCTOR_LIMITED;
	doctor_effect(r, "too small for data loaders with worker processes");
	doctor_unlock(r, "docker run --shm-size=8g, or sudo mount -o remount,size=8g /dev/shm");
}

/* The nearest folder of the path that exists. */
static void existing_part(char *path)
{
	while (access(path, F_OK) < 0 && strrchr(path, '/')) {
		char *slash = strrchr(path, '/');

		slash[slash == path] = '\0';
		if (slash == path)
			return;
	}
}

/* Which file system that is, and whether it answers from this machine alone. */
static bool file_system(const char *path, char *ret, size_t size)
{
	size_t n = 0;
	int error;
	auto_free char *text = io_slurp(-1, "/proc/self/mountinfo", 4 << 20, &n, &error);
	struct mountinfo m;
	bool local;

	text_copy(ret, size, "unknown file system");
	if (!text || !mountinfo_find(text, n, path, &m, &local))
		return true;
	snprintf(ret, size, "%.*s", (int)(m.type.end - m.type.p), m.type.p);
	return mountinfo_type_local(m.type);
}

static void look_runs(const struct doctor *d, struct doctor_row *r)
{
	char dir[PATH_MAX], exists[PATH_MAX], type[40], left[32] = "";
	struct err e = { 0 };
	struct statvfs st;
	bool local;

	(void)d;
	if (store_dir(false, dir, sizeof(dir), &e) < 0) {
		doctor_set(r, DOCTOR_MISSING, "%s", e.text);
		doctor_unlock(r, "export SPOTTER_DIR=/some/folder");
		return;
	}
	text_copy(exists, sizeof(exists), dir);
	existing_part(exists);
	local = file_system(exists, type, sizeof(type));
	if (statvfs(exists, &st) == 0)
		num_bytes((double)st.f_bavail * (double)st.f_frsize, left, sizeof(left));
	doctor_set(r, DOCTOR_OK, "%s (%s, %s free)", dir, type, left);
	if (access(exists, W_OK | X_OK) < 0) {
		r->status = DOCTOR_MISSING;
		doctor_effect(r, "it cannot be written (%s): records go to a temporary folder",
			      errno == EROFS ? "read-only file system" : "no permission");
		doctor_unlock(r, "export SPOTTER_DIR=/some/folder/you/may/write");
	} else if (!local) {
		r->status = DOCTOR_LIMITED;
		doctor_effect(r,
			      "a network file system: runs are recorded locally and moved there at "
			      "the end");
		doctor_unlock(r, "export SPOTTER_DIR=/a/local/folder");
	}
}

const struct doctor_check doctor_place_checks[] = {
	{ "shm", "Shared memory", true, look_shm },
	{ "runs", "Folder of runs", true, look_runs },
	{ 0 },
};
