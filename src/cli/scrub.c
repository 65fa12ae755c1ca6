/* SPDX-License-Identifier: MIT */
#include "cli/scrub.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/scan.h"
#include "base/text.h"
#include "collect/mountinfo.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS_MAX = 4096 };

void scrub_done(struct scrub *s)
{
	for (size_t i = 0; i < s->words.n; i++)
		free(s->words.v[i].from);
	vec_done(&s->words);
}

/* The replacement of a word: prefix and a number, the same each time. */
static const char *replacement(struct scrub *s, const char *prefix, const char *word, size_t n)
{
	size_t with_prefix = 1;
	struct scrub_word *w;

	for (size_t i = 0; i < s->words.n; i++) {
		w = &s->words.v[i];
		if (strncmp(w->to, prefix, strlen(prefix)) != 0 ||
		    !isdigit((unsigned char)w->to[strlen(prefix)]))
			continue;
		with_prefix++;
		if (strlen(w->from) == n && memcmp(w->from, word, n) == 0)
			return w->to;
	}
	w = s->words.n < WORDS_MAX ? vec_push(&s->words) : NULL;
	if (w)
		w->from = strndup(word, n);
	if (!w || !w->from) {
		s->words.n -= w != NULL;
		return "x";
	}
	snprintf(w->to, sizeof(w->to), "%s%zu", prefix, with_prefix % 100000);
	return w->to;
}

static void put_path(struct scrub *s, const char *prefix, const char *path, size_t n,
		     struct buf *out)
{
	size_t i = 0;

	while (i < n) {
		size_t start = i;

		while (i < n && path[i] != '/')
			i++;
		if (i - start == 2 && memcmp(path + start, "..", 2) == 0)
			buf_str(out, "..");
		else if (i > start)
			buf_str(out, replacement(s, prefix, path + start, i - start));
		if (i < n)
			buf_char(out, path[i++]);
	}
}

void scrub_cgroup_path(struct scrub *s, const char *path, size_t n, struct buf *out)
{
	put_path(s, "g", path, n, out);
}

void scrub_cgroup(struct scrub *s, const char *text, size_t n, struct buf *out)
{
	struct scan all = scan_of(text, n), line;

	while (scan_line(&all, &line)) {
		const char *start = line.p;

		if (!scan_after(&line, ':') || !scan_after(&line, ':'))
			continue;
		buf_put(out, start, (size_t)(line.p - start));
		scrub_cgroup_path(s, line.p, (size_t)(line.end - line.p), out);
		buf_char(out, '\n');
	}
}

static bool starts_with(struct scan field, const char *text)
{
	return scan_lit(&field, text);
}

static bool is_cgroup(const struct mountinfo *m)
{
	return mountinfo_is(m->type, "cgroup") || mountinfo_is(m->type, "cgroup2");
}

/* Mount points every machine has. */
static bool is_plain_point(struct scan point)
{
	static const char *const exact[] = { "/",    "/proc", "/sys",     "/dev",     "/tmp",
					     "/run", "/home", "/dev/shm", "/dev/pts", "/var" };

	for (size_t i = 0; i < ARRAY_LEN(exact); i++)
		if (mountinfo_is(point, exact[i]))
			return true;
	return starts_with(point, "/sys/fs/cgroup");
}

static void put_field(struct scan field, struct buf *out)
{
	buf_put(out, field.p, (size_t)(field.end - field.p));
}

static void put_source(struct scan source, struct buf *out)
{
	bool server =
	    memchr(source.p, ':', (size_t)(source.end - source.p)) || starts_with(source, "//");

	if (server)
		buf_str(out, "server:/export");
	else if (starts_with(source, "/dev/mapper/"))
		buf_str(out, "/dev/mapper/volume");
	else if (starts_with(source, "/dev/"))
		put_field(source, out);
	else
		buf_str(out, "none");
}

/* Of the options, what decides something: read-only, hidepid, and controllers of a cgroup. */
static void put_options(const struct mountinfo *m, struct buf *out)
{
	struct scan o = m->options;
	bool first = true;

	while (o.p < o.end) {
		size_t n = 0, left = (size_t)(o.end - o.p);

		while (n < left && o.p[n] != ',')
			n++;
		if (is_cgroup(m) || (n == 2 && (!memcmp(o.p, "rw", 2) || !memcmp(o.p, "ro", 2))) ||
		    starts_with(o, "hidepid=")) {
			buf_str(out, first ? "" : ",");
			buf_put(out, o.p, n);
			first = false;
		}
		o.p += n < left ? n + 1 : n;
	}
	if (first)
		buf_str(out, "rw");
}

void scrub_mountinfo(struct scrub *s, const char *text, size_t n, struct buf *out)
{
	struct scan all = scan_of(text, n);
	struct mountinfo m;

	while (mountinfo_next(&all, &m)) {
		size_t n_root = (size_t)(m.root.end - m.root.p);
		size_t n_point = (size_t)(m.point.end - m.point.p);

		if (is_cgroup(&m) && !is_plain_point(m.point))
			continue;
		buf_printf(out, "%lld %lld 0:%lld ", (long long)m.id, (long long)m.parent,
			   (long long)m.id);
		if (is_cgroup(&m))
			scrub_cgroup_path(s, m.root.p, n_root, out);
		else
			buf_char(out, '/');
		buf_char(out, ' ');
		if (is_plain_point(m.point))
			put_field(m.point, out);
		else
			put_path(s, "m", m.point.p, n_point, out);
		buf_str(out, " rw,relatime - ");
		put_field(m.type, out);
		buf_char(out, ' ');
		put_source(m.source, out);
		buf_char(out, ' ');
		put_options(&m, out);
		buf_char(out, '\n');
	}
}

