/* SPDX-License-Identifier: MIT */
#include "launch/supervise.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/err.h"
#include "launch/channel.h"
#include "launch/descriptors.h"
#include "launch/program.h"
#include "launch/recorder.h"
#include "launch/rescue.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	CLEARING_MS = 20,   /* R takes about 0.05 ms to forget a signal */
	SILENCE_MS = 1000,  /* R's, with the program's end known: then S looks for itself */
	STRANGLE_MS = 3000, /* and then R must go, so that the program falls to S */
};

static int open_signals(void)
{
	sigset_t all;

	sigfillset(&all);
	return signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* What S holds of the program's descriptors goes, so that a reader of its output sees the end when
 * the program ends. Only stderr stays, for R's words. */
static void let_go(const struct supervisor *s)
{
	const int keep[] = { s->relay.channel, s->relay.pidfd };

	descriptors_close_others(keep, ARRAY_LEN(keep));
	descriptors_silence(true);
}

static void started(struct supervisor *s, pid_t pid, int pidfd)
{
	char path[64];

	if (s->relay.pidfd >= 0)
		close(s->relay.pidfd);
	s->relay.program = pid;
	s->relay.pidfd = pidfd;
	s->started = true;
	if (s->signals >= 0)
		return;
	let_go(s);
	s->signals = open_signals();
	snprintf(path, sizeof(path), "/proc/%d/status", (int)s->relay.recorder);
	if (s->relay.recorder)
		s->relay.recorder_status = open(path, O_RDONLY | O_CLOEXEC);
}

static void exited(struct supervisor *s, int status)
{
	if (s->exited)
		return;
	s->exited = true;
	s->status = status;
	s->relay.program = 0; /* the number may be somebody else's from now on */
}

static void heard(struct supervisor *s, struct channel_msg *m)
{
	size_t room = LAUNCH_WORDS_MAX - s->words.len;

	switch (m->kind) {
	case CHANNEL_STARTED:
		started(s, m->value, steal_fd(&m->fd));
		break;
	case CHANNEL_FAILED:
		s->exec_error = m->value;
		break;
	case CHANNEL_BROKEN:
		s->broken = m->value;
		break;
	case CHANNEL_EXITED:
		exited(s, m->value);
		break;
	case CHANNEL_ENDED:
		s->ended = true;
		break;
	case CHANNEL_WORDS:
		buf_put(&s->words, m->text, m->n < room ? m->n : room);
		break;
	case CHANNEL_DONE:
		s->done = true;
		break;
	case CHANNEL_CLEARED:
		relay_cleared(&s->relay, m->value);
		break;
	default:
		break;
	}
	if (m->fd >= 0)
		close(m->fd);
}

/* Whoever writes there is gone: R, and the program that has not come as far as exec. */
static int closed(struct supervisor *s)
{
	int ends[2], error;
	pid_t pid;

	close(s->relay.channel);
	s->relay.channel = -1;
	if (s->started || s->broken || s->exec_error)
		return 0;
	/* R did not live long enough to start the program. Then S does: nobody asked for a record
	 * more than for the program. */
	error = channel_open(ends);
	if (error < 0)
		return error;
	pid = program_start(s->program, ends[1], NULL);
	close(ends[1]);
	s->relay.channel = ends[0];
	return pid < 0 ? pid : 0;
}

static int drain_channel(struct supervisor *s)
{
	struct channel_msg m;

	while (s->relay.channel >= 0) {
		int got = channel_recv(s->relay.channel, &m);

		if (got > 0)
			heard(s, &m);
		else if (got == 0)
			return closed(s);
		else if (got != -EBADMSG)
			break;
	}
	return 0;
}

static void recorder_gone(struct supervisor *s, int status)
{
	s->relay.recorder = 0;
	s->relay.clearing = 0;
	if (!s->done)
		s->recorder_end = status;
	/* R may have been about to stop S. */
	if (s->relay.program && rescue_state(s->relay.program) == 'T')
		(void)raise(SIGSTOP);
}

/* R has died and the program is S's own child now: a stop is S's to pass on to the shell. */
static void own_stops(struct supervisor *s)
{
	siginfo_t si = { 0 };

	if (s->relay.recorder || !s->relay.program)
		return;
	if (waitid(P_PID, (id_t)s->relay.program, &si, WSTOPPED | WNOHANG) == 0 && si.si_pid)
		(void)raise(SIGSTOP);
}

/* Everybody who has ended. While R lives that is R alone, then whatever falls to S. */
static void reap(struct supervisor *s)
{
	for (;;) {
		siginfo_t si = { 0 };
		int status;
		pid_t pid;

		if (waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT) < 0) {
			s->ended |= errno == ECHILD;
			break;
		}
		if (!si.si_pid)
			break;
		/* What it said before its end (its name, for one) comes first. */
		(void)drain_channel(s);
		pid = waitpid(si.si_pid, &status, WNOHANG);
		if (pid > 0 && pid == s->relay.recorder)
			recorder_gone(s, status);
		else if (pid > 0 && pid == s->relay.program)
			exited(s, status);
	}
	own_stops(s);
}

