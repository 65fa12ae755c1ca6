/* SPDX-License-Identifier: MIT */
#include "gpu/owner.h"

#include "base/auto.h"
#include "base/io.h"
#include "base/scan.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* "NSpid:\t4312\t17\n" (Linux 4.1): the pid in the namespace of the procfs that was mounted, then in
 * each one further in. The first is the process's number here, which the caller has already. */
bool gpu_nspid(const char *status, size_t n, struct gpu_candidate *ret)
{
	pid_t inner[ARRAY_LEN(ret->inner)] = { 0 };
	struct scan s;
	uint64_t pid;
	size_t count = 0;

	if (!scan_key(scan_of(status, n), "NSpid", &s) || !scan_u64(&s, &pid))
		return false;
	while (scan_u64(&s, &pid)) {
		if (pid == 0 || pid > INT_MAX)
			return false;
		/* Namespaces nest up to 32 deep; the innermost number is the one a runtime inside would
		 * report, so it takes the last place. */
		inner[count < ARRAY_LEN(inner) ? count++ : ARRAY_LEN(inner) - 1] = (pid_t)pid;
	}
	memcpy(ret->inner, inner, sizeof(inner));
	return true;
}

static bool has_inner(const struct gpu_candidate *c, int32_t pid)
{
	for (size_t i = 0; i < ARRAY_LEN(c->inner); i++)
		if (c->inner[i] == pid)
			return true;
	return false;
}

/* Drivers count as the first namespace does, where ours is that one. But a driver may pass a number on
 * as the process itself sees it: then the process of that number here is an accident (init, a kernel
 * thread), and has no GPU code, while one in a namespace further in has. */
static struct gpu_owner find_in_first(int32_t driver_pid, const struct gpu_candidate *all, size_t n)
{
	const struct gpu_candidate *same = NULL, *inner = NULL;
	bool many = false;

	for (size_t i = 0; i < n; i++) {
		if (all[i].pid == driver_pid) {
			same = &all[i];
		} else if (has_inner(&all[i], driver_pid) && all[i].gpu_known && all[i].gpu_code) {
			many |= inner != NULL;
			inner = &all[i];
		}
	}
	if (!inner && same)
		return (struct gpu_owner){ .pid = same->pid };
	if (!inner)
		return (struct gpu_owner){ .why = "no such process is known here" };
	if (same && same->gpu_known && same->gpu_code)
		return (struct gpu_owner){ .pid = same->pid };
	if (many || (same && !same->gpu_known))
		return (struct gpu_owner){
			.why = "several processes here could be the one the driver means"
		};
	return (struct gpu_owner){ .pid = inner->pid };
}

struct gpu_owner gpu_owner_find(int32_t driver_pid, bool first_namespace,
				const struct gpu_candidate *all, size_t n)
{
	const struct gpu_candidate *found = NULL;
	bool idle_same = false, unknown_same = false;

	if (driver_pid <= 0)
		return (struct gpu_owner){ .why = "the driver names no process" };
	if (first_namespace)
		return find_in_first(driver_pid, all, n);
	for (size_t i = 0; i < n; i++) {
		bool same = all[i].pid == driver_pid;
		bool proven = all[i].gpu_known && all[i].gpu_code;

		idle_same |= same && all[i].gpu_known && !all[i].gpu_code;
		unknown_same |= same && !all[i].gpu_known;
		/* An inner number coincides as easily as an outer one: a process that is known to
		 * hold no GPU code is never the owner. */
		if (!(same && proven) &&
		    !(has_inner(&all[i], driver_pid) && (proven || !all[i].gpu_known)))
			continue;
		if (found && found->pid != all[i].pid)
			return (struct gpu_owner){
				.why = "several processes here could be the one the driver means"
			};
		found = &all[i];
	}
	if (found)
		return (struct gpu_owner){ .pid = found->pid };
	if (idle_same)
		return (struct gpu_owner){ .why =
					       "the process with this number here has no GPU code: "
					       "the driver counts in another pid namespace" };
	if (unknown_same)
		return (struct gpu_owner){
			.why = "whether the process with this number here uses a GPU "
			       "cannot be looked up"
		};
	return (struct gpu_owner){ .why = "the driver counts processes in another pid namespace" };
}

/* The first pid namespace has a fixed inode number (PROC_PID_INIT_INO, Linux 3.8):
 * "pid:[4026531836]". */
bool gpu_first_namespace(int root)
{
	char link[64];

	return io_readlink(root, "proc/self/ns/pid", link, sizeof(link)) > 0 &&
	       strcmp(link, "pid:[4026531836]") == 0;
}

/* Loaded libraries, as the last part of a line of maps begins with them:
 * "7f2d4c000000-7f2d4c800000 r-xp 00000000 08:01 1311 /usr/lib/x86_64-linux-gnu/libcuda.so.535.54"
 * libOpenCL is left out: desktop programs load it without ever touching a GPU. */
static const char *const runtimes[] = {
	"/libcuda.so",          "/libcudart.so",    "/libcudart-",         "/libamdhip64.so",
	"/libhsa-runtime64.so", "/libze_loader.so", "/libze_intel_gpu.so",
};

enum { MAPS_MAX = 4 << 20, CHUNK = 16384, OVERLAP = 32 };

static bool names_runtime(const char *text, size_t n)
{
	for (size_t i = 0; i < ARRAY_LEN(runtimes); i++)
		if (memmem(text, n, runtimes[i], strlen(runtimes[i])))
			return true;
	return false;
}

int gpu_code_loaded(int root, pid_t pid)
{
	char path[40], text[CHUNK + OVERLAP];
	size_t kept = 0, total = 0;
	auto_close int fd = -1;

	snprintf(path, sizeof(path), "proc/%d/maps", (int)pid);
	fd = io_open(root, path);
	if (fd < 0)
		return fd;
	while (total < MAPS_MAX) {
		ssize_t got = read(fd, text + kept, CHUNK);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		total += (size_t)got;
		kept += (size_t)got;
		if (names_runtime(text, kept))
			return 1;
		/* A name may be cut by the end of this chunk. */
		if (kept > OVERLAP) {
			memmove(text, text + kept - OVERLAP, OVERLAP);
			kept = OVERLAP;
		}
	}
	return 0;
}