/* Names that tell what a process is and nothing about its owner. */
static bool is_common_name(const char *name, size_t n)
{
	static const char *const common[] = { "python",  "python3",  "bash",    "sh",        "zsh",
					      "systemd", "sshd",     "cron",    "java",      "node",
					      "make",    "torchrun", "dockerd", "containerd" };

	for (size_t i = 0; i < ARRAY_LEN(common); i++)
		if (strlen(common[i]) == n && memcmp(common[i], name, n) == 0)
			return true;
	return n > 7 && n < 12 && memcmp(name, "python3.", 8) == 0;
}

static void put_name(struct scrub *s, const char *name, size_t n, struct buf *out)
{
	if (is_common_name(name, n))
		buf_put(out, name, n);
	else
		buf_str(out, replacement(s, "process-", name, n));
}

void scrub_stat(struct scrub *s, const char *text, size_t n, struct buf *out)
{
	const char *open = memchr(text, '(', n);
	const char *close = memrchr(text, ')', n);

	if (!open || !close || close < open)
		return;
	buf_put(out, text, (size_t)(open + 1 - text));
	put_name(s, open + 1, (size_t)(close - open - 1), out);
	buf_put(out, close, (size_t)(text + n - close));
}

static bool line_is_one_of(struct scan line, const char *const *keys, size_t n_keys)
{
	for (size_t i = 0; i < n_keys; i++)
		if (starts_with(line, keys[i]))
			return true;
	return false;
}

void scrub_status(struct scrub *s, const char *text, size_t n, struct buf *out)
{
	static const char *const keep[] = {
		"State:",   "Tgid:",        "Pid:",         "PPid:",     "Vm",           "Rss",
		"Threads:", "Cpus_allowed", "Mems_allowed", "voluntary", "nonvoluntary", "NSpid:"
	};
	struct scan all = scan_of(text, n), line;

	while (scan_line(&all, &line)) {
		const char *start = line.p;

		if (scan_lit(&line, "Name:\t")) {
			buf_str(out, "Name:\t");
			put_name(s, line.p, (size_t)(line.end - line.p), out);
			buf_char(out, '\n');
		} else if (line_is_one_of(line, keep, ARRAY_LEN(keep))) {
			buf_put(out, start, (size_t)(line.end - start));
			buf_char(out, '\n');
		}
	}
}

/* lo, eth0, eno1, ens3f0, enp5s0, wlan0, ib0, bond0, docker0: made by kernels and udev from places.
 * Others may hold an address (enx0011..., wlx...), an id (veth...), or somebody's word. */
static bool is_plain_interface(const char *name, size_t n)
{
	static const char *const prefix[] = { "lo",   "eth", "eno",  "ens",   "enp",
					      "wlan", "ib",  "bond", "docker" };

	for (size_t i = 0; n <= 9 && i < ARRAY_LEN(prefix); i++)
		if (strncmp(name, prefix[i], strlen(prefix[i])) == 0)
			return true;
	return false;
}

void scrub_net_dev(struct scrub *s, const char *text, size_t n, struct buf *out)
{
	struct scan all = scan_of(text, n), line;

	while (scan_line(&all, &line)) {
		const char *colon = memchr(line.p, ':', (size_t)(line.end - line.p));

		scan_blank(&line);
		if (!colon) { /* the two lines of heads */
			put_field(line, out);
			buf_char(out, '\n');
			continue;
		}
		buf_str(out, "  ");
		if (is_plain_interface(line.p, (size_t)(colon - line.p)))
			buf_put(out, line.p, (size_t)(colon - line.p));
		else
			buf_str(out, replacement(s, "net", line.p, (size_t)(colon - line.p)));
		buf_put(out, colon, (size_t)(line.end - colon));
		buf_char(out, '\n');
	}
}

void scrub_cpuinfo(const char *text, size_t n, struct buf *out)
{
	static const char *const keep[] = { "processor", "vendor_id",   "cpu family", "model",
					    "stepping",  "physical id", "siblings",   "core id",
					    "cpu cores", "flags",       "CPU " };
	struct scan all = scan_of(text, n), line;

	while (scan_line(&all, &line)) {
		if (line.p < line.end && !line_is_one_of(line, keep, ARRAY_LEN(keep)))
			continue;
		put_field(line, out);
		buf_char(out, '\n');
	}
}

void scrub_smaps(const char *text, size_t n, struct buf *out)
{
	const char *newline = memchr(text, '\n', n);

	if (!newline)
		return;
	buf_str(out,
		"00400000-7fff00000000 ---p 00000000 00:00 0                          [rollup]");
	buf_put(out, newline, (size_t)(text + n - newline));
}

static bool is_word_byte(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* Length of `word` when it stands here as a whole word, else 0. */
static size_t word_here(const char *text, size_t n, size_t at, const char *word)
{
	size_t len = strlen(word);

	if (len < 2 || n - at < len || memcmp(text + at, word, len) != 0)
		return 0;
	if ((at && is_word_byte(text[at - 1])) || (at + len < n && is_word_byte(text[at + len])))
		return 0;
	return len;
}

void scrub_text(const struct scrub *s, const char *text, size_t n, struct buf *out)
{
	for (size_t i = 0; i < n;) {
		size_t len = word_here(text, n, i, s->home);

		if (!len)
			len = word_here(text, n, i, s->host);
		if (!len && strcmp(s->user, "root") != 0)
			len = word_here(text, n, i, s->user);
		if (len)
			buf_char(out, 'x');
		else
			buf_char(out, text[i]);
		i += len ? len : 1;
	}
}
