/* SPDX-License-Identifier: MIT
 *
 * The program to be: what it is given, and how it gets back everything as S found it.
 */
#ifndef SPOTTER_LAUNCH_PROGRAM_H
#define SPOTTER_LAUNCH_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct err;

struct program {
	char *const *argv;
	char **env;        /* heap; its strings are borrowed */
	uint64_t mask;     /* of signals, as found; bit n-1 is signal n, as the kernel has it */
	bool chld_ignored; /* SIGCHLD was found ignored */
	int death_signal;  /* PR_SET_PDEATHSIG as found, which a fork does not inherit; 0: none */
};

/* Notes what there is (signals, environment) and blocks every signal in this process; `add` as in
 * struct launch. SIGCHLD is set to its default: ignored, the kernel would throw statuses away. */
int program_prepare(struct program *p, char *const *argv, char *const *add);
/* Puts the signals back as found and frees. */
void program_done(struct program *p);

/* Forks and execs: its pid or -errno. The child says CHANNEL_STARTED before and CHANNEL_FAILED after
 * an exec that failed, on the channel (close-on-exec like all of ours). With a gate (two ends of a
 * socket pair, the parent's and the child's) it first waits there for a byte, or for its parent's
 * death; the parent then reads the errno of a failed exec there, or the end when it went well. */
pid_t program_start(const struct program *p, int channel, const int *gate);

/* A NULL-terminated array of what was found, in its order, without the names that are added, then
 * what is added: heap, or NULL without memory. The strings themselves are not copied. */
char **program_env(char *const *found, char *const *add);

/* Why exec failed, as a person wants to hear it; returns -ENOENT (not found), -ENOEXEC or -EACCES
 * (found but cannot be executed). */
int program_failure(const char *name, int error, struct err *e);

/* Where execvp() looks: $PATH, or the system's default without one. */
const char *program_path(void);
/* True when its first line is text: then /bin/sh may run it, as execvp() has it done. */
bool program_is_text(const char *path);

#endif
