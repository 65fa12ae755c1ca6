/* SPDX-License-Identifier: MIT
 *
 * Command-line options as data. Each command owns a `static const struct opt` table that names its
 * options and where in its own options struct they go; the parser, --help, the man pages and the
 * shell completions all loop over the same rows.
 *
 *	struct run_options { const char *name; double hz; bool quiet; };
 *	static const struct opt run_opts[] = {
 *		OPT("name", 'n', OPT_STRING, "NAME", struct run_options, name, "call the run NAME"),
 *		...
 *		OPT_END
 *	};
 */
#ifndef SPOTTER_BASE_OPT_H
#define SPOTTER_BASE_OPT_H

#include <stdbool.h>
#include <stddef.h>

struct err;
struct buf;

enum opt_kind {
	OPT_NONE,     /* end of table */
	OPT_FLAG,     /* bool: present is true */
	OPT_UNFLAG,   /* bool: present is false (--no-hooks) */
	OPT_STRING,   /* const char *, points into argv */
	OPT_INT,      /* int64_t */
	OPT_NUMBER,   /* double */
	OPT_SIZE,     /* uint64_t, "256M" */
	OPT_DURATION, /* int64_t ns, "60s" */
	OPT_RATIO,    /* double, "1%" */
	OPT_LIST,     /* struct opt_list: may be given several times */
};

struct opt {
	const char *name; /* long name without dashes */
	char letter;      /* 0: none */
	enum opt_kind kind;
	const char *arg; /* placeholder in help, NULL for flags */
	size_t offset;   /* into the options struct */
	const char *help;
	bool
	    optional_arg; /* "--every" or "--every=5s"; bare it leaves a number alone, a string is "" */
	double min, max; /* for numbers, when min < max; durations in seconds */
	const char
	    *choices;   /* "auto|always|never": OPT_STRING takes nothing else; NULL: anything */
	bool hidden;    /* works, but neither help nor completions show it */
	bool next_word; /* with optional_arg: a word behind it that is no option is its value */
	const char
	    *dashed; /* long name that other tools write with one dash: "lms" is -lms; NULL */
};

#define OPT_END                  \
	{                        \
		.kind = OPT_NONE \
	}

/* One row. Fields that are rarely set follow: OPT(..., "help", .min = 1, .max = 100) */
#define OPT(name_, letter_, kind_, arg_, type_, field_, help_, ...)             \
	{                                                                       \
		.name = name_, .letter = letter_, .kind = kind_, .arg = arg_,   \
		.offset = offsetof(type_, field_), .help = help_, ##__VA_ARGS__ \
	}

struct opt_list {
	const char *v[16];
	size_t n;
};

/* What stands behind the options. `rest` points into argv. */
struct opt_rest {
	char **v;
	int n;
	bool dashes; /* a "--" was seen: everything behind it is in rest */
};

/* Parses argv[0..argc) (no program name) into *into. Options and words may be mixed until "--"
 * unless stop_at_word (for `run CMD ARG...`: the first word ends the options). Wrong usage is
 * -EINVAL with a sentence and a hint ("did you mean '--hz'?"). --help is found by the caller. */
int opt_parse(const struct opt *opts, int argc, char **argv, bool stop_at_word, void *into,
	      struct opt_rest *ret_rest, struct err *e);

/* Is `value` one of "a|b|c"? */
bool opt_is_choice(const char *choices, const char *value);

/* "  -n, --name NAME   call the run NAME" lines, wrapped at 80 columns, hidden ones left out. */
void opt_help(const struct opt *opts, struct buf *out);

#endif
