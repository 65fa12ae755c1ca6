/* SPDX-License-Identifier: MIT
 *
 * The program of the demo is carried along and written to a folder of its own. `spotter run` lets go of
 * everything when the program has ended and ends as it did, so that part happens in a child, and this
 * process stays to remove the folder:
 *
 *	demo --- S supervisor --- R recorder --- python3 .../demo_train.py
 */
#include "cli/command.h"

#include "base/auto.h"
#include "base/err.h"
#include "base/io.h"
#include "base/scan.h"
#include "base/text.h"
#include "cli/demo_train.h"
#include "launch/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OLDEST_MINOR = 8, RUN_WORDS_MAX = 16 };

#define FILE_NAME "/demo_train.py"

struct demo_options {
	struct common_options common;
	const char *python;
	double seconds;
	bool fixed, keep;
};

struct demo_place {
	char folder[PATH_MAX - sizeof(FILE_NAME)];
	char file[PATH_MAX];
};

struct demo_python {
	const char *path; /* as given, or looked up in PATH */
	int major, minor;
};

/* ---- which Python */

static int spawn_probe(const char *python, int out, pid_t *ret)
{
	char *argv[] = { (char *)python, (char *)"-c",
			 (char *)"import sys; sys.stdout.write('%d.%d' % sys.version_info[:2])",
			 NULL };
	posix_spawn_file_actions_t files;
	int error;

	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
	posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	error = posix_spawnp(ret, python, &files, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&files);
	return -error;
}

/* "3.11" -> 3, 11. The program may be anything a user has named: -EPROTO when it says something else. */
static int parse_version(const char *text, size_t n, struct demo_python *ret)
{
	struct scan s = scan_of(text, n);
	uint64_t major, minor;

	if (!scan_u64(&s, &major) || !scan_lit(&s, ".") || !scan_u64(&s, &minor) || !scan_end(&s) ||
	    major > 99 || minor > 999)
		return -EPROTO;
	ret->major = (int)major;
	ret->minor = (int)minor;
	return 0;
}

/* Asks it for its version: 0, -ENOENT, -EACCES..., -EPROTO: it is no Python. */
static int probe(const char *path, struct demo_python *ret)
{
	auto_close int in = -1;
	char text[32];
	int ends[2], error, status = 0;
	size_t n = 0;
	ssize_t got;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	in = ends[0];
	error = spawn_probe(path, ends[1], &pid);
	close(ends[1]);
	if (error < 0)
		return error;
	while (n < sizeof(text) &&
	       ((got = read(in, text + n, sizeof(text) - n)) > 0 || (got < 0 && errno == EINTR)))
		n += got > 0 ? (size_t)got : 0;
	close(steal_fd(&in)); /* a program that goes on talking ends by SIGPIPE */
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	ret->path = path;
	return status == 0 ? parse_version(text, n, ret) : -EPROTO;
}

static bool recent(const struct demo_python *p)
{
	return p->major > 3 || (p->major == 3 && p->minor >= OLDEST_MINOR);
}

static int refuse_python(const struct demo_options *o, const char *path, int error,
			 const struct demo_python *p, struct err *e)
{
	char reason[120], shown[256];

	text_safe_copy(shown, sizeof(shown), path);
	if (error == 0)
		err_set(e, -ENOTSUP, "'%s' is Python %d.%d; the demo needs 3.%d or later", shown,
			p->major, p->minor, OLDEST_MINOR);
	else if (error == -EPROTO)
		err_set(e, error, "'%s' did not answer as Python does", shown);
	else if (!o->python && error == -ENOENT)
		err_set(e, error, "the demo is a Python program, and there is no python3 in PATH");
	else
		err_set(e, error, "cannot start '%s': %s", shown,
			err_name(error, reason, sizeof(reason)));
	err_hint(e, "name another with --python PATH (3.%d or later, no packages needed)",
		 OLDEST_MINOR);
	return e->code;
}

