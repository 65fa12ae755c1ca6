/* SPDX-License-Identifier: MIT
 *
 * A command is one file cmd_NAME.c that ends in `const struct command NAME_command`, and one row in
 * main.c. Everything a user can learn about it (--help, the man page, the shell completions, the
 * check of its words) is made from that one struct and its option table, so none can disagree.
 *
 * Data goes to cli->out, words go to standard error through cli_say(), failures through cli_fail().
 * A command never writes to standard output on its own, so that a full disk or a reader that went
 * away is handled in one place.
 */
#ifndef SPOTTER_CLI_COMMAND_H
#define SPOTTER_CLI_COMMAND_H

#include "base/buf.h"
#include "base/opt.h"

#include <stdbool.h>
#include <stddef.h>

struct err;
struct command;

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* Every command's options struct starts with this, and its table with COMMON_OPTS. */
struct common_options {
	const char *color; /* auto, always, never; NULL: auto */
	bool help, json;
};

#define COMMON_OPTS                                                                             \
	OPT("color", 0, OPT_STRING, "WHEN", struct common_options, color,                       \
	    "use colour: auto (the default), always or never", .choices = "auto|always|never"), \
	    OPT("help", 'h', OPT_FLAG, NULL, struct common_options, help, "show this help")

/* For commands that print data. */
#define JSON_OPT \
	OPT("json", 0, OPT_FLAG, NULL, struct common_options, json, "print JSON instead of text")

struct cli {
	const struct command *const *commands; /* NULL-terminated */
	const struct command *command;         /* the one that runs, NULL before it is known */
	bool color_out, color_err;
	bool quiet;      /* --quiet: no lines of progress */
	struct buf out;  /* data on its way to standard output */
	int write_error; /* negative errno of standard output; nothing more is written then */
};

struct example {
	const char *line; /* without "spotter " */
	const char *says; /* what it does, lower case, a few words */
};

struct command {
	const char *name, *group;
	const char *summary; /* one line, lower case, no full stop */
	const char *words;   /* what follows the options, "[RUN]"; "" nothing */
	/* Paragraphs with a blank line between; a line that starts with a blank is shown as it is. */
	const char *description;
	const struct example *examples; /* ends with a row of NULL */
	const struct opt *opts;
	size_t options_size;
	const void *defaults;     /* options_size bytes, NULL: zeroes */
	int min_words, max_words; /* max -1: any number */
	bool stop_at_word;        /* the first word ends the options (`run CMD --flag`) */
	bool hidden;
	int usage_status; /* exit status of wrong usage, 0: EXIT_USAGE */
	/* options: the parsed struct. Returns the exit status of the program. */
	int (*run)(struct cli *cli, void *options, const struct opt_rest *rest);
};

/* Finds, parses, runs. argv is without the program's name. Exit status. */
int cli_main(struct cli *cli, int argc, char **argv);
const struct command *cli_find(const struct cli *cli, const char *name); /* NULL: unknown */

/* "unknown command", with the nearest one there is; exit status. */
int cli_unknown(const struct cli *cli, const char *name);

/* Opens what is missing of descriptors 0-2, so that no file of ours can take their place; a closed
 * standard output still fails on the first write, and the program started by `run` finds them
 * closed as they were. */
void cli_keep_std(void);

/* Sends cli->out when it has grown; call it in loops. False when nobody takes it any more. */
bool cli_drain(struct cli *cli);
/* Sends it now (live lines). */
bool cli_flush(struct cli *cli);
/* Sends the rest, says so when it could not be written, and gives the final status. When the reader
 * went away, ends the process by SIGPIPE, silently, whatever SIGPIPE was set to. */
int cli_finish(struct cli *cli, int status);

/* A line of words on standard error. */
void cli_say(const struct cli *cli, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* "spotter: text" and the hint on standard error; EXIT_FAILED. */
int cli_fail(const struct cli *cli, const struct err *e);
/* The same for wrong usage, with where to read on; the command's usage status. */
int cli_misuse(const struct cli *cli, const struct err *e);
int cli_usage(const struct cli *cli, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Colour for a stream: flag, then NO_COLOR, CLICOLOR_FORCE and FORCE_COLOR, TERM=dumb, a terminal. */
bool cli_color(const char *flag, int fd);
/* Columns of the terminal behind fd, or 0 when it is none. */
unsigned cli_columns(int fd);

/* An SGR sequence when on, else "". */
enum ink { INK_PLAIN, INK_BOLD, INK_DIM, INK_RED, INK_GREEN, INK_YELLOW, INK_CYAN };
const char *cli_ink(bool on, enum ink ink);

/* Text made from the tables: help.c, man.c, complete.c. */
void help_overview(const struct cli *cli, struct buf *out);
void help_page(const struct command *c, bool color, struct buf *out);
void man_overview(const struct cli *cli, struct buf *out);
void man_page(const struct command *c, struct buf *out);
void complete_bash(const struct cli *cli, struct buf *out);
void complete_zsh(const struct cli *cli, struct buf *out);
void complete_fish(const struct cli *cli, struct buf *out);

/* Text broken at blanks to `width` columns, each line behind `indent` blanks (help.c). */
void help_wrap(const char *text, unsigned indent, unsigned width, struct buf *out);

#endif
