/* SPDX-License-Identifier: MIT
 *
 * Samples, verbatim (Linux 6.18). /proc/PID/stat, with the name of a process that called
 * prctl(PR_SET_NAME, "a) R (b"); stat is the only file here in which the kernel escapes nothing:
 *
 *   1234 (a) R (b) S 1 1234 1234 34816 1240 4194560 541 130 0 2 10 4 7 3 20 0 1 0 8123456
 *   10543104 1310 18446744073709551615 94116350271488 94116350960861 140736512345678 0 0 0 ...
 *
 * (one line, 52 fields). statm "2574 1310 890 220 0 301 0"; schedstat "812345678 12345678 912"
 * (time on a CPU in ns, time ready and waiting for one, times put on one); io:
 *
 *   rchar: 6976
 *   wchar: 0
 *   syscr: 10
 *   syscw: 0
 *   read_bytes: 4096
 *   write_bytes: 0
 *   cancelled_write_bytes: 0
 *
 * status "VmHWM:\t    1712 kB", "voluntary_ctxt_switches:\t12"; smaps_rollup
 * "Private_Clean:        48 kB" after a first line of addresses; loadavg
 * "2.38 1.48 0.60 1/91 11223".
 */
#include "collect/proc_parse.h"

#include <string.h>

/* A cursor whose failure is sticky, so that a line of numbers is one straight run of code and one
 * test at its end. */
struct fields {
	const char *p;
	bool bad;
};

static inline bool is_digit(char c)
{
	return (unsigned)(c - '0') < 10;
}

/* One number and the byte that must be behind it: half a number reads as a whole one. */
static inline int64_t take_to(struct fields *f, char stop)
{
	const char *p = f->p, *start = p;
	uint64_t v = 0;

	for (; is_digit(*p); p++)
		v = v * 10 + (unsigned)(*p - '0');
	f->bad |= p == start || p - start > 18 || *p != stop;
	f->p = p + (*p != '\0');
	return (int64_t)v;
}

static inline int64_t take(struct fields *f)
{
	return take_to(f, ' ');
}

/* Steps over n fields, whatever they hold. */
static inline void pass(struct fields *f, unsigned n)
{
	const char *p = f->p;

	for (; n; n--) {
		while ((unsigned char)*p > ' ')
			p++;
		f->bad |= *p != ' ';
		p += *p != '\0';
	}
	f->p = p;
}

/* "pid (" and a name of at most 15 bytes, 64 for a kernel worker. */
enum { HEAD_MAX = 11 + 2 + 64 + 8 };

bool stat_head_parse(const char *text, size_t n, struct stat_head *ret)
{
	const char *open = text, *close;

	while (is_digit(*open))
		open++;
	if (open == text || open[0] != ' ' || open[1] != '(')
		return false;
	open += 2;
	close = memrchr(text, ')', n < HEAD_MAX ? n : HEAD_MAX);
	if (!close || close < open || close[1] != ' ' || (unsigned char)close[2] <= ' ' ||
	    (unsigned char)close[2] > '~')
		return false;
	*ret = (struct stat_head){
		.name = open, .name_n = (size_t)(close - open), .rest = close + 3, .state = close[2]
	};
	return true;
}

static uint64_t image_of(uint64_t code, uint64_t stack)
{
	/* Without permission the kernel writes 1 and 0. */
	return stack ? (code ^ stack * 0x9e3779b97f4a7c15ull) | 1 : 0;
}

bool proc_stat_parse(const char *text, size_t n, struct proc_stat *ret)
{
	struct proc_stat s;
	struct fields f = { 0 };
	uint64_t code;

	if (!stat_head_parse(text, n, &s.head) || *s.head.rest != ' ')
		return false;
	f.p = s.head.rest + 1;
	s.ppid = take(&f);
	pass(&f, 4);
	s.flags = (uint64_t)take(&f);
	s.minor_faults = take(&f);
	pass(&f, 1);
	s.major_faults = take(&f);
	pass(&f, 1);
	s.utime = take(&f);
	s.stime = take(&f);
	s.child_utime = take(&f);
	s.child_stime = take(&f);
	pass(&f, 2);
	s.threads = take(&f);
	pass(&f, 1);
	s.start = (uint64_t)take(&f);
	pass(&f, 3);
	code = (uint64_t)take(&f);
	pass(&f, 1);
	s.image = image_of(code, (uint64_t)take(&f));
	if (f.bad)
		return false;
	*ret = s;
	return true;
}

/* One number behind this many that stand after the state. */
static bool take_field(const char *text, size_t n, unsigned before, char end, int64_t *ret)
{
	struct stat_head head;
	struct fields f = { 0 };
	int64_t v;

	if (!stat_head_parse(text, n, &head) || *head.rest != ' ')
		return false;
	f.p = head.rest + 1;
	pass(&f, before);
	v = take_to(&f, end);
	if (f.bad)
		return false;
	*ret = v;
	return true;
}

