/* SPDX-License-Identifier: MIT
 *
 * A folder for rings, and the rings in it.
 */
#ifndef SPOTTER_TESTS_MARK_PLACE_H
#define SPOTTER_TESTS_MARK_PLACE_H

#include "mark/ring.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct place {
	char path[256];
	int fd;
};

/* For whatever runs in a child, where cmocka must not be: says so and ends it. */
#define must(holds)                                                                         \
	do {                                                                                \
		if (!(holds)) {                                                             \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #holds); \
			_exit(1);                                                           \
		}                                                                           \
	} while (0)

static inline void place_make(struct place *p)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(p->path, sizeof(p->path), "%s/spotter-marks-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	must(mkdtemp(p->path)); /* mode 0700 */
	p->fd = open(p->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(p->fd >= 0);
}

/* How many entries end so; the name of the last one. */
static inline int place_count(const struct place *p, const char *end, char *ret, size_t size)
{
	DIR *d = opendir(p->path);
	int n = 0;

	must(d);
	for (struct dirent *e; (e = readdir(d));) {
		size_t have = strlen(e->d_name), want = strlen(end);

		if (e->d_name[0] == '.' && strlen(e->d_name) < 3)
			continue;
		if (have < want || strcmp(e->d_name + have - want, end) != 0)
			continue;
		n++;
		if (ret)
			snprintf(ret, size, "%s", e->d_name);
	}
	closedir(d);
	return n;
}

static inline void place_done(struct place *p)
{
	char name[256];

	while (place_count(p, "", name, sizeof(name)))
		if (unlinkat(p->fd, name, 0) < 0)
			unlinkat(p->fd, name, AT_REMOVEDIR);
	close(p->fd);
	rmdir(p->path);
}

/* The ring of that process. */
static inline struct ring_reader *place_open(const struct place *p, int pid)
{
	struct ring_reader *r = NULL;
	DIR *d = opendir(p->path);

	must(d);
	for (struct dirent *e; !r && (e = readdir(d));)
		if (strstr(e->d_name, ".ring") && strtol(e->d_name, NULL, 10) == pid)
			must(ring_open(&r, p->fd, e->d_name) == 0);
	closedir(d);
	return r;
}

/* Runs f in a child: its status as of waitpid(). */
static inline int in_child(void (*f)(struct place *), struct place *p)
{
	int status = -1;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (!pid) {
		f(p);
		_exit(0);
	}
	if (pid > 0)
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
	return status;
}

#endif
