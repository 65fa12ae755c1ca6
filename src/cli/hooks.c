/* SPDX-License-Identifier: MIT */
#include "cli/hooks.h"

#include "base/auto.h"
#include "engine/mark_folder.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* By which the package is known, seen from the folder that holds it. */
#define PACKAGE_FILE "spotter/_site/sitecustomize.py"

/* "NAME=value"; without memory the variable is left out. */
static void __attribute__((format(printf, 2, 3))) set(struct hooks *h, const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (h->n < HOOKS_VARIABLES && vasprintf(&text, fmt, ap) >= 0)
		h->env[h->n++] = text;
	va_end(ap);
}

/* Is there such a thing, and of somebody who could as well have changed this program? What is loaded into
 * the user's own programs must not be what anyone left in a folder beside us. */
static bool is_trusted(const char *path, uid_t owner)
{
	struct stat st;

	return stat(path, &st) == 0 &&
	       (st.st_uid == 0 || st.st_uid == owner || st.st_uid == geteuid());
}

static bool has(const char *folder, const char *name, uid_t owner)
{
	char path[PATH_MAX];

	return snprintf(path, sizeof(path), "%s/%s", folder, name) < (int)sizeof(path) &&
	       is_trusted(path, owner);
}

/* The first of these folders, as seen from `home`, that has this inside. */
static bool find(char *ret, size_t size, const char *home, const char *const *places,
		 const char *inside, uid_t owner)
{
	char path[PATH_MAX];

	for (; *places; places++) {
		if (snprintf(path, sizeof(path), "%s/%s", home, *places) >= (int)sizeof(path) ||
		    !has(path, inside, owner))
			continue;
		auto_free char *real = realpath(path, NULL);
		if (real && snprintf(ret, size, "%s", real) < (int)size)
			return true;
	}
	return false;
}

/* Below PREFIX/lib: in python3.11/site-packages or python3/dist-packages, with `beside` next to it. */
static bool find_below(char *ret, size_t size, const char *lib, const char *beside, uid_t owner)
{
	char site[NAME_MAX + 16], dist[NAME_MAX + 16];
	const char *const places[] = { site, dist, NULL };
	DIR *dir = opendir(lib);
	bool found = false;
	struct dirent *d;

	while (dir && !found && (d = readdir(dir))) {
		if (strncmp(d->d_name, "python3", strlen("python3")) != 0)
			continue;
		snprintf(site, sizeof(site), "%s/site-packages", d->d_name);
		snprintf(dist, sizeof(dist), "%s/dist-packages", d->d_name);
		found =
		    find(ret, size, lib, places, PACKAGE_FILE, owner) && has(ret, beside, owner);
	}
	if (dir)
		closedir(dir);
	return found;
}

/* As pip lays it out: this program in PREFIX/bin, the package in PREFIX/lib/python3.11/site-packages (Debian's
 * own: lib/python3/dist-packages). Any of several will do: it is the same for every Python. */
static bool find_installed(char *ret, size_t size, const char *home, const char *beside,
			   uid_t owner)
{
	static const char *const libs[] = { "../lib", "../lib64" };
	char path[PATH_MAX];

	for (size_t i = 0; i < ARRAY_LEN(libs); i++)
		if (snprintf(path, sizeof(path), "%s/%s", home, libs[i]) < (int)sizeof(path) &&
		    find_below(ret, size, path, beside, owner))
			return true;
	return false;
}

/* The folder that holds the Python package, "" where there is none. */
static void find_python(char *ret, size_t size, const char *home, uid_t owner)
{
	/* The last is what `pip install --target` leaves. */
	static const char *const places[] = { "../python", "../lib/spotter/python",
					      "../" SPOTTER_LIBDIR "/spotter/python", "..", NULL };

	if (!find(ret, size, home, places, PACKAGE_FILE, owner) &&
	    /* Several Pythons of one prefix (~/.local) may have several versions of it. */
	    !find_installed(ret, size, home, "spotter-" SPOTTER_VERSION ".dist-info", owner) &&
	    !find_installed(ret, size, home, ".", owner))
		ret[0] = '\0';
}

static void set_library(struct hooks *h, const char *home, const char *python, uid_t owner)
{
	static const char *const places[] = { ".", "../" SPOTTER_LIBDIR, "../lib", NULL };
	static const char *const in_wheel[] = { "spotter", NULL };
	/* The second is all there is where nothing for developers is installed. */
	static const char *const names[] = { "libspotter.so", "libspotter.so.0" };
	char path[PATH_MAX];

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (!(python[0] && find(path, sizeof(path), python, in_wheel, names[i], owner)) &&
		    !find(path, sizeof(path), home, places, names[i], owner))
			continue;
		set(h, "SPOTTER_LIB=%s/%s", path, names[i]);
		return;
	}
}

static bool is_first(const char *list, const char *folder)
{
	size_t n = strlen(folder);

	return list && strncmp(list, folder, n) == 0 && (!list[n] || list[n] == ':');
}

static void set_python(struct hooks *h, const char *path)
{
	const char *found = getenv("PYTHONPATH");
	char site[PATH_MAX + 16];

	set(h, "SPOTTER_PYTHON=%s", path);
	snprintf(site, sizeof(site), "%s/spotter/_site", path);
	/* A list with colons between its folders cannot name one that has a colon. And in a run within a
	 * run it is there already. */
	if (!strchr(site, ':') && !is_first(found, site))
		set(h, "PYTHONPATH=%s%s%s", site, found && *found ? ":" : "", found ? found : "");
}

void hooks_environment(struct hooks *h, const char *exe, const char *run_id)
{
	char own[PATH_MAX], home[PATH_MAX], python[PATH_MAX];
	char *slash;
	struct stat st;
	ssize_t n;

	if (!exe) {
		n = readlink("/proc/self/exe", own, sizeof(own) - 1);
		own[n > 0 ? n : 0] = '\0';
		exe = own;
	}
	set(h, "SPOTTER_RUN=%s", run_id);
	/* Deleted or replaced since it was started: nothing beside it can be ours. */
	if (stat(exe, &st) < 0 || snprintf(home, sizeof(home), "%s", exe) >= (int)sizeof(home))
		return;
	slash = strrchr(home, '/');
	if (!slash)
		return;
	*slash = '\0';
	set(h, "SPOTTER_EXE=%s", exe);
	find_python(python, sizeof(python), home, st.st_uid);
	set_library(h, home, python, st.st_uid);
	if (python[0])
		set_python(h, python);
}

void hooks_prepare(struct hooks *h, const char *exe, const char *run_id)
{
	*h = (struct hooks){ 0 };
	if (mark_folder_make(h->folder, sizeof(h->folder)) >= 0)
		set(h, "SPOTTER_MARKS=%s", h->folder);
	hooks_environment(h, exe, run_id);
}

void hooks_done(struct hooks *h)
{
	for (size_t i = 0; i < h->n; i++)
		free(h->env[i]);
	h->n = 0;
}
