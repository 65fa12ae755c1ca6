/* SPDX-License-Identifier: MIT
 *
 * Starting and ending helpers.
 *
 *	recorder --- keeper (exit signal 0, no exec) --- helper (exec)
 *
 * The recorder takes whoever dies with SIGCHLD for a process of the program (launch/launch.h), and exec
 * makes SIGCHLD of every exit signal. So a keeper stands between: a copy of us that does nothing but wait
 * for the helper, end it when we close the control pipe or are gone, and end with its status. As the
 * helper's parent it alone can signal it without ever meeting a pid that has been given away.
 *
 * Both are in sessions of their own: what a vendor's library sends to its process group does not reach the
 * program, it has no terminal, and what it forks is ended with it.
 */
#include "gpu/client_state.h"

#include "base/clock.h"
#include "base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct plan {
	const char *program;
	char *const *argv;
	_Atomic int32_t *ret_pid, *ret_error, *ret_ended; /* in the shared memory */
	pid_t keeper;
	int memory, control;
	struct rlimit files;
};

/* All but what a crash raises: what the terminal or a job scheduler sends to the group is the
 * recorder's business. Only SIGKILL ends a helper from outside. */
static void block_signals(void)
{
	sigset_t set;

	sigfillset(&set);
	sigdelset(&set, SIGSEGV);
	sigdelset(&set, SIGBUS);
	sigdelset(&set, SIGILL);
	sigdelset(&set, SIGFPE);
	sigdelset(&set, SIGABRT);
	sigdelset(&set, SIGTRAP);
	sigdelset(&set, SIGSYS);
	(void)sigprocmask(SIG_SETMASK, &set, NULL);
}

static void close_rest(const struct plan *p)
{
	rlim_t max = p->files.rlim_cur;

	/* Linux 5.9; before, one by one. */
	if (syscall(SYS_close_range, GPU_HELPER_CONTROL_FD + 1, ~0u, 0) == 0)
		return;
	if (max > 65536)
		max = 65536;
	for (int fd = GPU_HELPER_CONTROL_FD + 1; fd < (int)max; fd++)
		close(fd);
}

static void cannot_start(const struct plan *p, int code) __attribute__((noreturn));
static void cannot_start(const struct plan *p, int code)
{
	atomic_store(p->ret_error, errno);
	_exit(code);
}

/* In the child of a process with threads: nothing but system calls. */
static void become_helper(const struct plan *p) __attribute__((noreturn));
static void become_helper(const struct plan *p)
{
	int memory = fcntl(p->memory, F_DUPFD, 16), control = fcntl(p->control, F_DUPFD, 16);
	int nothing = open("/dev/null", O_RDWR);

	(void)setsid();
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (getppid() != p->keeper) /* it was killed before we asked to be */
		_exit(GPU_HELPER_NO_START);
	block_signals();
	if (nothing < 0) /* a bare root: nothing can be read from or written to this one either */
		nothing = open("/", O_PATH);
	nothing = fcntl(nothing, F_DUPFD, 16);
	if (memory < 0 || control < 0 || nothing < 0)
		cannot_start(p, GPU_HELPER_NO_START);
	for (int fd = 0; fd <= 2; fd++)
		(void)dup2(nothing, fd);
	if (dup2(memory, GPU_HELPER_MEMORY_FD) < 0 || dup2(control, GPU_HELPER_CONTROL_FD) < 0)
		cannot_start(p, GPU_HELPER_NO_START);
	close_rest(p);
	(void)execve(p->program, p->argv, environ);
	cannot_start(p, GPU_HELPER_NO_EXEC);
}

enum { SIGNALLED = 128, LINGER_MS = 1000, LOOK_MS = 50 };

/* Leaves the keeper nothing but the read end of the control pipe: files of ours must not stay open in
 * it, nor the pipes of a helper that was started before. */
static int keep_control(const struct plan *p)
{
	int control = dup2(p->control, GPU_HELPER_CONTROL_FD);

	for (int fd = 0; fd < GPU_HELPER_CONTROL_FD; fd++)
		close(fd);
	close_rest(p);
	return control;
}

/* The helper's status as an exit code: 128 and the signal, as shells have it. A status above 128 looks the
 * same: which it was stands in the shared memory. */
