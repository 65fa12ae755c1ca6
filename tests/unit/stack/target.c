/* SPDX-License-Identifier: MIT */
#include "target.h"

#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Minor version by asking it; 0: it does not run, or is none of 3.x. */
static unsigned ask_minor(const char *python)
{
	char text[16] = "";
	int ends[2], status;
	pid_t pid;
	ssize_t n;

	if (access(python, X_OK) < 0 || pipe2(ends, O_CLOEXEC) < 0)
		return 0;
	pid = fork();
	if (pid == 0) {
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);

		dup2(ends[1], 1);
		dup2(null, 2);
		execl(python, python, "-c",
		      "import sys\nprint(sys.version_info[1] if sys.version_info[0] == 3 and "
		      "sys.implementation.name == 'cpython' else 0)",
		      (char *)NULL);
		_exit(127);
	}
	close(ends[1]);
	n = read(ends[0], text, sizeof(text) - 1);
	close(ends[0]);
	waitpid(pid, &status, 0);
	return n > 0 ? (unsigned)strtoul(text, NULL, 10) : 0;
}

static void add(struct pythons *p, const char *path)
{
	char real[PATH_MAX];
	unsigned minor;

	if (p->n == PYTHONS_MAX || !realpath(path, real) || strlen(real) >= sizeof(p->path[0]))
		return;
	for (size_t i = 0; i < p->n; i++)
		if (strcmp(p->path[i], real) == 0)
			return;
	minor = ask_minor(real);
	if (minor && minor < 8)
		text_copy(p->old, sizeof(p->old), real);
	if (minor < 8)
		return;
	p->minor[p->n] = minor;
	text_copy(p->path[p->n++], sizeof(p->path[0]), real);
}

static void add_list(struct pythons *p, const char *list)
{
	char *copy = strdup(list), *save = NULL;

	for (char *word = strtok_r(copy, ":", &save); word; word = strtok_r(NULL, ":", &save))
		add(p, word);
	free(copy);
}

static void add_pyenv(struct pythons *p)
{
	const char *root = getenv("PYENV_ROOT"), *home = getenv("HOME");
	char pattern[PATH_MAX];
	glob_t found;

	if (root)
		snprintf(pattern, sizeof(pattern), "%s/versions/*/bin/python3", root);
	else
		snprintf(pattern, sizeof(pattern), "%s/.pyenv/versions/*/bin/python3",
			 home ? home : "");
	if (glob(pattern, 0, NULL, &found) != 0)
		return;
	for (size_t i = 0; i < found.gl_pathc; i++)
		add(p, found.gl_pathv[i]);
	globfree(&found);
}

void pythons_find(struct pythons *ret)
{
	const char *list = getenv("SPOTTER_PYTHONS");

	*ret = (struct pythons){ 0 };
	if (list) {
		add_list(ret, list);
		return;
	}
	add(ret, "/usr/bin/python3");
	add(ret, "/usr/local/bin/python3");
	add_pyenv(ret);
}

bool pin(int cpu)
{
	cpu_set_t set;

	if (cpu < 0 || sysconf(_SC_NPROCESSORS_ONLN) < 2)
		return false;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set) == 0;
}

void target_start(struct target *t, const char *python, int cpu, const char *script, const char *a,
		  const char *b)
{
	int out[2], in[2];

	if (pipe2(out, O_CLOEXEC) < 0 || pipe2(in, O_CLOEXEC) < 0)
		abort();
	t->pid = fork();
	if (t->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pin(cpu);
		dup2(in[0], 0);
		dup2(out[1], 1);
		execl(python, python, "-I", "-S", "-B", script, a, b, (char *)NULL);
		_exit(127);
	}
	close(out[1]);
	close(in[0]);
	t->in = in[1];
	t->out = fdopen(out[0], "r");
}

void target_end(struct target *t)
{
	kill(t->pid, SIGKILL);
	waitpid(t->pid, NULL, 0);
	fclose(t->out);
	close(t->in);
}