/* The program has ended and S still waits, for its orphans: who asks S to end is obeyed, and the
 * program's status is what they get. */
static void without_program(struct supervisor *s, int sig)
{
	if (!s->l->wait_orphans || s->ended)
		return;
	if (sig == SIGINT || sig == SIGTERM || sig == SIGHUP || sig == SIGQUIT) {
		(void)channel_send(s->relay.channel, CHANNEL_LEAVE, 0, -1);
		s->left = true;
	} else if (sig == SIGTSTP) {
		(void)raise(SIGSTOP);
	}
}

/* R may not have forgotten the one before yet. */
static void await_cleared(struct supervisor *s, int sig)
{
	int64_t until = clock_mono_ns() + CLEARING_MS * NS_PER_MS;

	while (relay_is_clearing(&s->relay, sig) && s->relay.channel >= 0 &&
	       clock_mono_ns() < until) {
		struct pollfd p = { .fd = s->relay.channel, .events = POLLIN };

		(void)poll(&p, 1, CLEARING_MS);
		(void)drain_channel(s);
	}
}

static void drain_signals(struct supervisor *s)
{
	struct signalfd_siginfo si;

	while (s->signals >= 0 && read(s->signals, &si, sizeof(si)) == sizeof(si)) {
		int sig = (int)si.ssi_signo;

		if (sig == SIGCHLD)
			reap(s);
		if (s->exited) {
			without_program(s, sig);
			continue;
		}
		await_cleared(s, sig);
		relay_signal(&s->relay, &si);
	}
}

/* R ought to have said it long since. */
static void rescue(struct supervisor *s)
{
	int64_t silence = s->silent_ns ? clock_mono_ns() - s->silent_ns : 0;
	int status;

	if (s->exited || silence < SILENCE_MS * NS_PER_MS)
		return;
	if (s->relay.recorder)
		(void)kill(s->relay.recorder, SIGCONT);
	if (rescue_status(s->relay.program, &status))
		exited(s, status);
	else if (s->relay.recorder && silence >= STRANGLE_MS * NS_PER_MS)
		(void)kill(s->relay.recorder, SIGKILL);
}

static bool is_over(struct supervisor *s)
{
	if (s->broken || s->exec_error)
		return true;
	if (!s->exited || (s->l->wait_orphans && !s->ended && !s->left))
		return false;
	if (!s->deadline_ns)
		s->deadline_ns = clock_mono_ns() + s->l->patience_ns;
	return s->done || !s->relay.recorder || clock_mono_ns() >= s->deadline_ns;
}

/* Everybody has gone and nobody has said how: cannot be, but must not be waited for either. */
static bool is_lost(const struct supervisor *s)
{
	return s->started && s->ended && !s->relay.recorder && !s->exited;
}

static int timeout_ms(const struct supervisor *s)
{
	int64_t left;

	if (s->silent_ns && !s->exited)
		return 200;
	if (!s->deadline_ns)
		return -1;
	left = s->deadline_ns - clock_mono_ns();
	return left <= 0 ? 0 : left >= 60 * NS_PER_S ? 60000 : (int)(left / NS_PER_MS) + 1;
}

static int round_of_waiting(struct supervisor *s)
{
	struct pollfd p[] = {
		{ .fd = s->relay.channel, .events = POLLIN },
		{ .fd = s->signals, .events = POLLIN },
		{ .fd = s->exited || s->silent_ns ? -1 : s->relay.pidfd, .events = POLLIN },
	};
	struct timespec pause = { .tv_nsec = 10 * NS_PER_MS };
	int error;

	if (poll(p, ARRAY_LEN(p), timeout_ms(s)) < 0)
		(void)nanosleep(&pause, NULL); /* short of memory: look without it */
	if (p[2].revents)
		s->silent_ns = clock_mono_ns();
	error = drain_channel(s);
	drain_signals(s);
	rescue(s);
	return error;
}

/* Nothing of it stays when the program could not be started. R ends on its own, at once. */
static void clear_up(struct supervisor *s)
{
	struct timespec slice = { .tv_nsec = 100 * NS_PER_MS };
	sigset_t chld;

	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	for (int i = 0; i < 10; i++) {
		reap(s);
		if (!s->relay.recorder)
			break;
		(void)sigtimedwait(&chld, NULL, &slice);
	}
}

int supervise_failure(int error, struct err *e)
{
	char why[96];

	err_name(error, why, sizeof(why));
	/* The three that say something about the command must not come from us. */
	if (error == -ENOENT || error == -EACCES || error == -ENOEXEC)
		error = -EIO;
	if (error == -ECHILD)
		return err_set(e, error, "how the program ended is not known");
	return err_set(e, error, "cannot start the program: %s", why);
}

int supervise(struct supervisor *s, struct err *e)
{
	int error = 0;

	while (!error && !is_over(s))
		error = is_lost(s) ? -ECHILD : round_of_waiting(s);
	if (!error && !s->broken && !s->exec_error)
		return 0;
	clear_up(s);
	if (s->exec_error)
		return program_failure(s->program->argv[0], s->exec_error, e);
	return supervise_failure(error ? error : -s->broken, e);
}
