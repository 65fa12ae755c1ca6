/* SPDX-License-Identifier: MIT
 *
 * Which groups a process is in, and where they are mounted. /proc/PID/cgroup:
 *
 *	9:name=systemd:/
 *	4:memory:/batch/056a
 *	2:cpu,cpuacct:/docker/4f0c
 *	0::/user.slice/user-1000.slice/session-2.scope
 *
 * hierarchy:controllers:path. Hierarchy 0 is v2; a controller that no v1 line names is v2's. The
 * path of a group that was removed ends in " (deleted)".
 *
 * Paths are as seen from the root of *our* cgroup namespace, and so is the root field of mountinfo
 * (sample: mountinfo.c). The folder is the mount point plus what the path has beyond that root:
 *	path /docker/4f	mount root /docker/4f	-> the mount point: a container without a namespace
 *	path /		mount root /		-> the mount point: a container with one
 *	path /../b	mount root /..		-> mount point/b: our namespace begins beside it
 *	path /		mount root /../..	-> two folders down whose names we cannot know: only
 *						   the mount point's own limits hold for us
 *	path /../b	mount root /		-> out of sight
 */
#include "collect/cgroup.h"

#include "base/scan.h"
#include "base/text.h"
#include "collect/mountinfo.h"
#include "collect/whole.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* What mountinfo calls them; the unified one has no name. */
static const char *const controllers[CGROUP_PARTS] = {
	[CGROUP_CPU] = "cpu",
	[CGROUP_CPUACCT] = "cpuacct",
	[CGROUP_MEMORY] = "memory",
	[CGROUP_CPUSET] = "cpuset",
};

static bool take_path(struct scan line, char *dst)
{
	size_t n = (size_t)(line.end - line.p);
	static const char deleted[] = " (deleted)";
	size_t tail = sizeof(deleted) - 1;

	if (!n || n >= CGROUP_PATH || *line.p != '/' || memchr(line.p, '\0', n))
		return false;
	if (n > tail && memcmp(line.end - tail, deleted, tail) == 0)
		return false;
	memcpy(dst, line.p, n);
	dst[n] = '\0';
	return true;
}

/* Fills version and path of each part. */
static void parse_groups(const char *text, size_t n, struct cgroup_where *w)
{
	struct scan s = scan_of(text, n), line;

	while (whole_line(&s, &line)) {
		struct scan names;
		uint64_t hierarchy;

		if (!scan_u64(&line, &hierarchy) || !scan_lit(&line, ":"))
			continue;
		names.p = line.p;
		if (!scan_after(&line, ':'))
			continue;
		names.end = line.p - 1;
		if (hierarchy == 0 && scan_end(&names)) {
			struct cgroup_place *p = &w->at[CGROUP_UNIFIED];

			p->version = take_path(line, p->path) ? 2 : 0;
			continue;
		}
		for (int i = 0; i < CGROUP_UNIFIED; i++)
			if (mountinfo_has(names, controllers[i]))
				w->at[i].version = take_path(line, w->at[i].path) ? 1 : -1;
	}
	for (int i = 0; i < CGROUP_UNIFIED; i++)
		if (w->at[i].version == 0)
			w->at[i] = w->at[CGROUP_UNIFIED];
}

/* Leading "/.." components, and the text behind them. */
static int ups(const char **path)
{
	int n = 0;

	while (strncmp(*path, "/..", 3) == 0 && ((*path)[3] == '/' || (*path)[3] == '\0')) {
		*path += 3;
		n++;
	}
	return n;
}

/* What `path` has beyond `root` ("" or "/a/b"), or NULL when it does not lie below it. *ret_above:
 * root lies above it by a way whose names are unknown. */
static const char *beyond(const char *path, const char *root, bool *ret_above)
{
	int path_ups, root_ups;
	size_t n;

	path_ups = ups(&path);
	root_ups = ups(&root);
	n = strcmp(root, "/") == 0 ? 0 : strlen(root);
	*ret_above = root_ups > path_ups && n == 0;
	if (path_ups != root_ups || strncmp(path, root, n) != 0)
		return NULL;
	path += n;
	if (strcmp(path, "/") == 0)
		path = "";
	return *path == '\0' || *path == '/' ? path : NULL;
}

