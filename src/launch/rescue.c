/* SPDX-License-Identifier: MIT */
#include "launch/rescue.h"

#include "base/io.h"
#include "base/scan.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool rescue_parse(const char *text, size_t n, int *ret_status)
{
	const char *comm_end = memrchr(text, ')', n); /* a name may hold any ')' */
	const char *word;
	struct scan s;
	size_t length;
	int64_t status;

	if (!comm_end)
		return false;
	s = scan_of(comm_end + 1, n - (size_t)(comm_end + 1 - text));
	/* The state is field 3: 48 more to skip before field 52. */
	if (!scan_word(&s, &word, &length) || length != 1 || *word != 'Z' || !scan_skip(&s, 48) ||
	    !scan_i64(&s, &status) || status < 0 || status > 0xffff)
		return false;
	*ret_status = (int)status;
	return true;
}

/* A program that has changed its user (sudo) shows us 0 whatever it ended with. */
static bool is_ours(pid_t pid)
{
	char path[64], text[8192];
	struct scan ids;
	ssize_t n;
	int64_t id;

	if (geteuid() == 0)
		return true;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	n = io_read(AT_FDCWD, path, text, sizeof(text));
	if (n < 0 || !scan_key(scan_of(text, (size_t)n), "Uid", &ids))
		return false;
	for (int i = 0; i < 4; i++)
		if (!scan_i64(&ids, &id) || id != (int64_t)geteuid())
			return false;
	return true;
}

static ssize_t read_stat(pid_t pid, char *text, size_t size)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	return io_read(AT_FDCWD, path, text, size);
}

char rescue_state(pid_t pid)
{
	char text[2048];
	ssize_t n = read_stat(pid, text, sizeof(text));
	const char *comm_end = n < 0 ? NULL : memrchr(text, ')', (size_t)n);

	/* ") S": text is NUL-terminated, so both may be looked at. */
	return comm_end && comm_end[1] ? comm_end[2] : '\0';
}

bool rescue_status(pid_t pid, int *ret_status)
{
	char text[2048];
	ssize_t n = read_stat(pid, text, sizeof(text));
	int status;

	if (n < 0 || !rescue_parse(text, (size_t)n, &status))
		return false;
	if (status == 0 && !is_ours(pid))
		return false;
	*ret_status = status;
	return true;
}
