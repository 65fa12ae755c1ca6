/* SPDX-License-Identifier: MIT
 *
 * Why a command cannot be run, in words. Only looked into after exec has failed, so it costs nobody
 * anything, and what it finds can be no more than the likely reason.
 */
#include "launch/program.h"

#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The first file of that name on the way execvp() goes; name itself when it is a path. */
static bool find_file(const char *name, char *path, size_t size)
{
	const char *dir = program_path();
	struct stat st;

	if (strchr(name, '/'))
		return text_copy(path, size, name) && stat(name, &st) == 0;
	for (;;) {
		const char *end = strchrnul(dir, ':');
		int n = snprintf(path, size, "%.*s%s%s", (int)(end - dir), dir,
				 end > dir ? "/" : "", name);

		if (n > 0 && (size_t)n < size && stat(path, &st) == 0 && S_ISREG(st.st_mode))
			return true;
		if (!*end)
			return false;
		dir = end + 1;
	}
}

static bool is_python(const char *path)
{
	size_t n = strlen(path);

	return n > 3 && strcmp(path + n - 3, ".py") == 0;
}

static const char *python_name(void)
{
	char path[PATH_MAX];

	return find_file("python", path, sizeof(path)) ? "python" : "python3";
}

/* "#!/usr/bin/env python3" -> "/usr/bin/env"; false when it does not start so. */
static bool read_interpreter(const char *path, char *ret, size_t size)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	char line[256];
	ssize_t n = fd < 0 ? -1 : read(fd, line, sizeof(line) - 1);
	char *word;

	if (n < 3)
		return false;
	line[n] = '\0';
	if (strncmp(line, "#!", 2) != 0)
		return false;
	word = line + 2 + strspn(line + 2, " \t");
	word[strcspn(word, " \t\n")] = '\0';
	text_safe_copy(ret, size, word);
	return true;
}

static int not_found(const char *name, const char *shown, struct err *e)
{
	char path[PATH_MAX], interpreter[128];
	struct stat st;

	if (find_file(name, path, sizeof(path))) {
		if (read_interpreter(path, interpreter, sizeof(interpreter)))
			err_set(e, -ENOENT, "cannot run '%s': its interpreter '%s' does not exist",
				shown, interpreter);
		else
			err_set(e, -ENOENT, "cannot run '%s': its program loader does not exist",
				shown);
		return -ENOENT;
	}
	if (strchr(name, '/')) {
		err_set(e, -ENOENT, "cannot run '%s': no such file", shown);
	} else {
		err_set(e, -ENOENT, "cannot run '%s': no such command", shown);
		if (*name && stat(name, &st) == 0 && S_ISREG(st.st_mode)) {
			if (access(name, X_OK) != 0 && is_python(name))
				err_hint(e, "did you mean '%s %s'?", python_name(), shown);
			else
				err_hint(e, "did you mean './%s'?", shown);
		}
	}
	if (strchr(name, ' '))
		err_hint(e, "leave out the quotes around the command");
	return -ENOENT;
}

static int refused(const char *name, const char *shown, struct err *e)
{
	char path[PATH_MAX], interpreter[128];
	struct stat st;

	if (!find_file(name, path, sizeof(path)) || stat(path, &st) < 0)
		return err_set(e, -EACCES, "cannot run '%s': permission denied", shown);
	if (S_ISDIR(st.st_mode))
		return err_set(e, -EACCES, "cannot run '%s': it is a folder", shown);
	if (access(path, X_OK) != 0) {
		err_set(e, -EACCES, "cannot run '%s': it is not executable", shown);
		if (is_python(path))
			err_hint(e, "run '%s %s', or 'chmod +x %s'", python_name(), shown, shown);
		else if (program_is_text(path))
			err_hint(e, "run 'chmod +x %s'", shown);
		return -EACCES;
	}
	if (read_interpreter(path, interpreter, sizeof(interpreter)) &&
	    access(interpreter, X_OK) != 0)
		return err_set(e, -EACCES,
			       "cannot run '%s': its interpreter '%s' is not executable", shown,
			       interpreter);
	err_set(e, -EACCES, "cannot run '%s': permission denied", shown);
	err_hint(e, "its file system may be mounted noexec");
	return -EACCES;
}

int program_failure(const char *name, int error, struct err *e)
{
	char shown[200], why[96], path[PATH_MAX];

	text_safe_copy(shown, sizeof(shown), name);
	/* A folder of $PATH that is closed to us does not make the command one that is refused. */
	if (error == EACCES && !strchr(name, '/') && !find_file(name, path, sizeof(path)))
		error = ENOENT;
	switch (error) {
	case ENOENT:
		return not_found(name, shown, e);
	case EACCES:
		return refused(name, shown, e);
	case ENOEXEC:
		return err_set(e, -ENOEXEC, "cannot run '%s': not a program for this machine",
			       shown);
	default:
		return err_set(e, -EACCES, "cannot run '%s': %s", shown,
			       err_name(error, why, sizeof(why)));
	}
}