/* Only the ".." at the beginning mean something; the kernel writes no others. */
static bool leads_out(const char *path)
{
	for (const char *p = strstr(path, "/.."); p; p = strstr(p + 1, "/.."))
		if (p[3] == '/' || p[3] == '\0')
			return true;
	return false;
}

static bool mount_serves(const struct mountinfo *m, const struct cgroup_place *p, int part)
{
	if (p->version == 2)
		return mountinfo_is(m->type, "cgroup2");
	return mountinfo_is(m->type, "cgroup") && mountinfo_has(m->options, controllers[part]);
}

/* Sets dir and top if this mount shows the group. */
static bool place(struct cgroup_place *p, const struct mountinfo *m, const char *root)
{
	char point[CGROUP_PATH], dir[2 * CGROUP_PATH];
	const char *rest;
	bool above;

	rest = beyond(p->path, root, &above);
	if ((!rest && !above) || (rest && leads_out(rest)) ||
	    !mountinfo_unescape(m->point, point, sizeof(point)) || point[0] != '/' ||
	    point[1] == '\0')
		return false;
	snprintf(dir, sizeof(dir), "%s%s", point + 1, rest ? rest : "");
	if (!text_copy(p->dir, sizeof(p->dir), dir))
		return false;
	p->above = !rest;
	p->top = strlen(point + 1);
	return true;
}

/* Of several mounts of one hierarchy the one that shows the group itself, and of these the one with
 * the shortest root: it shows most of the groups above. */
static void find_dir(struct cgroup_place *p, int part, const char *text, size_t n)
{
	struct scan s = scan_of(text, n);
	struct mountinfo m;
	struct cgroup_place best = { 0 };
	size_t best_root = 0;

	while (p->version > 0 && mountinfo_next(&s, &m)) {
		struct cgroup_place one = *p;
		char root[CGROUP_PATH];
		bool better;

		if (!mount_serves(&m, p, part) || !mountinfo_unescape(m.root, root, sizeof(root)) ||
		    !place(&one, &m, root))
			continue;
		better = !best.version || (best.above && !one.above) ||
			 (best.above == one.above && strlen(root) < best_root);
		if (!better)
			continue;
		best = one;
		best_root = strlen(root);
	}
	*p = best;
}

int cgroup_find(const char *groups, size_t n_groups, const char *mounts, size_t n_mounts,
		struct cgroup_where *ret)
{
	struct cgroup_where w = { 0 };
	bool any = false;

	parse_groups(groups, n_groups, &w);
	for (int i = 0; i < CGROUP_PARTS; i++) {
		find_dir(&w.at[i], i, mounts, n_mounts);
		any = any || w.at[i].version;
	}
	if (!any)
		return -ENOENT;
	*ret = w;
	return 0;
}

const char *cgroup_name(const struct cgroup_where *w)
{
	static const enum cgroup_part order[] = { CGROUP_CPU, CGROUP_MEMORY, CGROUP_CPUACCT,
						  CGROUP_CPUSET, CGROUP_UNIFIED };

	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		const struct cgroup_place *p = &w->at[order[i]];

		if (p->version && strcmp(p->path, "/") != 0)
			return p->path;
	}
	return "/";
}

bool cgroup_up(char *dir, size_t top)
{
	char *slash = strrchr(dir, '/');

	if (strlen(dir) <= top || !slash || (size_t)(slash - dir) < top)
		return false;
	*slash = '\0';
	return true;
}

/* Files the kernel makes only in (v1), or everywhere but in (v2), the true root. */
bool cgroup_is_root(const struct host *h, const struct cgroup_place *p)
{
	char path[CGROUP_PATH + 32];
	struct stat st;
	bool there;

	if (strlen(p->dir) > p->top)
		return false;
	snprintf(path, sizeof(path), "%s/%s", p->dir,
		 p->version == 1 ? "release_agent" : "cgroup.events");
	there = fstatat(h->root, path, &st, 0) == 0;
	return p->version == 1 ? there : !there;
}