static int as_code(int status)
{
	return WIFSIGNALED(status) ? SIGNALLED + WTERMSIG(status) : WEXITSTATUS(status);
}

/* The child shares our memory until exec and never returns from here. */
static __attribute__((noinline)) pid_t start_exec(const struct plan *p)
{
	pid_t pid = vfork();

	if (pid == 0)
		become_helper(p);
	return pid;
}

static bool has_ended(pid_t pid)
{
	siginfo_t si = { 0 };

	return waitid(P_PID, (id_t)pid, &si, WEXITED | WNOHANG | WNOWAIT) < 0 || si.si_pid != 0;
}

/* In a copy of a process with threads: nothing but system calls, here too. */
static void become_keeper(struct plan *p) __attribute__((noreturn));
static void become_keeper(struct plan *p)
{
	struct pollfd look[2];
	int status = 0, timeout = -1, left = LINGER_MS / LOOK_MS;
	pid_t pid;

	(void)setsid();
	/* Somebody stopped us: when the recorder ends we must run on to see the end of the pipe. */
	(void)prctl(PR_SET_PDEATHSIG, SIGCONT, 0, 0, 0);
	/* What the library forked and left is no process of the program. */
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	p->keeper = getpid();
	pid = start_exec(p);
	if (pid < 0)
		cannot_start(p, GPU_HELPER_NO_START);
	atomic_store(p->ret_pid, pid);
	look[0].fd = keep_control(p);
	look[0].events = 0; /* the end of the pipe is told anyway; its bytes are the helper's */
	look[1].fd = (int)syscall(SYS_pidfd_open, pid, 0);
	look[1].events = POLLIN;
	if (look[1].fd < 0) /* before Linux 5.3 */
		timeout = LOOK_MS;
	while (!has_ended(pid)) {
		(void)poll(look, 2, timeout);
		if (look[0].fd >= 0 && !(look[0].revents & (POLLHUP | POLLERR | POLLNVAL)))
			continue;
		(void)kill(-pid, SIGKILL);
		look[0].fd = -1;
		timeout = LOOK_MS;
		/* In a call that cannot be interrupted. Nobody waits for us any more. */
		if (left-- <= 0)
			_exit(SIGNALLED + SIGKILL);
	}
	/* Before it is taken off: then its number could be somebody else's. */
	(void)kill(-pid, SIGKILL);
	(void)wait4(pid, &status, 0, NULL);
	atomic_store(p->ret_ended, 1 + status);
	_exit(as_code(status));
}

static void give_orders(const struct gpu_client *c, struct gpu_shared *s)
{
	struct gpu_orders *o = &s->orders;

	if (c->nvml)
		memcpy(o->nvml, c->nvml, strnlen(c->nvml, sizeof(o->nvml) - 1));
	o->period_ns = c->o.period_ns;
	o->depth = (int32_t)c->o.depth;
	o->n_skips = c->n_skips;
	memcpy(o->skip, c->skip, sizeof(c->skip[0]) * (size_t)c->n_skips);
	atomic_store(&s->thrift, c->thrift);
	atomic_store(&s->ask, c->ask);
}

static pid_t clone_keeper(struct plan *p)
{
	sigset_t old;
	pid_t pid;

	/* No handler of ours may run in the child. */
	signals_block(&old);
	pid = (pid_t)syscall(SYS_clone, 0, NULL, NULL, NULL, NULL);
	if (pid == 0)
		become_keeper(p);
	if (pid < 0)
		pid = -errno;
	signals_restore(&old);
	return pid;
}

int gpu_start_helper(struct gpu_client *c, struct gpu_helper *h, int64_t now_ns)
{
	static const char *const argv[] = { "spotter", "gpu-helper", NULL };
	struct plan p = { .program = c->program ? c->program : "/proc/self/exe",
			  .argv = (char *const *)(uintptr_t)argv };
	int ends[2], error;

	memset(h, 0, sizeof(*h));
	h->control = -1;
	error = gpu_shared_create(&h->shared, &p.memory);
	if (error < 0)
		return error;
	give_orders(c, h->shared);
	p.ret_pid = &h->shared->pid;
	p.ret_error = &h->shared->start_error;
	p.ret_ended = &h->shared->ended;
	(void)getrlimit(RLIMIT_NOFILE, &p.files);
	error = pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0 ? -errno : 0;
	if (error == 0) {
		p.control = ends[0];
		error = h->pid = clone_keeper(&p);
		close(ends[0]);
		h->control = ends[1];
	}
	close(p.memory);
	if (error < 0) {
		if (h->control >= 0)
			close(h->control);
		gpu_shared_unmap(h->shared);
		memset(h, 0, sizeof(*h));
		return error;
	}
	h->role = GPU_ROLE_CURRENT;
	h->started_ns = now_ns;
	return 0;
}

