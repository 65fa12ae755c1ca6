/* SPDX-License-Identifier: MIT */
#include "launch/recorder.h"

#include "base/auto.h"
#include "base/clock.h"
#include "launch/channel.h"

#include <errno.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	NEWS_AGE_MS = 500, /* a signal to the group that S has not asked about by then is old */
	RETRY_MS = 20,     /* when S, stopped, leaves no room for the status */
};

/* The status as waitpid() would give it. A core dump's flag is not lost. */
static int wait_status(const siginfo_t *si)
{
	if (si->si_code == CLD_EXITED)
		return (si->si_status & 0xff) << 8;
	return (si->si_status & 0x7f) | (si->si_code == CLD_DUMPED ? 0x80 : 0);
}

static void signal_supervisor(const struct launch_run *run, int sig)
{
	if (run->supervisor_fd >= 0)
		(void)syscall(SYS_pidfd_send_signal, run->supervisor_fd, sig, NULL, 0);
	else if (getppid() == run->supervisor)
		(void)kill(run->supervisor, sig);
}

/* S will ask no more about what stopped the group: left lying, it would pass for a stop that came
 * after the next SIGCONT (relay.c). */
static void stop_supervisor(struct launch_run *run)
{
	signal_supervisor(run, SIGSTOP);
	witness_clear(&run->witness, SIGTSTP);
	witness_clear(&run->witness, SIGTTIN);
	witness_clear(&run->witness, SIGTTOU);
}

/* R stops S and wakes it up, rather than S itself: so the two cannot overtake each other. First
 * taken off, then acted on: once S is stopped the shell may have the program go on and stop again,
 * and that would be taken off for this. Should R be killed in between, S looks for itself. */
void recorder_stops(struct launch_run *run)
{
	while (!run->exited) {
		siginfo_t si = { 0 };

		if (waitid(P_PID, (id_t)run->program, &si, WSTOPPED | WCONTINUED | WNOHANG) < 0 ||
		    !si.si_pid)
			return;
		if (si.si_code != CLD_CONTINUED)
			stop_supervisor(run);
		else if (run->stopped)
			signal_supervisor(run, SIGCONT);
		run->stopped = si.si_code != CLD_CONTINUED;
	}
}

/* The program's zombie stays until S has been told: killed before that, R leaves it to S. */
static bool program_exited(struct launch_run *run, const siginfo_t *si)
{
	int status = wait_status(si);
	siginfo_t gone;

	if (!run->told && run->channel >= 0) {
		int error = channel_send(run->channel, CHANNEL_EXITED, status, -1);

		run->retry = error == -EAGAIN || error == -ENOBUFS || error == -ENOMEM;
		if (run->retry)
			return false;
	}
	if (!run->told && run->stopped)
		signal_supervisor(run, SIGCONT); /* killed while it was stopped */
	run->told = true;
	run->end.status = status;
	if (run->l->ended && !run->exec_error)
		run->l->ended(run, run->l->arg);
	(void)waitid(P_PID, (id_t)run->program, &gone, WEXITED);
	run->exited = true;
	recorder_speak(run);
	return true;
}

/* Takes off everybody who has ended; true when nobody is left. A helper of R's own that was cloned
 * with an exit signal other than SIGCHLD is not among them (no __WALL). */
static bool reap(struct launch_run *run)
{
	for (;;) {
		siginfo_t si = { 0 }, gone;

		if (waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT) < 0)
			return errno == ECHILD;
		if (!si.si_pid)
			return false;
		if (si.si_pid != run->program || run->exited)
			(void)waitid(P_PID, (id_t)si.si_pid, &gone, WEXITED | WNOHANG);
		else if (!program_exited(run, &si))
			return false;
	}
}

static void read_channel(struct launch_run *run)
{
	struct channel_msg m;
	int got;

	while ((got = channel_recv(run->channel, &m)) > 0) {
		if (m.fd >= 0)
			close(m.fd);
		if (m.kind == CHANNEL_LEAVE) {
			run->leave = true;
		} else if (m.kind == CHANNEL_CLEAR) {
			witness_clear(&run->witness, m.value);
			(void)channel_send(run->channel, CHANNEL_CLEARED, m.value, -1);
		}
	}
	if (got != 0)
		return;
	close(run->channel);
	run->channel = -1;
	/* Somebody had asked the kernel to send this to what they started when they die; the kernel
	 * did so to S, and where that was the end of S the program would not hear of it. */
	if (run->death_signal && !run->exited)
		(void)kill(run->program, run->death_signal);
}

static void read_exec(struct launch_run *run)
{
	if (read(run->exec_fd, &run->exec_error, sizeof(run->exec_error)) !=
	    sizeof(run->exec_error))
		run->exec_error = 0;
	close(run->exec_fd);
	run->exec_fd = -1;
}

static int64_t sooner(int64_t timeout_ns, int64_t ns)
{
	return timeout_ns < 0 || ns < timeout_ns ? ns : timeout_ns;
}

void recorder_poll(struct launch_run *run, int64_t timeout_ns)
{
	int64_t look_ns = run->stopped ? -1 : witness_look(&run->witness, clock_mono_ns());
	bool watch = !run->stopped && !run->witness.pending;
	struct pollfd p[] = {
		{ .fd = run->children, .events = POLLIN },
		{ .fd = run->channel, .events = POLLIN },
		{ .fd = run->exec_fd, .events = POLLIN },
		{ .fd = watch ? run->witness.fd : -1, .events = POLLIN },
	};
	struct signalfd_siginfo si[8];
	struct timespec ts;
	int n;

	if (run->stopped)
		witness_rest(&run->witness);
	if (look_ns >= 0)
		timeout_ns = sooner(timeout_ns, look_ns);
	ts = (struct timespec){ .tv_sec = timeout_ns / NS_PER_S, .tv_nsec = timeout_ns % NS_PER_S };
	n = ppoll(p, ARRAY_LEN(p), timeout_ns < 0 ? NULL : &ts, NULL);
	if (n <= 0)
		return;
	if (p[0].revents)
		while (read(run->children, si, sizeof(si)) > 0)
			;
	if (p[1].revents)
		read_channel(run);
	if (p[2].revents)
		read_exec(run);
}

static bool is_over(struct launch_run *run)
{
	bool alone = reap(run);

	recorder_stops(run);
	if (!run->exited || (run->l->wait_orphans && !alone && !run->leave))
		return false;
	run->end.orphans_left = !alone;
	(void)getrusage(RUSAGE_CHILDREN, &run->end.usage);
	run->ended = true;
	(void)channel_send(run->channel, CHANNEL_ENDED, 0, -1);
	return true;
}

int launch_wait(struct launch_run *run, int64_t timeout_ns, struct launch_end *ret)
{
	int64_t until = timeout_ns < 0 ? INT64_MAX : clock_mono_ns() + timeout_ns;

	while (!run->ended && !is_over(run)) {
		int64_t left = timeout_ns < 0 ? -1 : until - clock_mono_ns();

		if (timeout_ns >= 0 && left <= 0)
			return 0;
		recorder_poll(run, run->retry ? sooner(left, RETRY_MS * NS_PER_MS) : left);
	}
	*ret = run->end;
	return 1;
}

pid_t launch_pid(const struct launch_run *run)
{
	return run->program;
}

int64_t launch_reaped_cpu_ns(const struct launch_run *run)
{
	struct rusage u;

	(void)run;
	if (getrusage(RUSAGE_CHILDREN, &u) < 0)
		return 0;
	return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * NS_PER_S +
	       (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000ll;
}