static int find_python(const struct demo_options *o, struct demo_python *ret, struct err *e)
{
	const char *names[] = { o->python ? o->python : "python3", o->python ? NULL : "python" };
	struct demo_python first = { 0 };
	int error = probe(names[0], &first);

	if (error == 0 && recent(&first)) {
		*ret = first;
		return 0;
	}
	if (names[1] && probe(names[1], ret) == 0 && recent(ret))
		return 0;
	return refuse_python(o, names[0], error, &first, e);
}

/* ---- where */

static int write_program(const char *path)
{
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	return io_write_all(fd, demo_train, demo_train_size);
}

static void remove_place(const struct cli *cli, const struct demo_place *at)
{
	unlink(at->file);
	if (rmdir(at->folder) < 0)
		cli_say(cli, "spotter: '%s' is left behind: it is not empty", at->folder);
}

static int make_place(struct demo_place *at, struct err *e)
{
	const char *base = getenv("TMPDIR");
	char reason[120];
	int error;

	if (!base || base[0] != '/')
		base = "/tmp";
	if (strlen(base) > sizeof(at->folder) - 32)
		return err_set(e, -ENAMETOOLONG, "the folder named by TMPDIR has too long a name");
	snprintf(at->folder, sizeof(at->folder), "%s/spotter-demo-XXXXXX", base);
	if (!mkdtemp(at->folder)) {
		error = -errno;
		err_set(e, error, "cannot make a folder in '%s': %s", base,
			err_name(error, reason, sizeof(reason)));
		err_hint(e, "name another: TMPDIR=/some/folder spotter demo");
		return error;
	}
	snprintf(at->file, sizeof(at->file), "%s%s", at->folder, FILE_NAME);
	error = write_program(at->file);
	if (error == 0)
		return 0;
	unlink(at->file);
	rmdir(at->folder);
	return err_set(e, error, "cannot write '%s': %s", at->file,
		       err_name(error, reason, sizeof(reason)));
}

/* ---- running it */

/* In the child: the same way in as `spotter run ...` typed by hand. */
static int run_words(struct cli *cli, const struct demo_options *o, const char *python,
		     const char *file)
{
	char seconds[32], color[32];
	char *argv[RUN_WORDS_MAX];
	int n = 0;

	snprintf(seconds, sizeof(seconds), "%g", o->seconds);
	snprintf(color, sizeof(color), "--color=%s", o->common.color ? o->common.color : "auto");
	argv[n++] = (char *)"run";
	argv[n++] = color;
	argv[n++] = (char *)"--name";
	argv[n++] = o->fixed ? (char *)"demo-fixed" : (char *)"demo";
	argv[n++] = (char *)"--";
	argv[n++] = (char *)python;
	argv[n++] = (char *)file;
	argv[n++] = (char *)"--seconds";
	argv[n++] = seconds;
	if (o->fixed)
		argv[n++] = (char *)"--fixed";
	argv[n] = NULL;
	return cli_main(cli, n, argv);
}

/* What a terminal sends reaches the whole group, the child too; what somebody sent to us alone is passed
 * on. Either way we outlive the child, to tidy up behind it. */
static int wait_for(pid_t child, const sigset_t *signals)
{
	siginfo_t info;
	int status = 0;

	for (;;) {
		pid_t done = waitpid(child, &status, WNOHANG);

		if (done == child)
			return status;
		if (done < 0 && errno != EINTR)
			return W_EXITCODE(EXIT_FAILED, 0);
		if (sigwaitinfo(signals, &info) > 0 && info.si_signo != SIGCHLD &&
		    info.si_code <= 0)
			kill(child, info.si_signo);
	}
}

static void stop_signals(sigset_t *ret_signals, sigset_t *ret_before)
{
	static const int all[] = { SIGCHLD, SIGINT, SIGQUIT, SIGTERM, SIGHUP };

	sigemptyset(ret_signals);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		sigaddset(ret_signals, all[i]);
	sigprocmask(SIG_BLOCK, ret_signals, ret_before);
}

