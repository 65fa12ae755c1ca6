/* SPDX-License-Identifier: MIT
 *
 * /proc/PID/stat, of which comm may hold anything, so fields are counted from the last ')':
 *
 *	4242 (python3) S 1 4242 4242 0 -1 4194560 ... 0 1234567 ...
 *	                                                ^ field 22: start, in ticks since boot
 */
#include "record/alive.h"

#include "base/io.h"
#include "base/scan.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { START_FIELD = 22, SILENT_S = 20 };

/* 0, -ENOENT when there is no such process or it is a zombie, -errno when it cannot be looked at. */
static int read_start(int64_t pid, int64_t *ret)
{
	char path[40], text[1024];
	const char *close;
	struct scan s;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%lld/stat", (long long)pid);
	n = io_read(AT_FDCWD, path, text, sizeof(text));
	if (n < 0)
		return n == -ESRCH ? -ENOENT : (int)n;
	close = strrchr(text, ')');
	if (!close)
		return -EBADMSG;
	s = scan_of(close + 1, (size_t)(text + n - close - 1));
	scan_blank(&s);
	if (scan_lit(&s, "Z") || scan_lit(&s, "X"))
		return -ENOENT;
	if (!scan_skip(&s, START_FIELD - 3) || !scan_i64(&s, ret))
		return -EBADMSG;
	return 0;
}

static void read_boot_id(char *ret, size_t size)
{
	char text[80];
	ssize_t n = io_read(AT_FDCWD, "/proc/sys/kernel/random/boot_id", text, sizeof(text));

	ret[0] = '\0';
	if (n <= 0)
		return;
	text[strcspn(text, "\n")] = '\0';
	text_copy(ret, size, text);
}

void recorder_self(struct recorder_id *ret)
{
	struct stat st;

	*ret = (struct recorder_id){ .pid = getpid() };
	if (read_start(ret->pid, &ret->start) < 0)
		ret->start = 0;
	if (stat("/proc/self/ns/pid", &st) == 0)
		ret->pid_space = (int64_t)st.st_ino;
	read_boot_id(ret->boot_id, sizeof(ret->boot_id));
}

bool recorder_alive(const struct recorder_id *id, double changed_s)
{
	struct recorder_id here;
	int64_t start;
	int r;

	recorder_self(&here);
	if (!id->boot_id[0] || strcmp(id->boot_id, here.boot_id) != 0 ||
	    (id->pid_space && here.pid_space && id->pid_space != here.pid_space))
		return changed_s < SILENT_S;
	if (id->pid <= 0 || id->pid > INT32_MAX)
		return false;
	r = read_start(id->pid, &start);
	if (r == 0)
		return !id->start || start == id->start;
	/* hidepid hides /proc/PID of others: whether the pid exists is all that can be known. */
	return kill((pid_t)id->pid, 0) == 0 ? r != -ENOENT : errno == EPERM && changed_s < SILENT_S;
}
