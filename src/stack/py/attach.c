/* SPDX-License-Identifier: MIT
 *
 * Attaching: find the runtime, then make sure that it is one. The self-test follows back-pointers
 * (thread to interpreter), takes a sample, and wants code objects of the type "code" in it. A version
 * that we have a table for may have no Python frame at the moment; one that we only believe to
 * understand must show one.
 */
#include "base/auto.h"
#include "base/err.h"
#include "base/io.h"
#include "base/scan.h"
#include "stack/image.h"
#include "stack/py/process.h"

#include <errno.h>
#include <fcntl.h>

#define SELF_TESTS   64 /* samples until one thread shows a frame; some 10 us each */
#define NEWEST_MINOR 14 /* tested or known from its headers */

void py_detach(struct py_process *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->threads.n; i++)
		py_thread_done(&p->threads.v[i]);
	vec_done(&p->threads);
	vec_done(&p->interps);
	vec_done(&p->pieces);
	vec_done(&p->arena);
	vec_done(&p->scratch);
	vec_done(&p->verify);
	vec_done(&p->verified);
	vec_done(&p->chain[0].links);
	vec_done(&p->chain[1].links);
	py_codes_done(&p->codes);
	mem_close(&p->own);
	free(p);
}

static int failed_reading(const struct py_process *p, int r, struct err *e)
{
	if (r != -EPERM && r != -ESRCH)
		return r;
	if (mem_refusal(p->mem, e) == MEM_OK)
		err_set(e, r, "process %d cannot be read", (int)p->mem->pid);
	return r;
}

/* Are there proven frames, or at least threads without any? */
static int self_test(struct py_process *p, struct err *e)
{
	struct py_stacks stacks = { 0 };
	unsigned minor = p->place.layout.minor;
	size_t proven = 0, unproven = 0;
	int r = 0;

	for (int i = 0; i < SELF_TESTS && r == 0 && !proven; i++) {
		unproven = 0;
		r = py_sample(p, &stacks);
		for (size_t k = 0; k < stacks.threads.n; k++) {
			proven += stacks.threads.v[k].n > 0;
			unproven += stacks.threads.v[k].status == PY_UNPROVEN;
		}
		if (!unproven && minor <= NEWEST_MINOR)
			break;
	}
	py_stacks_done(&stacks);
	if (r == -ESTALE)
		return err_set(e, -EAGAIN, "Python 3.%u has not started yet, or is ending", minor);
	if (r < 0)
		return failed_reading(p, r, e);
	if (!proven && minor > NEWEST_MINOR)
		return err_set(e, -ENOTSUP,
			       "Python 3.%u is newer than we know, and its stacks cannot be "
			       "read the way those of 3.%u are",
			       minor, NEWEST_MINOR);
	if (!proven && unproven)
		return err_set(e, -EAGAIN,
			       "no stack of this Python 3.%u could be read consistently", minor);
	p->counts = (struct py_counts){ 0 };
	return 0;
}

static int start(struct py_process *p, struct err *e)
{
	int r;

	p->pthread_tid = PY_ABSENT;
	r = py_interps_list(p);
	if (r == -EAGAIN)
		return err_set(e, r, "Python 3.%u has not started yet", p->place.layout.minor);
	if (r == -EBADMSG)
		return err_set(e, -EAGAIN,
			       "Python 3.%u cannot be read yet: its lists make no sense",
			       p->place.layout.minor);
	if (r < 0)
		return failed_reading(p, r, e);
	r = self_test(p, e);
	if (r == 0)
		py_tid_infer(p);
	return r;
}

/* Does it live in a pid namespace below ours? */
static bool in_namespace(pid_t pid)
{
	char path[64], text[4096];
	uint64_t id;
	struct scan at;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	n = io_read(AT_FDCWD, path, text, sizeof(text));
	return n > 0 && scan_key(scan_of(text, (size_t)n), "NSpid", &at) && scan_u64(&at, &id) &&
	       scan_u64(&at, &id);
}

static int locate(struct py_process *p, struct err *e)
{
	auto_free char *maps = NULL;
	size_t n;
	int r;

	maps = elf_read_maps(p->mem->pid, &n, &r);
	if (!maps) {
		if (r == -ENOENT || r == -ESRCH)
			return err_set(e, -ESRCH, "process %d is gone", (int)p->mem->pid);
		if (r == -EACCES || r == -EPERM)
			return failed_reading(p, -EPERM, e);
		return r;
	}
	r = py_locate(p->mem, maps, n, &p->place, e);
	return failed_reading(p, r, e);
}

int py_attach(struct py_process **ret, pid_t pid, const struct py_process *like, struct err *e)
{
	struct py_process *p = calloc(1, sizeof(*p));
	int r = -ENOENT;

	if (!p)
		return -ENOMEM;
	mem_open(&p->own, pid);
	p->mem = &p->own;
	p->nested = in_namespace(pid);
	if (like) { /* a forked child: the same addresses, if it is still the same program */
		p->place = like->place;
		r = start(p, NULL);
	}
	if (r < 0 && r != -ESRCH && r != -EPERM) {
		r = locate(p, e);
		if (r == 0)
			r = start(p, e);
	} else if (r < 0) {
		failed_reading(p, r, e);
	}
	if (r < 0) {
		py_detach(p);
		return r;
	}
	*ret = p;
	return 0;
}

int py_attach_memory(struct py_process **ret, struct mem *m, const char *maps, size_t maps_n,
		     struct err *e)
{
	struct py_process *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return -ENOMEM;
	p->own.fd = -1;
	p->mem = m;
	r = py_locate(m, maps, maps_n, &p->place, e);
	if (r == 0)
		r = start(p, e);
	if (r < 0) {
		py_detach(p);
		return r;
	}
	*ret = p;
	return 0;
}

uint32_t py_version(const struct py_process *p)
{
	const struct py_layout *l = &p->place.layout;

	return l->version ? l->version : 3u << 24 | l->minor << 16;
}

bool py_gil(const struct py_process *p, uint32_t interpreter, struct py_range *ret)
{
	if (interpreter >= p->interps.n)
		return false;
	ret->start = p->interps.v[interpreter].gil;
	ret->end = ret->start + p->place.layout.gil_size;
	return true;
}

struct py_counts py_counts(const struct py_process *p)
{
	struct py_counts counts = p->counts;

	counts.calls = p->mem->calls;
	counts.bytes = p->mem->bytes;
	counts.reused = p->codes.reused;
	return counts;
}