static void say_before(const struct cli *cli, const struct demo_options *o,
		       const struct demo_python *python, const char *file)
{
	cli_say(cli,
		"spotter: a small model trains for %g s in Python %d.%d%s, then comes the verdict",
		o->seconds, python->major, python->minor, o->fixed ? ", cured of its ailment" : "");
	cli_say(cli, "$ spotter run --name %s -- %s %s --seconds %g%s",
		o->fixed ? "demo-fixed" : "demo", python->path, file, o->seconds,
		o->fixed ? " --fixed" : "");
}

static void say_after(const struct cli *cli, const struct demo_options *o,
		      const struct demo_place *at)
{
	if (o->keep)
		cli_say(cli, "Kept    %s", at->file);
	if (o->fixed)
		cli_say(
		    cli,
		    "Next    'spotter report last' tells the whole story, 'spotter demo' runs it "
		    "with its ailment");
	else
		cli_say(cli, "Next    'spotter report last' tells the whole story, 'spotter demo "
			     "--fixed' runs it cured");
}

static int run_demo(struct cli *cli, void *options, const struct opt_rest *rest)
{
	const struct demo_options *o = options;
	struct demo_python python;
	struct demo_place at;
	sigset_t signals, before;
	struct err e = { 0 };
	pid_t child;
	int status;

	(void)rest;
	signal(SIGCHLD, SIG_DFL); /* where it is ignored, children leave no status */
	if (find_python(o, &python, &e) < 0)
		return cli_fail(cli, &e);
	stop_signals(&signals, &before);
	if (make_place(&at, &e) < 0)
		return cli_fail(cli, &e);
	say_before(cli, o, &python, at.file);
	child = fork();
	if (child == 0) {
		sigprocmask(SIG_SETMASK, &before, NULL);
		exit(cli_finish(cli, run_words(cli, o, python.path, at.file)));
	}
	status = child < 0 ? W_EXITCODE(EXIT_FAILED, 0) : wait_for(child, &signals);
	if (!o->keep)
		remove_place(cli, &at);
	if (child < 0)
		return cli_fail(cli, &(struct err){ .code = -EAGAIN });
	if (WIFSIGNALED(status))
		launch_exit(status); /* Ctrl-C, most likely: a shell's loop shall end with us */
	if (WEXITSTATUS(status) == 0 || o->keep)
		say_after(cli, o, &at);
	return WEXITSTATUS(status) == 0 ? EXIT_OK : EXIT_FAILED;
}

static const struct example examples[] = {
	{ "demo", "watch it train for 15 s, then read what is wrong with it" },
	{ "demo --fixed", "the same program after the fix" },
	{ "demo --keep", "and leave the program where it can be read" },
	{ NULL, NULL },
};

static const struct opt opts[] = {
	OPT("seconds", 0, OPT_NUMBER, "N", struct demo_options, seconds,
	    "train for N seconds (default 15)", .min = 1, .max = 3600),
	OPT("fixed", 0, OPT_FLAG, NULL, struct demo_options, fixed,
	    "the healthy variant: worker processes, and no Python loop over pixels"),
	OPT("python", 0, OPT_STRING, "PATH", struct demo_options, python,
	    "run it with this Python, 3.8 or later (default: python3)"),
	OPT("keep", 0, OPT_FLAG, NULL, struct demo_options, keep,
	    "do not remove the program afterwards"),
	COMMON_OPTS,
	OPT_END,
};

static const struct demo_options defaults = { .seconds = 15 };

const struct command demo_command = {
	.name = "demo",
	.group = "record",
	.summary = "a small real training with a known ailment, and the verdict on it",
	.words = "",
	.description =
	    "Writes a small Python program (standard library only) to a private folder and does "
	    "'spotter run' on it. It really trains: a network of one hidden layer learns to tell "
	    "shapes on images. But it loads its images in the training thread, and prepares each "
	    "in a loop over its pixels. The verdict names both, with the line of the program.\n"
	    "\n"
	    "--fixed runs the same training with worker processes and without that loop. The "
	    "record stays among your runs as 'demo' or 'demo-fixed'; the program is removed.",
	.examples = examples,
	.opts = opts,
	.options_size = sizeof(struct demo_options),
	.defaults = &defaults,
	.max_words = 0,
	.run = run_demo,
};
