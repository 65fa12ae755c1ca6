/* SPDX-License-Identifier: MIT */
#include "launch/relay.h"

#include "base/clock.h"
#include "base/io.h"
#include "base/scan.h"
#include "launch/channel.h"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* One sender that goes through a list of processes (systemd, slurm) may come to R after S: R is
 * looked at for this long before a signal counts as meant for S alone. */
enum { LOOKS = 5, LOOK_EVERY_MS = 1 };

static uint64_t bit(int sig)
{
	return sig >= 1 && sig <= 64 ? (uint64_t)1 << (sig - 1) : 0;
}

/* What the terminal's driver sends to a group, and to nothing less. */
static bool is_of_terminal(int sig)
{
	return sig == SIGINT || sig == SIGQUIT || sig == SIGTSTP || sig == SIGTTIN ||
	       sig == SIGTTOU || sig == SIGWINCH;
}

/* News of our own children, or R that wakes us up (the program has gone on already). */
static bool relay_is_own(const struct relay_case *c)
{
	return (c->sig == SIGCHLD && c->code > 0) ||
	       (c->recorder && c->code == SI_USER && c->from == c->recorder);
}

bool relay_wanted(const struct relay_case *c)
{
	if (relay_is_own(c))
		return false;
	if (!c->same_group)
		return true; /* whoever meant the job has missed it */
	if (c->seen == RELAY_GROUP || (c->code == SI_KERNEL && is_of_terminal(c->sig)))
		return false;
	if (c->seen == RELAY_UNKNOWN && c->code == SI_KERNEL &&
	    (c->sig == SIGHUP || c->sig == SIGCONT))
		return c->session_leader;
	return true;
}

bool relay_parse(const char *text, size_t n, char *ret_state, uint64_t *ret_pending)
{
	struct scan all = scan_of(text, n), state, pending;
	const char *word;
	size_t length;
	uint64_t bits;

	if (!scan_key(all, "State", &state) || !scan_word(&state, &word, &length) ||
	    !scan_key(all, "ShdPnd", &pending) || !scan_hex(&pending, &bits))
		return false;
	*ret_state = *word;
	*ret_pending = bits;
	return true;
}

static void ask_to_clear(struct relay *r, int sig)
{
	if (channel_send(r->channel, CHANNEL_CLEAR, sig, -1) == 0)
		r->clearing |= bit(sig);
}

static enum relay_seen look(const struct relay *r, int sig, char *ret_state)
{
	const uint64_t stops = bit(SIGTSTP) | bit(SIGTTIN) | bit(SIGTTOU);
	ssize_t n = -1;
	uint64_t pending;
	char text[8192];

	if (r->recorder && r->recorder_status >= 0)
		n = io_pread(r->recorder_status, text, sizeof(text));
	if (n < 0 || !relay_parse(text, (size_t)n, ret_state, &pending))
		return RELAY_UNKNOWN;
	/* The kernel takes back a SIGCONT that has not been taken yet when a stop follows: R had it,
	 * and passing it on now would undo the stop (Ctrl-Z right after `fg`). */
	if (sig == SIGCONT)
		pending |= pending & stops ? bit(SIGCONT) : 0;
	return pending & bit(sig) ? RELAY_GROUP : RELAY_ALONE;
}

static enum relay_seen look_for_a_while(const struct relay *r, int sig, bool *ret_asleep)
{
	struct timespec pause = { .tv_nsec = LOOK_EVERY_MS * NS_PER_MS };
	char state = 0;
	enum relay_seen seen = look(r, sig, &state);

	/* Had it come to the group, R would not be stopped any more. */
	*ret_asleep = seen == RELAY_ALONE && sig == SIGCONT && state == 'T';
	for (int i = 0; i < LOOKS && seen == RELAY_ALONE && !*ret_asleep; i++) {
		(void)nanosleep(&pause, NULL);
		seen = look(r, sig, &state);
	}
	return seen;
}

static void pass_on(const struct relay *r, const struct signalfd_siginfo *si)
{
	int sig = (int)si->ssi_signo;
	siginfo_t info = { .si_signo = sig, .si_code = SI_QUEUE };
	siginfo_t *with_value = si->ssi_code == SI_QUEUE ? &info : NULL;

	/* A value sent along with sigqueue() is kept, and its sender; otherwise the sender is S. */
	info.si_pid = (pid_t)si->ssi_pid;
	info.si_uid = si->ssi_uid;
	info.si_value.sival_ptr = (void *)(uintptr_t)si->ssi_ptr;
	/* The pidfd cannot mean somebody else who has got the number since. */
	if (r->pidfd >= 0 &&
	    (syscall(SYS_pidfd_send_signal, r->pidfd, sig, with_value, 0) == 0 || errno == ESRCH))
		return;
	if (with_value)
		(void)syscall(SYS_rt_sigqueueinfo, r->program, sig, with_value);
	else
		(void)kill(r->program, sig);
}

void relay_signal(struct relay *r, const struct signalfd_siginfo *si)
{
	int sig = (int)si->ssi_signo;
	struct relay_case c = {
		.sig = sig,
		.code = si->ssi_code,
		.from = (pid_t)si->ssi_pid,
		.recorder = r->recorder,
		.seen = RELAY_UNKNOWN,
	};
	bool recorder_asleep = false;

	if (!r->program || relay_is_own(&c))
		return;
	c.same_group = getpgid(r->program) == getpgrp();
	c.session_leader = getsid(0) == getpid();
	if (!relay_is_clearing(r, sig))
		c.seen = look_for_a_while(r, sig, &recorder_asleep);
	if (relay_wanted(&c))
		pass_on(r, si);
	/* Somebody stopped the whole group and wakes only S up: R is not left behind. The program
	 * comes first: R, finding it stopped, would stop S again. */
	if (recorder_asleep)
		(void)kill(r->recorder, SIGCONT);
	if (recorder_asleep || c.seen == RELAY_GROUP)
		ask_to_clear(r, sig);
}

void relay_cleared(struct relay *r, int sig)
{
	r->clearing &= ~bit(sig);
}

bool relay_is_clearing(const struct relay *r, int sig)
{
	return (r->clearing & bit(sig)) != 0;
}
