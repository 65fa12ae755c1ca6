/* SPDX-License-Identifier: MIT */
#include "cli/doctor.h"

#include "base/io.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

void doctor_set(struct doctor_row *r, enum doctor_status status, const char *fmt, ...)
{
	va_list ap;

	r->status = status;
	va_start(ap, fmt);
	vsnprintf(r->value, sizeof(r->value), fmt, ap);
	va_end(ap);
}

void doctor_effect(struct doctor_row *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r->effect, sizeof(r->effect), fmt, ap);
	va_end(ap);
}

void doctor_unlock(struct doctor_row *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r->unlock, sizeof(r->unlock), fmt, ap);
	va_end(ap);
}

/* A child that only waits: what Spotter may read of it, it may read of a program it starts. */
static pid_t start_subject(void)
{
	pid_t parent = getpid(), pid = fork();

	if (pid != 0)
		return pid < 0 ? 0 : pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
	for (;;)
		pause();
}

static void end_subject(pid_t pid)
{
	if (pid <= 0)
		return;
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static int run_checks(struct doctor *d, const struct doctor_check *c)
{
	for (; c->id; c++) {
		struct doctor_row *r;

		if (c->live_only && !d->host->live)
			continue;
		r = vec_push(&d->rows);
		if (!r)
			return -ENOMEM;
		r->id = c->id;
		r->label = c->label;
		r->status = DOCTOR_UNKNOWN;
		c->look(d, r);
	}
	return 0;
}

static bool can_read(const struct doctor *d, const char *file)
{
	char path[64], text[16];

	if (d->subject)
		snprintf(path, sizeof(path), "proc/%d/%s", d->subject, file);
	else
		snprintf(path, sizeof(path), "proc/self/%s", file);
	return io_read(d->host->root, path, text, sizeof(text)) > 0;
}

static void find_level(struct doctor *d)
{
	if (!can_read(d, "stat")) {
		d->level = 0;
		snprintf(d->level_why, sizeof(d->level_why),
			 "processes cannot be read: only the machine and control groups");
		return;
	}
	d->level = 1;
	snprintf(d->level_why, sizeof(d->level_why),
		 "processes and threads; this version reads /proc only");
}

int doctor_look(struct doctor *d, const struct host *host)
{
	int r;

	*d = (struct doctor){ .host = host };
	if (host->live)
		d->subject = start_subject();
	r = run_checks(d, doctor_machine_checks);
	if (r == 0)
		r = run_checks(d, doctor_gpu_checks);
	if (r == 0)
		r = run_checks(d, doctor_rights_checks);
	if (r == 0)
		r = run_checks(d, doctor_place_checks);
	find_level(d);
	end_subject(d->subject);
	return r;
}

void doctor_done(struct doctor *d)
{
	vec_done(&d->rows);
}
