/* SPDX-License-Identifier: MIT
 *
 * Is a return address one? Before it must stand a call, and where the call names its target that must be
 * the function we came from, or lead there: by a stub of the linker's (.plt), or by a jump (a function
 * that ends with `return f(x);` has become a jump to f, and is on no stack).
 *
 * A few bytes of code are read for it, no instruction is decoded that is not asked for: a jump is one
 * whose 32 bits of distance come out at the function in question.
 */
#include "stack/native/process.h"

#include <elf.h>

#define BODY_MAX    4096 /* bytes of a function in which a jump is looked for */
#define WRAPPER_MAX 256  /* ... of one that may jump by a pointer: to whom is not known */
#define CALL_MAX    7    /* bytes of the longest call on x86-64 */
#define STUBS_MAX   8    /* looked through in a function */

struct span {
	uint64_t begin, end;
};

static bool within(const struct span *s, uint64_t address)
{
	return address >= s->begin && address < s->end;
}

static const struct native_image *image_of(struct native_process *p, uint64_t address,
					   int64_t now_ns)
{
	const struct elf_mapping *m = native_mapping(p, address, now_ns);

	return m && m->executable ? native_image(p, m, address) : NULL;
}

static bool function_at(struct native_process *p, uint64_t address, int64_t now_ns,
			struct span *ret)
{
	const struct native_image *image = image_of(p, address, now_ns);

	return image && native_function(p->mem, image, address, &ret->begin, &ret->end) == 0;
}

static uint64_t distance(const uint8_t *at)
{
	int32_t d;

	memcpy(&d, at, sizeof(d));
	return (uint64_t)(int64_t)d;
}

/* A stub: [endbr64] [bnd] jmp *slot(%rip), with the slot filled by the loader. */
static bool stub(struct native_process *p, uint64_t at, uint64_t *ret)
{
	static const uint8_t endbr[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	uint8_t code[11];
	size_t i = 0;

	if (mem_read(p->mem, at, code, sizeof(code)) < 0)
		return false;
	if (memcmp(code, endbr, sizeof(endbr)) == 0)
		i += sizeof(endbr);
	i += code[i] == 0xf2;
	if (i + 6 > sizeof(code) || code[i] != 0xff || code[i + 1] != 0x25)
		return false;
	return mem_read_u64(p->mem, at + i + 6 + distance(code + i + 2), ret) == 0;
}

/* Where a jump that may begin at code[i] goes: 0, none does. *ret_far: out of the function, perhaps. */
static uint64_t jump(const uint8_t *code, size_t i, size_t n, uint64_t at, bool *ret_far)
{
	*ret_far = code[i] == 0xe9 && n - i >= 5;
	if (*ret_far)
		return at + i + 5 + distance(code + i + 1);
	if (n - i >= 6 && code[i] == 0x0f && (code[i + 1] & 0xf0) == 0x80)
		return at + i + 6 + distance(code + i + 2);
	if (n - i >= 2 && (code[i] == 0xeb || (code[i] & 0xf0) == 0x70))
		return at + i + 2 + (uint64_t)(int64_t)(int8_t)code[i + 1];
	return 0;
}

/* Does a function jump into another? */
static bool jumps(struct native_process *p, const struct span *from, const struct span *to)
{
	uint8_t code[BODY_MAX];
	size_t n = (size_t)(from->end - from->begin), stubs = 0;
	uint64_t target;
	bool far;

	if (from->end - from->begin > sizeof(code) || mem_read(p->mem, from->begin, code, n) < 0)
		return false;
	for (size_t i = 0; i + 1 < n; i++) {
		target = jump(code, i, n, from->begin, &far);
		if (within(to, target))
			return true;
		if (far && !within(from, target) && stubs++ < STUBS_MAX &&
		    stub(p, target, &target) && within(to, target))
			return true;
		if (n <= WRAPPER_MAX && code[i] == 0xff && (code[i + 1] >> 3 & 7) == 4)
			return true;
	}
	return false;
}

static bool leads(struct native_process *p, uint64_t target, const struct span *callee,
		  int64_t now_ns)
{
	uint64_t at = target;
	struct span other;

	if (within(callee, target) || (stub(p, at, &target) && within(callee, target)))
		return true;
	/* A slot that leads back to the stubs has not been filled: nobody has called by it yet. */
	return function_at(p, target, now_ns, &other) && (at == target || !within(&other, at)) &&
	       jumps(p, &other, callee);
}

/* A call by a register or by memory, in the last bytes before `end`. Its second byte says how long it is:
 * ff /2, with or without an index byte, and 0, 1 or 4 bytes of distance. */
static bool by_pointer(const uint8_t *end)
{
	for (int n = 2; n <= CALL_MAX; n++) {
		const uint8_t *c = end - n;
		unsigned mode = c[1] >> 6, base = c[1] & 7;
		int length = 2;

		if (c[0] != 0xff || (c[1] >> 3 & 7) != 2)
			continue;
		if (mode != 3 && base == 4)
			length += n > 2 && mode == 0 && (c[2] & 7) == 5 ? 5 : 1;
		length += mode == 1 ? 1 : mode == 2 || (mode == 0 && base == 5) ? 4 : 0;
		if (length == n)
			return true;
	}
	return false;
}

static bool calls_x86_64(struct native_process *p, uint64_t back, const struct span *callee,
			 int64_t now_ns)
{
	uint8_t code[CALL_MAX];
	const uint8_t *end = code + CALL_MAX;
	uint64_t target;

	if (mem_read(p->mem, back - CALL_MAX, code, sizeof(code)) < 0)
		return false;
	if (end[-5] == 0xe8 && leads(p, back + distance(end - 4), callee, now_ns))
		return true;
	/* By a slot that the loader filled (-fno-plt, Rust), or a variable: what is in it now. */
	if (end[-6] == 0xff && end[-5] == 0x15)
		return mem_read_u64(p->mem, back + distance(end - 4), &target) == 0 &&
		       leads(p, target, callee, now_ns);
	return by_pointer(end);
}

/* bl; blr and those that check a signature. */
static bool calls_aarch64(struct native_process *p, uint64_t back)
{
	uint32_t code;

	if (mem_read(p->mem, back - 4, &code, sizeof(code)) < 0)
		return false;
	return (code & 0xfc000000u) == 0x94000000u || (code & 0xfefff000u) == 0xd63f0000u;
}

bool native_calls(struct native_process *p, uint64_t back, uint64_t callee, int64_t now_ns)
{
	struct native_call *kept =
	    &p->calls[(back ^ back >> 9 ^ callee * 31 ^ callee >> 7) & (NATIVE_CALLS - 1)];
	const struct native_image *image;
	struct span function;
	bool calls = false;

	if (back < CALL_MAX)
		return false;
	if (kept->back == back && kept->callee == callee)
		return kept->calls;
	image = image_of(p, back - 1, now_ns);
	if (image && image->elf.machine == EM_AARCH64)
		calls = calls_aarch64(p, back);
	else if (image && image->elf.machine == EM_X86_64)
		calls = function_at(p, callee, now_ns, &function) &&
			calls_x86_64(p, back, &function, now_ns);
	*kept = (struct native_call){ .back = back, .callee = callee, .calls = calls };
	return calls;
}
