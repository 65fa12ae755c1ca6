/* SPDX-License-Identifier: MIT */
#include "cli/title.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/num.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PUSH "\033[22;2t"
#define POP  "\033[23;2t"

enum { LAST_TRY_MS = 100 };

bool title_terminal(int fd, char *path, size_t size)
{
	const char *term = getenv("TERM");

	if (!term || !*term || strcmp(term, "dumb") == 0 || strcmp(term, "linux") == 0)
		return false;
	return isatty(fd) && ttyname_r(fd, path, size) == 0;
}

void title_open(struct title *t, const char *path)
{
	*t = (struct title){ .fd = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) };
	if (t->fd >= 0 && !isatty(t->fd)) {
		close(t->fd);
		t->fd = -1;
	}
}

/* True when all of it is out. A terminal with no room at all is not even begun with. */
static bool push_out(struct title *t, int patience_ms)
{
	struct pollfd p = { .fd = t->fd, .events = POLLOUT };

	while (t->n_left && poll(&p, 1, patience_ms) > 0 && p.revents & POLLOUT) {
		ssize_t n = write(t->fd, t->left, t->n_left);

		if (n <= 0)
			break;
		t->n_left -= (size_t)n;
		memmove(t->left, t->left + n, t->n_left);
	}
	return !t->n_left;
}

static void queue(struct title *t, const char *text, size_t n)
{
	if (n > sizeof(t->left) - t->n_left)
		return;
	memcpy(t->left + t->n_left, text, n);
	t->n_left += n;
}

/* A terminal that does not control this session (ENOTTY) has no foreground to ask for. */
static bool in_foreground(int fd)
{
	pid_t group = tcgetpgrp(fd);

	return group == getpgrp() || (group < 0 && errno == ENOTTY);
}

void title_set(struct title *t, const char *text)
{
	char safe[TITLE_MAX], whole[TITLE_MAX + 32];
	int n;

	if (t->fd < 0 || !push_out(t, 0) || !in_foreground(t->fd))
		return;
	text_safe_copy(safe, sizeof(safe), text);
	n = snprintf(whole, sizeof(whole), "%s\033]2;%s\033\\", t->pushed ? "" : PUSH, safe);
	queue(t, whole, (size_t)n);
	if (push_out(t, 0) || t->n_left < (size_t)n)
		t->pushed = true;
	else
		t->n_left = 0; /* not begun: the next one will be newer */
}

void title_close(struct title *t)
{
	if (t->fd < 0)
		return;
	if (t->pushed && push_out(t, LAST_TRY_MS)) {
		queue(t, POP, strlen(POP));
		(void)push_out(t, LAST_TRY_MS);
	}
	close(t->fd);
	t->fd = -1;
}

void title_restore(const char *path)
{
	struct title t;

	title_open(&t, path);
	t.pushed = true;
	title_close(&t);
}

void title_text(const char *name, int64_t running_ns, const struct glance *before,
		const struct glance *now, char *out, size_t size)
{
	auto_done(buf) struct buf b = { 0 };
	char part[48];
	int64_t passed = now->t_ns - before->t_ns;

	buf_printf(&b, "%s, %s", name, num_seconds((double)running_ns / 1e9, part, sizeof(part)));
	if (now->steps)
		buf_printf(&b, ", step %llu", (unsigned long long)now->number);
	if (before->steps && before->who == now->who && now->steps > before->steps)
		buf_printf(&b, ", %s a step",
			   num_seconds((double)(now->step_ns - before->step_ns) / 1e9 /
					   (double)(now->steps - before->steps),
				       part, sizeof(part)));
	if (now->steps && isfinite(now->loss))
		buf_printf(&b, ", loss %.4g", now->loss);
	if (before->has_cpu && now->has_cpu && passed > 0 && now->cpu_ns >= before->cpu_ns)
		buf_printf(&b, ", %s cores",
			   num_cores((double)(now->cpu_ns - before->cpu_ns) / (double)passed, part,
				     sizeof(part)));
	text_safe_copy(out, size, buf_text(&b));
}
