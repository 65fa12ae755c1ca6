/* SPDX-License-Identifier: MIT */
#include "launch/program.h"

#include "base/auto.h"
#include "launch/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

extern char **environ;

enum { SIGNALS = 64 }; /* of the kernel, on every machine Linux has but MIPS */

/* 32 and 33 belong to the C library's threads: blocking them would hang a setuid() or a
 * pthread_cancel() in R. They stay as they are. */
static const uint64_t library_signals = (uint64_t)3 << 31;

/* Not sigprocmask(): it hides 32 and 33, and the mask must come back bit for bit. */
static uint64_t set_mask(uint64_t mask)
{
	uint64_t old = 0;

	(void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, &old, sizeof(mask));
	return old;
}

int program_prepare(struct program *p, char *const *argv, char *const *add)
{
	struct sigaction plain = { .sa_handler = SIG_DFL }, found;

	*p = (struct program){ .argv = argv, .env = program_env(environ, add) };
	if (!p->env)
		return -ENOMEM;
	p->mask = set_mask(UINT64_MAX);
	(void)set_mask(~library_signals | (p->mask & library_signals));
	if (sigaction(SIGCHLD, &plain, &found) == 0)
		p->chld_ignored = found.sa_handler == SIG_IGN;
	(void)prctl(PR_GET_PDEATHSIG, &p->death_signal, 0, 0, 0);
	return 0;
}

static void restore_signals(const struct program *p)
{
	struct sigaction chld = { .sa_handler = p->chld_ignored ? SIG_IGN : SIG_DFL };

	(void)sigaction(SIGCHLD, &chld, NULL);
	(void)set_mask(p->mask);
}

void program_done(struct program *p)
{
	if (p->env)
		restore_signals(p);
	free(p->env);
	*p = (struct program){ 0 };
}

/* exec would do that too, but only after the mask has been put back. */
static void forget_handlers(void)
{
	struct sigaction plain = { .sa_handler = SIG_DFL }, now;

	for (int sig = 1; sig <= SIGNALS; sig++)
		if (sigaction(sig, NULL, &now) == 0 && now.sa_handler != SIG_DFL &&
		    now.sa_handler != SIG_IGN)
			(void)sigaction(sig, &plain, NULL);
}

const char *program_path(void)
{
	const char *path = getenv("PATH");

	return path ? path : "/bin:/usr/bin"; /* what glibc's confstr(_CS_PATH) says */
}

bool program_is_text(const char *path)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	char start[128];
	ssize_t n = fd < 0 ? -1 : read(fd, start, sizeof(start));
	const char *line_end;

	if (n < 0)
		return false;
	line_end = memchr(start, '\n', (size_t)n);
	return !memchr(start, '\0', line_end ? (size_t)(line_end - start) : (size_t)n);
}

/* A script without "#!": the shell's, as execvp() and every shell have it. A binary for another
 * machine is not for the shell: ENOEXEC stays. */
static int exec_script(const struct program *p, const char *path)
{
	size_t n = 0;
	char **argv;

	if (!program_is_text(path))
		return ENOEXEC;
	while (p->argv[n])
		n++;
	argv = calloc(n + 2, sizeof(*argv));
	if (!argv)
		return ENOMEM;
	argv[0] = (char[]){ "/bin/sh" };
	argv[1] = strdup(path);
	memcpy(argv + 2, p->argv + 1, (n - 1) * sizeof(*argv));
	execve(argv[0], argv, p->env);
	return errno; /* the process is about to end: nothing to free */
}

/* The errno of a failure that execvp() would end its search with, or 0 to look further. */
static int exec_at(const struct program *p, const char *path)
{
	int error;

	execve(path, p->argv, p->env);
	error = errno;
	return error == ENOEXEC ? exec_script(p, path) : error;
}

/* As execvp(): a folder that is missing or closed to us is passed over, anything else ends it. */
static int exec_search(const struct program *p)
{
	const char *name = p->argv[0], *dir = program_path();
	char path[PATH_MAX];
	bool refused = false;

	if (!*name)
		return ENOENT;
	if (strchr(name, '/'))
		return exec_at(p, name);
	for (;;) {
		const char *end = strchrnul(dir, ':');
		int error, n = snprintf(path, sizeof(path), "%.*s%s%s", (int)(end - dir), dir,
					end > dir ? "/" : "", name);

		error = n < (int)sizeof(path) ? exec_at(p, path) : ENAMETOOLONG;
		if (error == EACCES)
			refused = true;
		else if (error != ENOENT && error != ENOTDIR && error != ESTALE &&
			 error != ENODEV && error != ETIMEDOUT && error != ENAMETOOLONG)
			return error;
		if (!*end)
			return refused ? EACCES : ENOENT;
		dir = end + 1;
	}
}

static void __attribute__((noreturn)) become(const struct program *p, int channel, const int *gate)
{
	auto_close int pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0); /* Linux 5.3, else -1 */
	int error;
	char go;

	if (gate) {
		close(gate[0]);
		(void)!read(gate[1], &go, 1);
	}
	/* From here on S can find us, even if R dies now. */
	(void)channel_send(channel, CHANNEL_STARTED, getpid(), pidfd);
	forget_handlers();
	restore_signals(p);
	error = exec_search(p);
	(void)channel_send(channel, CHANNEL_FAILED, error, -1);
	if (gate)
		(void)send(gate[1], &error, sizeof(error), MSG_NOSIGNAL);
	_exit(127);
}

pid_t program_start(const struct program *p, int channel, const int *gate)
{
	pid_t pid = fork();

	if (pid == 0)
		become(p, channel, gate);
	return pid < 0 ? -errno : pid;
}
