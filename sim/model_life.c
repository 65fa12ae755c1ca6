/* SPDX-License-Identifier: MIT
 *
 * Whether a process that uses the devices still lives, and which number it has for the one who asks.
 *
 * Pids say neither across pid namespaces, nor after exec, so each client holds a lock on one byte of the
 * state's file: its row's. The kernel drops it when the last copy of the descriptor is closed, which is
 * when the process ends or replaces itself (close-on-exec). It belongs to the descriptor and not to the
 * pid (F_OFD_SETLK, Linux 3.15), so that the other library of the same process sees it, too, and can
 * close its own descriptor of the file without breaking it.
 */
#include "layout.h"

#include "base/auto.h"
#include "base/io.h"
#include "base/scan.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static struct flock byte_of(int row)
{
	/* l_pid stays 0: the kernel wants that for this kind of lock. */
	return (
	    struct flock){ .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = row, .l_len = 1 };
}

bool life_hold(struct vgpu *v, int row)
{
	struct flock l = byte_of(row);

	return life_can_tell(v) && fcntl(v->fd, F_OFD_SETLK, &l) == 0;
}

bool life_can_tell(const struct vgpu *v)
{
	struct stat st;

	return v->fd >= 0 && fstat(v->fd, &st) == 0 && (uint64_t)st.st_ino == v->inode;
}

bool life_gone(const struct vgpu *v, int row)
{
	struct flock l = byte_of(row);

	/* Our own lock is none to ourselves. */
	return row != v->client && fcntl(v->fd, F_OFD_GETLK, &l) == 0 && l.l_type == F_UNLCK;
}

/* Clock ticks after boot, the same in every pid namespace; 0 when it is gone.
 * "4711 (a b) c) S 1 ...": the name may hold anything, so from the last ')'. */
static uint64_t start_time(const char *pid)
{
	char path[48], text[1024];
	uint64_t start = 0;
	const char *p;
	struct scan s;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%.20s/stat", pid);
	n = io_read(AT_FDCWD, path, text, sizeof(text));
	p = n > 0 ? strrchr(text, ')') : NULL;
	if (!p)
		return 0;
	s = scan_of(p + 1, (size_t)(text + n - p - 1));
	scan_blank(&s);
	/* State is field 3, start time 22. */
	return scan_skip(&s, 19) && scan_u64(&s, &start) ? start : 0;
}

static uint64_t namespace_of(const char *pid)
{
	char path[48];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%.20s/ns/pid", pid);
	return stat(path, &st) == 0 ? (uint64_t)st.st_ino : 0;
}

/* "NSpid:\t4711\t5": the last is what the process itself calls it (Linux 4.1). 0: cannot tell. */
static uint64_t innermost(const char *pid)
{
	char path[48], text[4096];
	uint64_t number = 0, next;
	const char *p;
	struct scan s;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%.20s/status", pid);
	n = io_read(AT_FDCWD, path, text, sizeof(text));
	p = n > 0 ? strstr(text, "\nNSpid:") : NULL;
	if (!p)
		return 0;
	s = scan_of(p + 7, (size_t)(text + n - p - 7));
	while (scan_blank(&s), scan_u64(&s, &next))
		number = next;
	return number;
}

static bool is(const char *pid, const struct client *c)
{
	uint64_t ns;

	if (pid[0] < '1' || pid[0] > '9' || innermost(pid) != (uint64_t)c->pid ||
	    start_time(pid) != c->start)
		return false;
	ns = namespace_of(pid);
	return !ns || ns == c->ns; /* 0: not ours to look at */
}

static int32_t search(const struct client *c)
{
	DIR *dir = opendir("/proc");
	const struct dirent *entry;
	int32_t found = c->pid; /* it is not below us: what it says of itself is all there is */

	while (dir && (entry = readdir(dir))) {
		if (is(entry->d_name, c)) {
			found = (int32_t)strtol(entry->d_name, NULL, 10);
			break;
		}
	}
	if (dir)
		closedir(dir);
	return found;
}

int32_t life_seen(struct vgpu *v, int row)
{
	const struct client *c = &v->s->client[row];
	struct seen *seen = &v->seen[row];

	if (c->ns == namespace_of("self"))
		return c->pid;
	if (seen->ticket != c->ticket)
		*seen = (struct seen){ .ticket = c->ticket, .pid = search(c) };
	return seen->pid;
}

void life_begin(struct client *c)
{
	c->pid = getpid();
	c->start = start_time("self");
	c->ns = namespace_of("self");
}
