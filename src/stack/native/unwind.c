/* SPDX-License-Identifier: MIT
 *
 * From frame to frame by unwind rules. Of a waiting thread two registers are known, pc and sp; others
 * become known when a frame has saved them. A frame whose rule needs one that is not ends the walk.
 *
 * Of a running thread's sample all are known. But it may be anywhere, also where a rule is not quite true
 * (assembly whose author did not care): so every caller must be seen to call.
 */
#include "stack/native/process.h"

#include <elf.h>
#include <errno.h>

#define EXPRESSION_MAX 1024
#define PAGE           4096 /* the smallest there is */

struct machine {
	uint8_t columns, sp;
	uint64_t callee_saved; /* bit per column: a called function leaves these as they were */
	uint64_t address_bits; /* what of a return address is address; the rest is a signature */
};

/* Column numbers: System V ABI x86-64, 3.6.2; DWARF for the Arm 64-bit architecture, 4.1. */
static const struct machine x86_64 = {
	.columns = 17,
	.sp = 7,
	.callee_saved = 1u << 3 | 1u << 6 | 0xfu << 12, /* rbx, rbp, r12-r15 */
	.address_bits = UINT64_MAX,
};
static const struct machine aarch64 = {
	.columns = 32,
	.sp = 31,
	.callee_saved = 0x7ff80000u, /* x19-x30: the link register, where no frame saved it */
	.address_bits = 0x00ffffffffffffu,
};

struct walk {
	struct native_process *p;
	const struct machine *machine;
	uint64_t start; /* of the image of this frame: rules count from it */
	uint64_t registers[COLUMNS];
	uint64_t known; /* bit per register */
	int64_t now_ns;
	const struct native_sample *sample; /* NULL: of a thread that waits */
	bool whole;                         /* the outermost function was reached */
};

static const struct machine *machine_of(const struct native_image *image)
{
	if (image->elf.machine == EM_X86_64)
		return &x86_64;
	return image->elf.machine == EM_AARCH64 ? &aarch64 : NULL;
}

/* 8 KB of the stack, or what there is where it ends before that. Where it does is remembered: the first
 * frames of a thread are near it, and a reading that fails costs as much as one that does not. */
static bool read_window(struct native_process *p, uint64_t at)
{
	uint64_t n = NATIVE_WINDOW, end = at + NATIVE_WINDOW;

	p->window_n = 0;
	for (unsigned i = 0; i < NATIVE_ENDS; i++)
		if (p->ends[i] > at && p->ends[i] < end)
			end = p->ends[i];
	n = end > at ? end - at : n;
	while (n >= 8 && mem_read(p->mem, at, p->window, n) < 0) {
		end = (at + n - 1) / PAGE * PAGE; /* one page less */
		n = end > at ? end - at : 0;
		if (n)
			p->ends[p->ends_next++ % NATIVE_ENDS] = end;
	}
	if (n < 8)
		return false;
	p->window_at = at;
	p->window_n = n;
	return true;
}

/* A word of the stack, by reading a window of it when it is not in the one we have. */
static bool stack_word(void *arg, uint64_t at, uint64_t *ret)
{
	const struct walk *w = arg;
	struct native_process *p = w->p;

	if (w->sample) { /* what is in its memory by now is of no use */
		if (at < w->sample->sp || at - w->sample->sp > w->sample->stack_n ||
		    w->sample->stack_n - (at - w->sample->sp) < 8)
			return false;
		memcpy(ret, w->sample->stack + (at - w->sample->sp), 8);
		return true;
	}
	if (at < p->window_at || at - p->window_at > p->window_n ||
	    p->window_n - (at - p->window_at) < 8) {
		if (!read_window(p, at))
			return mem_read_u64(p->mem, at, ret) == 0;
	}
	memcpy(ret, p->window + (at - p->window_at), 8);
	return true;
}

static bool evaluate(struct walk *w, const struct rule *rule, const uint64_t *first, uint64_t *ret)
{
	uint8_t code[EXPRESSION_MAX];
	struct rules_machine machine = {
		.registers = w->registers, .known = w->known, .read = stack_word, .arg = w
	};
	size_t n = (size_t)rule->extra;

	if (rule->extra < 0 || n > sizeof(code) ||
	    mem_read(w->p->mem, w->start + (uint64_t)rule->value, code, n) < 0)
		return false;
	return rules_evaluate((struct bytes){ .p = code, .end = code + n }, &machine, first, ret);
}

static bool frame_begin(struct walk *w, const struct rule *rule, uint64_t *ret)
{
	if (rule->kind == RULE_VAL_EXPRESSION)
		return evaluate(w, rule, NULL, ret);
	if (rule->kind != RULE_REGISTER || !(w->known >> rule->value & 1))
		return false;
	*ret = w->registers[rule->value] + (uint64_t)(int64_t)rule->extra;
	return true;
}

