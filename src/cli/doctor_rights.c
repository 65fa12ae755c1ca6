/* SPDX-License-Identifier: MIT
 *
 * What we may look at and how much of it; stacks: doctor_stacks.c.
 */
#include "cli/doctor.h"

#include "base/auto.h"
#include "base/io.h"
#include "collect/mountinfo.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* "hidepid=2" or "hidepid=invisible" among the options of the proc file system. */
static void look_hidepid(const struct doctor *d, struct doctor_row *r)
{
	size_t n = 0;
	int error;
	auto_free char *text = io_slurp(d->host->root, "proc/self/mountinfo", 4 << 20, &n, &error);
	struct scan s = scan_of(text ? text : "", n);
	struct mountinfo m;
	bool seen = false, hidden = false;

	while (text && mountinfo_next(&s, &m)) {
		static const char *const words[] = { "hidepid=1",        "hidepid=2",
						     "hidepid=noaccess", "hidepid=invisible",
						     "hidepid=4",        "hidepid=ptraceable" };

		if (!mountinfo_is(m.type, "proc") || !mountinfo_is(m.point, "/proc"))
			continue;
		seen = true;
		for (size_t i = 0; i < ARRAY_LEN(words); i++)
			hidden |= mountinfo_has(m.options, words[i]);
	}
	if (!seen) {
		doctor_set(r, DOCTOR_UNKNOWN, "the mount of /proc cannot be seen");
	} else if (!hidden) {
		doctor_set(r, DOCTOR_OK, "processes of all users can be seen");
	} else {
		doctor_set(r, DOCTOR_LIMITED, "hidepid: only your own processes can be seen");
		doctor_effect(r, "what other users' jobs take is known only as a sum");
		doctor_unlock(r, "sudo mount -o remount,hidepid=0 /proc");
	}
}

static void look_descriptors(const struct doctor *d, struct doctor_row *r)
{
	struct rlimit limit;

	(void)d;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0) {
		doctor_set(r, DOCTOR_UNKNOWN, "unknown");
		return;
	}
	doctor_set(r, DOCTOR_OK, "%llu, may be raised to %llu", (unsigned long long)limit.rlim_cur,
		   (unsigned long long)limit.rlim_max);
	if (limit.rlim_max >= 4096)
		return;
	r->status = DOCTOR_LIMITED;
	doctor_effect(r, "beyond some hundred processes and threads, each reading opens files anew "
			 "and costs twice as much");
	doctor_unlock(r, "raise the hard limit: LimitNOFILE=65536 (systemd), docker run --ulimit "
			 "nofile=65536, /etc/security/limits.conf");
}

static void look_io(const struct doctor *d, struct doctor_row *r)
{
	char path[64], text[256];
	ssize_t n;

	snprintf(path, sizeof(path), "proc/%d/io", d->subject);
	n = io_read(d->host->root, path, text, sizeof(text));
	if (n > 0) {
		doctor_set(r, DOCTOR_OK, "disk reads and writes of a child are readable");
		return;
	}
	doctor_set(r, DOCTOR_MISSING,
		   n == -ENOENT ? "not in this kernel (CONFIG_TASK_IO_ACCOUNTING)"
				: "not readable");
	doctor_effect(r, "what each process reads and writes is not known");
}

const struct doctor_check doctor_rights_checks[] = {
	{ "proc_io", "Process IO", true, look_io },
	{ "hidepid", "Other users", false, look_hidepid },
	{ "descriptors", "Open files", true, look_descriptors },
	{ 0 },
};
