/* SPDX-License-Identifier: MIT
 *
 * DWARF expressions, as far as unwind tables have them. glibc's frame of a signal handler:
 *	DW_OP_breg7 (rsp) +160, DW_OP_deref
 * and lazy binding (.plt), where 11 of 16 bytes of an entry run before something is pushed:
 *	breg7 +8, breg16 (rip) +0, lit15, and, lit11, ge, lit3, shl, plus
 */
#include "stack/native/rules.h"

#define STACK_MAX 16
#define STEPS_MAX 256

enum {
	OP_DEREF = 0x06,
	OP_CONST1U = 0x08,
	OP_CONST8S = 0x0f,
	OP_CONSTU = 0x10,
	OP_CONSTS = 0x11,
	OP_DUP = 0x12,
	OP_DROP = 0x13,
	OP_OVER = 0x14,
	OP_SWAP = 0x16,
	OP_AND = 0x1a,
	OP_MINUS = 0x1c,
	OP_MUL = 0x1e,
	OP_NEG = 0x1f,
	OP_NOT = 0x20,
	OP_OR = 0x21,
	OP_PLUS = 0x22,
	OP_PLUS_UCONST = 0x23,
	OP_SHL = 0x24,
	OP_SHR = 0x25,
	OP_SHRA = 0x26,
	OP_XOR = 0x27,
	OP_EQ = 0x29,
	OP_GE = 0x2a,
	OP_GT = 0x2b,
	OP_LE = 0x2c,
	OP_LT = 0x2d,
	OP_NE = 0x2e,
	OP_LIT0 = 0x30,
	OP_LIT31 = 0x4f,
	OP_BREG0 = 0x70,
	OP_BREG31 = 0x8f,
	OP_BREGX = 0x92,
	OP_NOP = 0x96,
};

struct stack {
	uint64_t v[STACK_MAX];
	unsigned n;
	bool bad;
};

static void push(struct stack *s, uint64_t value)
{
	if (s->n == STACK_MAX)
		s->bad = true;
	else
		s->v[s->n++] = value;
}

static uint64_t pop(struct stack *s)
{
	if (!s->n) {
		s->bad = true;
		return 0;
	}
	return s->v[--s->n];
}

static void push_register(struct stack *s, const struct rules_machine *m, uint64_t reg, int64_t add)
{
	if (reg >= COLUMNS || !(m->known >> reg & 1))
		s->bad = true;
	else
		push(s, m->registers[reg] + (uint64_t)add);
}

/* Of two numbers; false: it is no such operation. */
static bool binary(uint8_t op, uint64_t a, uint64_t b, uint64_t *ret)
{
	int64_t sa = (int64_t)a, sb = (int64_t)b;

	switch (op) {
	case OP_AND:
		return *ret = a & b, true;
	case OP_OR:
		return *ret = a | b, true;
	case OP_XOR:
		return *ret = a ^ b, true;
	case OP_PLUS:
		return *ret = a + b, true;
	case OP_MINUS:
		return *ret = a - b, true;
	case OP_MUL:
		return *ret = a * b, true;
	case OP_SHL:
		return *ret = b < 64 ? a << b : 0, true;
	case OP_SHR:
		return *ret = b < 64 ? a >> b : 0, true;
	case OP_SHRA:
		return *ret = (uint64_t)(sa >> (b < 64 ? b : 63)), true;
	case OP_EQ:
		return *ret = a == b, true;
	case OP_NE:
		return *ret = a != b, true;
	case OP_GE:
		return *ret = sa >= sb, true;
	case OP_GT:
		return *ret = sa > sb, true;
	case OP_LE:
		return *ret = sa <= sb, true;
	case OP_LT:
		return *ret = sa < sb, true;
	default:
		return false;
	}
}

static uint64_t constant(struct bytes *code, uint8_t op)
{
	size_t size = (size_t)1 << ((op - OP_CONST1U) / 2); /* 1u 1s 2u 2s 4u 4s 8u 8s */

	return (op - OP_CONST1U) % 2 ? (uint64_t)bytes_signed(code, size)
				     : bytes_unsigned(code, size);
}

static void shuffle(struct stack *s, uint8_t op)
{
	uint64_t top = pop(s), below;

	switch (op) {
	case OP_DUP:
		push(s, top);
		push(s, top);
		break;
	case OP_DROP:
		break;
	case OP_OVER:
		below = pop(s);
		push(s, below);
		push(s, top);
		push(s, below);
		break;
	default: /* OP_SWAP */
		below = pop(s);
		push(s, top);
		push(s, below);
	}
}

static void other(struct stack *s, struct bytes *code, uint8_t op)
{
	uint64_t a, b, result;

	b = pop(s);
	if (op == OP_NEG || op == OP_NOT) {
		push(s, op == OP_NEG ? 0 - b : ~b);
		return;
	}
	if (op == OP_PLUS_UCONST) {
		push(s, b + bytes_uleb(code));
		return;
	}
	a = pop(s);
	if (!s->bad && binary(op, a, b, &result))
		push(s, result);
	else
		s->bad = true;
}

static void step(struct stack *s, struct bytes *code, const struct rules_machine *m)
{
	uint8_t op = (uint8_t)bytes_unsigned(code, 1);
	uint64_t value;

	if (op >= OP_LIT0 && op <= OP_LIT31) {
		push(s, op - OP_LIT0);
	} else if (op >= OP_BREG0 && op <= OP_BREG31) {
		push_register(s, m, op - OP_BREG0, bytes_sleb(code));
	} else if (op == OP_BREGX) {
		value = bytes_uleb(code);
		push_register(s, m, value, bytes_sleb(code));
	} else if (op >= OP_CONST1U && op <= OP_CONST8S) {
		push(s, constant(code, op));
	} else if (op == OP_CONSTU) {
		push(s, bytes_uleb(code));
	} else if (op == OP_CONSTS) {
		push(s, (uint64_t)bytes_sleb(code));
	} else if (op == OP_DEREF) {
		value = pop(s);
		if (s->bad || !m->read(m->arg, value, &value))
			s->bad = true;
		else
			push(s, value);
	} else if (op == OP_DUP || op == OP_DROP || op == OP_OVER || op == OP_SWAP) {
		shuffle(s, op);
	} else if (op != OP_NOP) {
		other(s, code, op);
	}
}

bool rules_evaluate(struct bytes code, const struct rules_machine *machine, const uint64_t *first,
		    uint64_t *ret)
{
	struct stack s = { .n = 0 };

	if (first)
		push(&s, *first);
	for (unsigned i = 0; code.p < code.end; i++) {
		step(&s, &code, machine);
		if (s.bad || code.bad || i == STEPS_MAX)
			return false;
	}
	if (!s.n)
		return false;
	*ret = s.v[s.n - 1];
	return true;
}
