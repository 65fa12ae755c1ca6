/* SPDX-License-Identifier: MIT
 *
 * What /proc/PID/ says about a process, as numbers. All parsers are pure: text in, struct out,
 * false (and nothing written) when the text is not what the kernel writes. They run for every
 * active process and thread on every tick, so they walk the bytes by hand and take only the
 * fields that are used; scan.h does the same with a bound check a byte.
 *
 * One rule pays for the speed: text[n] must be a NUL (io_pread() puts one there). No loop passes
 * a byte it does not know, and a NUL is never one of those.
 */
#ifndef SPOTTER_COLLECT_PROC_PARSE_H
#define SPOTTER_COLLECT_PROC_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The front of a stat line. The name may hold anything, brackets, blanks and newlines too: it ends
 * at the last ')' of the line, since no later field can contain one. */
struct stat_head {
	const char *name; /* into the text */
	size_t name_n;
	const char *rest; /* behind the state letter */
	char state;       /* R S D Z T t X I ... */
};
bool stat_head_parse(const char *text, size_t n, struct stat_head *ret);

/* /proc/PID/stat, the fields of proc(5) that are used. Times are in clock ticks. */
struct proc_stat {
	struct stat_head head;
	int64_t ppid;         /* field 4 */
	uint64_t flags;       /* 9: PF_* of the kernel */
	int64_t minor_faults; /* 10 */
	int64_t major_faults; /* 12 */
	int64_t utime, stime; /* 14, 15 */
	int64_t child_utime,
	    child_stime; /* 16, 17: children that were waited for, theirs included */
	int64_t threads; /* 20 */
	uint64_t start;  /* 22: ticks after boot; with the pid it is the identity */
	/* 26 startcode, 28 startstack mixed into one number: an exec changes it. 0: not permitted
	 * to be seen (0 and 1 are what the kernel writes then), or no memory (kernel thread,
	 * zombie). */
	uint64_t image;
};
enum { STAT_KERNEL_THREAD = 0x00200000 }; /* PF_KTHREAD */
bool proc_stat_parse(const char *text, size_t n, struct proc_stat *ret);
/* The last field (52, kernel 3.5): wait status of a zombie. 0 also when not permitted. */
bool proc_stat_exit_code(const char *text, size_t n, int64_t *ret);
/* Field 38: what its parent gets when it ends. */
bool proc_stat_exit_signal(const char *text, size_t n, int64_t *ret);

/* /proc/PID/statm, in pages. */
struct proc_statm {
	int64_t size, resident, shared;
};
bool proc_statm_parse(const char *text, size_t n, struct proc_statm *ret);

/* /proc/PID/io. */
struct proc_io {
	int64_t rchar, wchar, syscr, syscw, read_bytes, write_bytes, cancelled;
};
bool proc_io_parse(const char *text, size_t n, struct proc_io *ret);

/* /proc/PID/schedstat, /proc/PID/task/TID/schedstat: of one thread. */
struct schedstat {
	int64_t run_ns, delay_ns, slices;
};
bool schedstat_parse(const char *text, size_t n, struct schedstat *ret);

/* /proc/PID/status: lines are looked for by name, and -1 is "no such line" (kernel threads and
 * zombies have no Vm lines). False only without a single known line. */
struct proc_status {
	int64_t peak_kb, swap_kb;
	int64_t switches, preemptions;
};
bool proc_status_parse(const char *text, size_t n, struct proc_status *ret);

/* /proc/PID/smaps_rollup (kernel 4.14), in KiB. */
struct proc_smaps {
	int64_t pss_kb, private_kb;
};
bool proc_smaps_parse(const char *text, size_t n, struct proc_smaps *ret);

/* /proc/loadavg: the pid given last in our pid namespace, the fifth field. */
bool last_pid_parse(const char *text, size_t n, int64_t *ret);

#endif
