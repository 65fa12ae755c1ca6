/* SPDX-License-Identifier: MIT */
#include "cli/doctor.h"

#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
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

static void be_subject(pid_t parent, int ready)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
	/* As a program is when it has been started, whatever the mode of our own file. */
	prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	close(ready);
	for (;;)
		pause();
}

/* A child that only waits: what Spotter may read of it, it may read of a program it starts. */
static pid_t start_subject(void)
{
	pid_t parent = getpid(), pid;
	int ends[2];
	char byte;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return 0;
	pid = fork();
	if (pid == 0)
		be_subject(parent, ends[1]);
	close(ends[1]);
	while (pid > 0 && read(ends[0], &byte, 1) < 0 && errno == EINTR)
		;
	close(ends[0]);
	return pid < 0 ? 0 : pid;
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

static void find_levels(struct doctor *d)
{
	if (can_read(d, "stat")) {
		doctor_reach(d, &d->run, &d->attach);
		return;
	}
	snprintf(d->run.why, sizeof(d->run.why),
		 "processes cannot be read: only the machine and control groups");
	d->attach = d->run;
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
		r = run_checks(d, doctor_stacks_checks);
	if (r == 0)
		r = run_checks(d, doctor_place_checks);
	find_levels(d);
	end_subject(d->subject);
	return r;
}

void doctor_done(struct doctor *d)
{
	vec_done(&d->rows);
}