/* A register of the caller; false: unknown. */
static bool caller_register(struct walk *w, const struct native_row *row, unsigned column,
			    uint64_t cfa, uint64_t *ret)
{
	const struct rule *rule = &row->of[column];
	uint64_t at;

	switch (rule->kind) {
	case RULE_OFFSET:
		return stack_word(w, cfa + (uint64_t)rule->value, ret);
	case RULE_VAL_OFFSET:
		*ret = cfa + (uint64_t)rule->value;
		return true;
	case RULE_REGISTER:
		if (rule->value >= COLUMNS || !(w->known >> rule->value & 1))
			return false;
		*ret = w->registers[rule->value];
		return true;
	case RULE_EXPRESSION:
		return evaluate(w, rule, &cfa, &at) && stack_word(w, at, ret);
	case RULE_VAL_EXPRESSION:
		return evaluate(w, rule, &cfa, ret);
	case RULE_SAME:
		if (!(w->known >> column & 1) ||
		    (!row->signal && !(w->machine->callee_saved >> column & 1)))
			return false;
		*ret = w->registers[column];
		return true;
	default:
		return false;
	}
}

/* To the caller: its registers, and in *ret_pc where it goes on. */
static bool step(struct walk *w, const struct native_row *row, bool innermost, uint64_t *ret_pc)
{
	uint64_t caller[COLUMNS] = { 0 }, known = 0, cfa, sp = w->registers[w->machine->sp];

	/* Only a function that has not touched the stack yet, on a machine where calling does not,
	 * begins where its caller's frame ends. */
	if (!frame_begin(w, &row->cfa, &cfa) || cfa < sp || (cfa == sp && !innermost))
		return false;
	for (unsigned i = 0; i < w->machine->columns; i++)
		if (caller_register(w, row, i, cfa, &caller[i]))
			known |= 1ull << i;
	if (row->of[w->machine->sp].kind == RULE_SAME) {
		caller[w->machine->sp] = cfa;
		known |= 1ull << w->machine->sp;
	}
	/* Where calling writes to the stack, "as it was" is no answer. */
	if (w->machine == &x86_64 && row->of[row->return_column].kind == RULE_SAME)
		return false;
	if (!(known >> row->return_column & 1) || !(known >> w->machine->sp & 1) ||
	    caller[w->machine->sp] < sp)
		return false;
	*ret_pc = caller[row->return_column] & w->machine->address_bits;
	memcpy(w->registers, caller, sizeof(caller));
	w->known = known;
	return true;
}

/* The image of code at an address; NULL: none, with *ret_code telling if it may be run at all. */
static struct native_image *code_at(struct walk *w, uint64_t address, bool *ret_code)
{
	const struct elf_mapping *m = native_mapping(w->p, address, w->now_ns);

	*ret_code = m && m->executable;
	return *ret_code ? native_image(w->p, m, address) : NULL;
}

/* The registers that are known in the innermost frame. */
static void begin(struct walk *w, uint64_t sp)
{
	if (w->sample) {
		memcpy(w->registers, w->sample->registers, sizeof(w->registers));
		w->known = w->sample->known & ((1ull << w->machine->columns) - 1);
	}
	w->registers[w->machine->sp] = sp;
	w->known |= 1ull << w->machine->sp;
}

/* May a frame of a sample be told? Where the innermost is, the kernel said. */
static bool proven(struct walk *w, const struct native_row *row, uint64_t pc, uint64_t callee)
{
	if (!w->sample || !callee)
		return true;
	/* Who was interrupted by a signal called nobody; nor did what the handler returns to. */
	return row && (row->signal || native_calls(w->p, pc, callee, w->now_ns));
}

static size_t walk_up(struct walk *w, uint64_t pc, uint64_t sp, uint64_t *addresses, size_t max)
{
	struct native_process *p = w->p;
	uint64_t look = pc; /* behind a call is not always the function that called */
	uint64_t callee = 0;
	struct native_image *image;
	const struct native_row *row;
	size_t n = 0;
	bool code;

	max = max < NATIVE_FRAMES_MAX ? max : NATIVE_FRAMES_MAX;
	while (n < max) {
		image = code_at(w, look, &code);
		if (!code)
			break;
		if (image && !w->machine) {
			w->machine = machine_of(image);
			if (w->machine)
				begin(w, sp);
		}
		row = image && machine_of(image) == w->machine && w->machine
			  ? native_row(p->shared, p->mem, image, look)
			  : NULL;
		w->start = image ? image->elf.start : 0;
		if (!proven(w, row, pc,
			    callee)) /* may forget all images: mappings are read again */
			break;
		addresses[n++] = pc;
		if (!row || n == max)
			break;
		if (w->machine == &x86_64) { /* expressions of .plt ask for it */
			w->registers[16] = pc;
			w->known |= 1ull << 16;
		}
		w->whole = row->of[row->return_column].kind == RULE_UNDEFINED;
		callee = row->signal ? 0 : look;
		if (!step(w, row, n == 1, &pc))
			break;
		w->whole = !pc;
		look = row->signal ? pc : pc - 1;
	}
	return n;
}

size_t native_unwind(struct native_process *p, uint64_t pc, uint64_t sp, int64_t now_ns,
		     uint64_t *addresses, size_t max)
{
	struct walk w = { .p = p, .now_ns = now_ns };

	size_t n;

	p->window_n = 0;
	n = walk_up(&w, pc, sp, addresses, max);
	p->whole = n && w.whole;
	return n;
}

bool native_unwound(const struct native_process *p)
{
	return p->whole;
}

size_t native_unwind_sample(struct native_process *p, const struct native_sample *sample,
			    int64_t now_ns, uint64_t *addresses, size_t max, bool *ret_whole)
{
	struct walk w = { .p = p, .now_ns = now_ns, .sample = sample };
	size_t n = walk_up(&w, sample->pc, sample->sp, addresses, sample->known ? max : max > 0);

	*ret_whole = n && w.whole;
	return n;
}
