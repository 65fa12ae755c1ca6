/* SPDX-License-Identifier: MIT */
#include "launch/witness.h"

#include "base/auto.h"
#include "base/clock.h"

#include <errno.h>
#include <string.h>
#include <sys/signalfd.h>

enum {
	OLD_MS = 500, /* S asks within 30 ms, unless it does not get to run */
	LOOK_MS = 100,
};

/* A fault ends R as it ends anyone, and is nobody else's: not watched, not blocked. */
static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS, SIGTRAP };

int witness_open(struct witness *w)
{
	sigfillset(&w->signals);
	sigdelset(&w->signals, SIGCHLD);
	for (size_t i = 0; i < ARRAY_LEN(faults); i++)
		sigdelset(&w->signals, faults[i]);
	w->fd = signalfd(-1, &w->signals, SFD_CLOEXEC | SFD_NONBLOCK);
	return w->fd < 0 ? -errno : 0;
}

void witness_clear(struct witness *w, int sig)
{
	struct timespec at_once = { 0 };
	sigset_t one;

	if (sig < 1 || sig > WITNESS_SIGNALS || !sigismember(&w->signals, sig))
		return;
	sigemptyset(&one);
	sigaddset(&one, sig);
	(void)sigtimedwait(&one, NULL, &at_once);
	w->since_ns[sig] = 0;
}

void witness_rest(struct witness *w)
{
	memset(w->since_ns, 0, sizeof(w->since_ns));
}

int64_t witness_look(struct witness *w, int64_t now_ns)
{
	sigset_t there;

	sigemptyset(&there);
	(void)sigpending(&there);
	w->pending = false;
	for (int sig = 1; sig <= WITNESS_SIGNALS; sig++) {
		if (!sigismember(&there, sig) || !sigismember(&w->signals, sig)) {
			w->since_ns[sig] = 0;
			continue;
		}
		if (!w->since_ns[sig])
			w->since_ns[sig] = now_ns;
		if (now_ns - w->since_ns[sig] > OLD_MS * NS_PER_MS)
			witness_clear(w, sig);
		else
			w->pending = true;
	}
	return w->pending ? LOOK_MS * NS_PER_MS : -1;
}