bool proc_stat_exit_code(const char *text, size_t n, int64_t *ret)
{
	return take_field(text, n, 48, '\n', ret);
}

bool proc_stat_exit_signal(const char *text, size_t n, int64_t *ret)
{
	return take_field(text, n, 34, ' ', ret);
}

bool proc_statm_parse(const char *text, size_t n, struct proc_statm *ret)
{
	struct fields f = { .p = text };
	struct proc_statm s;

	(void)n;
	s.size = take(&f);
	s.resident = take(&f);
	s.shared = take(&f);
	if (f.bad)
		return false;
	*ret = s;
	return true;
}

/* "name: 123\n" */
static inline int64_t take_named(struct fields *f, const char *end, const char *name, size_t name_n)
{
	if ((size_t)(end - f->p) < name_n || memcmp(f->p, name, name_n) != 0) {
		f->bad = true;
		return 0;
	}
	f->p += name_n;
	return take_to(f, '\n');
}

bool proc_io_parse(const char *text, size_t n, struct proc_io *ret)
{
	const char *end = text + n;
	struct fields f = { .p = text };
	struct proc_io s;

#define NAMED(label) take_named(&f, end, label, sizeof(label) - 1)
	s.rchar = NAMED("rchar: ");
	s.wchar = NAMED("wchar: ");
	s.syscr = NAMED("syscr: ");
	s.syscw = NAMED("syscw: ");
	s.read_bytes = NAMED("read_bytes: ");
	s.write_bytes = NAMED("write_bytes: ");
	s.cancelled = NAMED("cancelled_write_bytes: ");
#undef NAMED
	if (f.bad)
		return false;
	*ret = s;
	return true;
}

bool schedstat_parse(const char *text, size_t n, struct schedstat *ret)
{
	struct fields f = { .p = text };
	struct schedstat s;

	(void)n;
	s.run_ns = take(&f);
	s.delay_ns = take(&f);
	s.slices = take_to(&f, '\n');
	if (f.bad)
		return false;
	*ret = s;
	return true;
}

/* If the line at p is "KEY:  123" with that byte behind it, its number into *ret. */
static bool line_number(const char *p, const char *end, const char *key, size_t key_n, char stop,
			int64_t *ret)
{
	struct fields f;
	int64_t v;

	if ((size_t)(end - p) < key_n || memcmp(p, key, key_n) != 0)
		return false;
	p += key_n;
	while (*p == ' ' || *p == '\t')
		p++;
	f = (struct fields){ .p = p };
	v = take_to(&f, stop);
	if (f.bad)
		return false;
	*ret = v;
	return true;
}

#define LINE(label, stop, ret) line_number(p, end, label, sizeof(label) - 1, stop, ret)

bool proc_status_parse(const char *text, size_t n, struct proc_status *ret)
{
	struct proc_status s = { -1, -1, -1, -1 };
	const char *end = text + n;
	bool any = false;

	for (const char *p = text; p && p < end; p = memchr(p, '\n', (size_t)(end - p))) {
		p += *p == '\n';
		/* 60 lines, 4 wanted: one byte decides for most. */
		if (*p == 'V')
			any |= LINE("VmHWM:", ' ', &s.peak_kb) || LINE("VmSwap:", ' ', &s.swap_kb);
		else if (*p == 'v')
			any |= LINE("voluntary_ctxt_switches:", '\n', &s.switches);
		else if (*p == 'n')
			any |= LINE("nonvoluntary_ctxt_switches:", '\n', &s.preemptions);
	}
	if (any)
		*ret = s;
	return any;
}

bool proc_smaps_parse(const char *text, size_t n, struct proc_smaps *ret)
{
	const char *end = text + n;
	int64_t pss = -1, clean = -1, dirty = -1, huge = 0;

	for (const char *p = text; p && p < end; p = memchr(p, '\n', (size_t)(end - p))) {
		p += *p == '\n';
		if (*p != 'P')
			continue;
		(void)(LINE("Pss:", ' ', &pss) || LINE("Private_Clean:", ' ', &clean) ||
		       LINE("Private_Dirty:", ' ', &dirty) || LINE("Private_Hugetlb:", ' ', &huge));
	}
	if (pss < 0 || clean < 0 || dirty < 0 || __builtin_add_overflow(clean, dirty, &clean) ||
	    __builtin_add_overflow(clean, huge, &clean))
		return false;
	*ret = (struct proc_smaps){ .pss_kb = pss, .private_kb = clean };
	return true;
}

bool last_pid_parse(const char *text, size_t n, int64_t *ret)
{
	struct fields f = { .p = text };
	int64_t v;

	(void)n;
	pass(&f, 4);
	v = take_to(&f, '\n');
	if (f.bad)
		return false;
	*ret = v;
	return true;
}
