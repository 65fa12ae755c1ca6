/* SPDX-License-Identifier: MIT
 *
 * Shell completions from the command and option tables. What a value may be follows from its
 * placeholder: FILE and DIR are paths, RUN asks Spotter for the runs there are, and so on; so a new
 * option is completed without a line here.
 */
#include "cli/command.h"

#include <string.h>

/* What may stand where a placeholder does. */
enum thing {
	THING_NONE,
	THING_FILE,
	THING_DIR,
	THING_RUN,
	THING_METRIC,
	THING_CAUSE,
	THING_COMMAND,
	THING_SHELL,
	THING_PROGRAM
};

static bool names(const char *words, const char *what)
{
	const char *at = words ? strstr(words, what) : NULL;
	size_t n = strlen(what);

	/* Whole placeholder only: RUN is not in PRUNE. */
	return at && (at == words || !strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZ", at[-1])) &&
	       (!at[n] || !strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZ", at[n]));
}

static enum thing thing_of(const char *placeholder)
{
	static const struct {
		const char *name;
		enum thing thing;
	} rows[] = {
		{ "FILE", THING_FILE },     { "DIR", THING_DIR },     { "RUN", THING_RUN },
		{ "METRIC", THING_METRIC }, { "CAUSE", THING_CAUSE }, { "COMMAND", THING_COMMAND },
		{ "bash", THING_SHELL },    { "CMD", THING_PROGRAM },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (names(placeholder, rows[i].name))
			return rows[i].thing;
	return THING_NONE;
}

/* Words of a list, "a|b|c" with another separator. */
static void put_choices(const char *choices, char separator, struct buf *out)
{
	for (const char *p = choices; *p; p++)
		buf_char(out, *p == '|' ? separator : *p);
}

/* Text inside single quotes of a shell: a quote ends them, is escaped, and opens them again. */
static void put_quoted(const char *s, struct buf *out)
{
	for (; *s; s++) {
		if (*s == '\'')
			buf_str(out, "'\\''");
		else
			buf_char(out, *s);
	}
}

static void put_names(const struct cli *cli, struct buf *out)
{
	bool first = true;

	for (const struct command *const *c = cli->commands; *c; c++) {
		if ((*c)->hidden)
			continue;
		buf_printf(out, "%s%s", first ? "" : " ", (*c)->name);
		first = false;
	}
}

/* ---- bash ---- */

static void bash_thing(const struct cli *cli, enum thing thing, struct buf *out)
{
	switch (thing) {
	case THING_FILE:
		buf_str(out, "COMPREPLY=($(compgen -f -- \"$cur\"))");
		break;
	case THING_DIR:
		buf_str(out, "COMPREPLY=($(compgen -d -- \"$cur\"))");
		break;
	case THING_RUN:
		buf_str(out,
			"COMPREPLY=($(compgen -W \"$(spotter completion --list runs 2>/dev/null)\" "
			"-- \"$cur\") $(compgen -f -X '!*.spot' -- \"$cur\"))");
		break;
	case THING_METRIC:
		buf_str(out, "COMPREPLY=($(compgen -W \"$(spotter completion --list metrics "
			     "2>/dev/null)\" -- \"$cur\"))");
		break;
	case THING_CAUSE:
		buf_str(out, "COMPREPLY=($(compgen -W \"$(spotter completion --list causes "
			     "2>/dev/null)\" -- \"$cur\"))");
		break;
	case THING_COMMAND:
		buf_str(out, "COMPREPLY=($(compgen -W '");
		put_names(cli, out);
		buf_str(out, "' -- \"$cur\"))");
		break;
	case THING_SHELL:
		buf_str(out, "COMPREPLY=($(compgen -W 'bash zsh fish' -- \"$cur\"))");
		break;
	case THING_PROGRAM:
		buf_str(out, "COMPREPLY=($(compgen -c -- \"$cur\") $(compgen -f -- \"$cur\"))");
		break;
	case THING_NONE:
		buf_str(out, "COMPREPLY=()");
		break;
	}
}

static void bash_values(const struct cli *cli, const struct command *c, struct buf *out)
{
	for (const struct opt *o = c->opts; o->kind != OPT_NONE; o++) {
		if (o->hidden || !o->arg)
			continue;
		buf_printf(out, "\t%s:--%s", c->name, o->name);
		if (o->letter)
			buf_printf(out, "|%s:-%c", c->name, o->letter);
		buf_str(out, ") ");
		if (o->choices) {
			buf_str(out, "COMPREPLY=($(compgen -W '");
			put_choices(o->choices, ' ', out);
			buf_str(out, "' -- \"$cur\"))");
		} else {
			bash_thing(cli, thing_of(o->arg), out);
		}
		buf_str(out, "; return ;;\n");
	}
}

static void bash_options(const struct command *c, struct buf *out)
{
	buf_printf(out, "\t%s:-*) COMPREPLY=($(compgen -W '", c->name);
	for (const struct opt *o = c->opts; o->kind != OPT_NONE; o++)
		if (!o->hidden)
			buf_printf(out, "%s--%s", o == c->opts ? "" : " ", o->name);
	buf_str(out, "' -- \"$cur\")) ;;\n");
}

void complete_bash(const struct cli *cli, struct buf *out)
{
	buf_str(out,
		"# bash completion for spotter; made by 'spotter completion bash'\n"
		"_spotter()\n{\n"
		"\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} cmd= i\n"
		"\tCOMPREPLY=()\n"
		"\t# '--color=al' arrives as three words.\n"
		"\tif [[ $cur == = ]]; then cur=; "
		"elif [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
		"\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
		"\t\tif [[ ${COMP_WORDS[i]} == -- && -n $cmd ]]; then cmd=-- ; break; fi\n"
		"\t\tif [[ -z $cmd && ${COMP_WORDS[i]} != -* ]]; then cmd=${COMP_WORDS[i]}; fi\n"
		"\tdone\n"
		"\tif [[ $cmd == -- ]]; then\n"
		"\t\tif declare -F _command_offset >/dev/null; then _command_offset $((i + 1)); "
		"return; fi\n"
		"\t\tCOMPREPLY=($(compgen -c -- \"$cur\") $(compgen -f -- \"$cur\")); return\n"
		"\tfi\n"
		"\tif [[ -z $cmd ]]; then COMPREPLY=($(compgen -W '");
	put_names(cli, out);
	buf_str(out, " --help --version' -- \"$cur\")); return; fi\n\tcase $cmd:$prev in\n");
	for (const struct command *const *c = cli->commands; *c; c++)
		if (!(*c)->hidden)
			bash_values(cli, *c, out);
	buf_str(out, "\tesac\n\tcase $cmd:$cur in\n");
	for (const struct command *const *c = cli->commands; *c; c++) {
		if ((*c)->hidden)
			continue;
		bash_options(*c, out);
		buf_printf(out, "\t%s:*) ", (*c)->name);
		bash_thing(cli, thing_of((*c)->words), out);
		buf_str(out, " ;;\n");
	}
	buf_str(out, "\tesac\n}\ncomplete -F _spotter spotter\n");
}

/* ---- zsh ---- */

/* Inside a quoted _arguments spec a colon and brackets have a meaning of their own. */
static void zsh_text(const char *s, struct buf *out)
{
	for (; *s; s++) {
		if (strchr(":[]\\", *s))
			buf_char(out, '\\');
		if (*s == '\'')
			buf_str(out, "'\\''");
		else
			buf_char(out, *s);
	}
}

static const char *zsh_action(enum thing thing)
{
	switch (thing) {
	case THING_FILE:
		return "_files";
	case THING_DIR:
		return "_files -/";
	case THING_RUN:
		return " _spotter_list runs";
	case THING_METRIC:
		return " _spotter_list metrics";
	case THING_CAUSE:
		return " _spotter_list causes";
	case THING_COMMAND:
		return " _spotter_commands";
	case THING_SHELL:
		return "(bash zsh fish)";
	default:
		return " ";
	}
}

static void zsh_option(const struct opt *o, struct buf *out)
{
	if (o->letter)
		buf_printf(out, " \\\n\t\t\t'(-%c --%s)'{-%c,--%s}'[", o->letter, o->name,
			   o->letter, o->name);
	else
		buf_printf(out, " \\\n\t\t\t'--%s%s[", o->name,
			   !o->arg           ? ""
			   : o->optional_arg ? "=-"
					     : "=");
	zsh_text(o->help, out);
	buf_char(out, ']');
	if (o->arg) {
		buf_str(out, o->optional_arg ? "::" : ":");
		zsh_text(o->arg, out);
		buf_char(out, ':');
		if (o->choices) {
			buf_char(out, '(');
			put_choices(o->choices, ' ', out);
			buf_char(out, ')');
		} else {
			buf_str(out, zsh_action(thing_of(o->arg)));
		}
	}
	buf_char(out, '\'');
}

static void zsh_command(const struct command *c, struct buf *out)
{
	enum thing thing = thing_of(c->words);

	buf_printf(out, "\t\t%s)\n\t\t_arguments -s", c->name);
	for (const struct opt *o = c->opts; o->kind != OPT_NONE; o++)
		if (!o->hidden)
			zsh_option(o, out);
	if (thing == THING_PROGRAM)
		buf_str(out, " \\\n\t\t\t'*::program:_normal'");
	else if (*c->words)
		buf_printf(out, " \\\n\t\t\t'*:%s:%s'", c->name, zsh_action(thing));
	buf_str(out, " ;;\n");
}

void complete_zsh(const struct cli *cli, struct buf *out)
{
	buf_str(out, "#compdef spotter\n# made by 'spotter completion zsh'\n\n"
		     "_spotter_list() {\n\tlocal -a found\n"
		     "\tfound=(${(f)\"$(spotter completion --list $1 2>/dev/null)\"})\n"
		     "\tcompadd -a found\n"
		     "\t[[ $1 == runs ]] && _files -g '*.spot'\n\treturn 0\n}\n\n"
		     "_spotter_commands() {\n\tlocal -a commands\n\tcommands=(\n");
	for (const struct command *const *c = cli->commands; *c; c++) {
		if ((*c)->hidden)
			continue;
		buf_printf(out, "\t\t'%s:", (*c)->name);
		zsh_text((*c)->summary, out);
		buf_str(out, "'\n");
	}
	buf_str(out,
		"\t)\n\t_describe command commands\n}\n\n"
		"_spotter() {\n\tlocal context state state_descr line\n\ttypeset -A opt_args\n"
		"\t_arguments -C '(- *)--version[show the version]' '(- *)--help[show help]' \\\n"
		"\t\t'1:command:_spotter_commands' '*::argument:->arguments'\n"
		"\t[[ $state == arguments ]] || return\n"
		"\tcase $words[1] in\n");
	for (const struct command *const *c = cli->commands; *c; c++)
		if (!(*c)->hidden)
			zsh_command(*c, out);
	buf_str(out, "\tesac\n}\n\nif [[ $funcstack[1] == _spotter ]]; then _spotter \"$@\"; "
		     "else compdef _spotter spotter; fi\n");
}

/* ---- fish ---- */

static void fish_when(const struct command *c, struct buf *out)
{
	buf_printf(out, "complete -c spotter -n '__fish_seen_subcommand_from %s'", c->name);
}

static void fish_thing(const struct cli *cli, enum thing thing, struct buf *out)
{
	switch (thing) {
	case THING_FILE:
	case THING_PROGRAM:
		buf_str(out, " -F");
		break;
	case THING_DIR:
		buf_str(out, " -f -a '(__fish_complete_directories)'");
		break;
	case THING_RUN:
		buf_str(out, " -a '(spotter completion --list runs 2>/dev/null)'");
		break;
	case THING_METRIC:
		buf_str(out, " -f -a '(spotter completion --list metrics 2>/dev/null)'");
		break;
	case THING_CAUSE:
		buf_str(out, " -f -a '(spotter completion --list causes 2>/dev/null)'");
		break;
	case THING_COMMAND:
		buf_str(out, " -f -a '");
		put_names(cli, out);
		buf_char(out, '\'');
		break;
	case THING_SHELL:
		buf_str(out, " -f -a 'bash zsh fish'");
		break;
	case THING_NONE:
		buf_str(out, " -f");
		break;
	}
}

static void fish_command(const struct cli *cli, const struct command *c, struct buf *out)
{
	for (const struct opt *o = c->opts; o->kind != OPT_NONE; o++) {
		if (o->hidden)
			continue;
		fish_when(c, out);
		buf_printf(out, " -l %s", o->name);
		if (o->letter)
			buf_printf(out, " -s %c", o->letter);
		if (o->arg && !o->optional_arg)
			buf_str(out, " -r");
		if (o->choices) {
			buf_str(out, " -f -a '");
			put_choices(o->choices, ' ', out);
			buf_char(out, '\'');
		} else if (o->arg) {
			fish_thing(cli, thing_of(o->arg), out);
		}
		buf_str(out, " -d '");
		put_quoted(o->help, out);
		buf_str(out, "'\n");
	}
	fish_when(c, out);
	fish_thing(cli, thing_of(c->words), out);
	buf_char(out, '\n');
}

void complete_fish(const struct cli *cli, struct buf *out)
{
	buf_str(out, "# fish completion for spotter; made by 'spotter completion fish'\n"
		     "complete -c spotter -n __fish_use_subcommand -f -l version "
		     "-d 'show the version'\n");
	for (const struct command *const *c = cli->commands; *c; c++) {
		if ((*c)->hidden)
			continue;
		buf_printf(out, "complete -c spotter -n __fish_use_subcommand -f -a %s -d '",
			   (*c)->name);
		put_quoted((*c)->summary, out);
		buf_str(out, "'\n");
	}
	for (const struct command *const *c = cli->commands; *c; c++)
		if (!(*c)->hidden)
			fish_command(cli, *c, out);
}
