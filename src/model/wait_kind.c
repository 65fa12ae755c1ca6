/* SPDX-License-Identifier: MIT */
#include "model/wait_kind.h"

#include <string.h>

static const char *const kind_names[WAIT_KINDS] = {
	[WAIT_UNKNOWN] = "unknown",
	[WAIT_RUNNING] = "running",
	[WAIT_RUNNABLE] = "runnable",
	[WAIT_GIL] = "gil",
	[WAIT_LOCK] = "lock",
	[WAIT_PIPE] = "pipe",
	[WAIT_QUEUE] = "queue",
	[WAIT_FILE] = "file",
	[WAIT_SOCKET] = "socket",
	[WAIT_POLL] = "poll",
	[WAIT_SLEEP] = "sleep",
	[WAIT_CHILD] = "child",
	[WAIT_GPU_DRIVER] = "gpu_driver",
	[WAIT_DISK] = "disk",
	[WAIT_PAGE_FAULT] = "page_fault",
	[WAIT_TERMINAL] = "terminal",
	[WAIT_STOPPED] = "stopped",
	[WAIT_OTHER] = "other",
};

const char *wait_kind_name(enum wait_kind kind)
{
	return (unsigned)kind < WAIT_KINDS ? kind_names[kind] : "unknown";
}

enum wait_kind wait_kind_by_name(const char *name)
{
	for (int i = 0; i < WAIT_KINDS; i++)
		if (strcmp(kind_names[i], name) == 0)
			return (enum wait_kind)i;
	return WAIT_UNKNOWN;
}