void gpu_wake_helper(const struct gpu_helper *h)
{
	/* The pipe is full: it has been woken enough. It is dead: that is seen elsewhere. SIGPIPE must
	 * not be raised in who uses us, and there is no flag for pipes. */
	sigset_t pipe, old, pending;
	struct timespec none = { 0 };
	bool was_pending;

	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	(void)sigpending(&pending);
	was_pending = sigismember(&pending, SIGPIPE) == 1;
	(void)pthread_sigmask(SIG_BLOCK, &pipe, &old);
	if (write(h->control, "", 1) < 0 && errno == EPIPE && !was_pending)
		(void)sigtimedwait(&pipe, NULL, &none);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
}

void gpu_kill_helper(struct gpu_helper *h)
{
	if (h->role == GPU_ROLE_NONE || h->role == GPU_ROLE_LEFT)
		return;
	close(h->control);
	h->control = -1;
	h->role = GPU_ROLE_LEFT;
	/* Our own child, not taken off: nobody else can have its number. It may have been stopped. */
	(void)kill(h->pid, SIGCONT);
}

/* As waitpid would give it. The keeper ends with the helper's signal as a code, and has written down what
 * it truly was; the library can write there as well, so it counts only when both fit. */
static int as_status(const siginfo_t *si, int written)
{
	if (si->si_code == CLD_EXITED && written && as_code(written - 1) == si->si_status)
		return written - 1;
	if (si->si_code != CLD_EXITED)
		return si->si_status & 0x7f;
	return si->si_status > SIGNALLED ? si->si_status - SIGNALLED : (si->si_status & 0xff) << 8;
}

bool gpu_helper_ended(const struct gpu_helper *h)
{
	siginfo_t si = { 0 };
	int error = waitid(P_PID, (id_t)h->pid, &si, WEXITED | WNOHANG | WNOWAIT | __WCLONE);

	return error < 0 ? errno == ECHILD : si.si_pid != 0;
}

/* What is left of it stays until the client is closed: taken off, its CPU time would become part of
 * our children's, which is the account of the program's orphans (collect/jobtree_cpu.c). */
bool gpu_bury_helper(struct gpu_client *c, struct gpu_helper *h, int *ret_status)
{
	struct rusage used = { 0 };
	siginfo_t si = { 0 };
	/* The C library's waitid() has no rusage. */
	int error = (int)syscall(SYS_waitid, P_PID, h->pid, &si,
				 WEXITED | WNOHANG | WNOWAIT | __WCLONE, &used);

	if (error < 0 ? errno != ECHILD : !si.si_pid)
		return false;
	/* Gone all the same when somebody took it from us. */
	*ret_status = error < 0 ? 0 : as_status(&si, atomic_load(&h->shared->ended));
	c->dead_cpu_ns += (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * NS_PER_S +
			  (used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1000;
	if (h->control >= 0)
		close(h->control);
	gpu_shared_unmap(h->shared);
	h->shared = NULL;
	h->control = -1;
	h->role = GPU_ROLE_NONE;
	return true;
}

void gpu_forget_helper(struct gpu_helper *h)
{
	if (h->pid > 0)
		(void)waitpid(h->pid, NULL, WNOHANG | __WCLONE);
	memset(h, 0, sizeof(*h));
}

void gpu_reap_helpers(struct gpu_client *c)
{
	for (int i = 0; i < GPU_HELPERS; i++)
		if (c->helper[i].pid > 0 && c->helper[i].role == GPU_ROLE_NONE)
			(void)waitpid(c->helper[i].pid, NULL, WNOHANG | __WCLONE);
}
