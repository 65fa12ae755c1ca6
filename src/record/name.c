/* SPDX-License-Identifier: MIT
 *
 * What a run is called: its id, and a name made from the command, which is the program people think
 * of ("train.py") and not what starts it.
 */
#include "record/store.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/text.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

void store_new_id(int64_t wall_ns, char *ret, size_t size)
{
	time_t s = (time_t)(wall_ns / NS_PER_S);
	unsigned char noise[2];
	struct tm tm;

	if (getrandom(noise, sizeof(noise), GRND_NONBLOCK) != (ssize_t)sizeof(noise)) {
		noise[0] = (unsigned char)(wall_ns >> 10);
		noise[1] = (unsigned char)(wall_ns >> 18);
	}
	if (!gmtime_r(&s, &tm)) {
		s = 0;
		gmtime_r(&s, &tm);
	}
	snprintf(ret, size, "%04d%02d%02d-%02d%02d%02d-%02x%02x", tm.tm_year + 1900, tm.tm_mon + 1,
		 tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, noise[0], noise[1]);
}

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static bool is_one_of(const char *arg, const char *const *patterns, size_t n)
{
	const char *base = base_of(arg);

	for (size_t i = 0; i < n; i++)
		if (fnmatch(patterns[i], base, 0) == 0)
			return true;
	return false;
}

/* Programs whose name says nothing, as their first argument is the program... */
static bool is_interpreter(const char *arg)
{
	static const char *const patterns[] = {
		"python", "python[0-9]*", "pypy*", "ipython*", "bash",    "sh",    "dash",
		"zsh",    "node",         "perl",  "ruby",     "Rscript", "julia",
	};

	return is_one_of(arg, patterns, ARRAY_LEN(patterns));
}

/* ... and those that have many of their own before it. */
static bool is_launcher(const char *arg)
{
	static const char *const patterns[] = {
		"torchrun", "accelerate", "deepspeed", "horovodrun", "mpirun", "mpiexec",
		"srun",     "uv",         "poetry",    "conda",      "env",    "nice",
		"nohup",    "numactl",    "taskset",   "stdbuf",     "time",   "timeout",
	};

	return is_one_of(arg, patterns, ARRAY_LEN(patterns));
}

/* Modules that only start another program. */
static bool is_starter_module(const char *module)
{
	return strncmp(module, "torch.distributed.", 18) == 0 ||
	       strcmp(module, "accelerate") == 0 || strncmp(module, "accelerate.", 11) == 0 ||
	       strcmp(module, "pdb") == 0 || strcmp(module, "cProfile") == 0;
}

static bool is_script(const char *arg)
{
	static const char *const endings[] = { "*.py", "*.ipynb", "*.sh", "*.R",
					       "*.jl", "*.js",    "*.pl", "*.rb" };

	for (size_t i = 0; i < ARRAY_LEN(endings); i++)
		if (fnmatch(endings[i], arg, 0) == 0)
			return true;
	return false;
}

/* Behind an interpreter: its first argument that is no option, or the module of -m. */
static const char *program_of(char *const *argv)
{
	for (size_t i = 1; argv[i]; i++) {
		if (strcmp(argv[i], "-c") == 0)
			return NULL;
		if (strcmp(argv[i], "-W") == 0 || strcmp(argv[i], "-X") == 0) {
			i += argv[i + 1] != NULL;
			continue;
		}
		if (strcmp(argv[i], "-m") == 0 && argv[i + 1]) {
			if (!is_starter_module(argv[i + 1]))
				return argv[i + 1];
			for (i += 2; argv[i]; i++)
				if (is_script(argv[i]))
					return argv[i];
			return NULL;
		}
		if (argv[i][0] != '-')
			return argv[i];
	}
	return NULL;
}

/* Behind a launcher: the first script, or what an interpreter among its arguments runs, or the
 * first word that looks like a program (no option, number or assignment, and a path). */
static const char *launched_by(char *const *argv)
{
	for (size_t i = 1; argv[i]; i++) {
		if (is_interpreter(argv[i])) {
			const char *program = program_of(argv + i);

			return program ? program : argv[i];
		}
		if (argv[i][0] != '-' && (is_script(argv[i]) || strchr(argv[i], '/')))
			return argv[i];
	}
	return NULL;
}

void store_name_from(char *const *argv, char *ret, size_t size)
{
	const char *name = argv && argv[0] ? argv[0] : "";

	if (name[0] && (is_interpreter(name) || is_launcher(name))) {
		const char *program = is_launcher(name) ? launched_by(argv) : program_of(argv);

		if (program)
			name = program;
	}
	text_safe_copy(ret, size, base_of(name));
	if (!ret[0])
		text_copy(ret, size, "run");
}
