/* SPDX-License-Identifier: MIT
 *
 * The instructions of CIEs and FDEs. A function that pushes rbx has
 *	DW_CFA_advance_loc 1, DW_CFA_def_cfa_offset 16, DW_CFA_offset rbx at CFA-16
 * which in bytes is 41 0e 10 83 02.
 */
#include "stack/native/rules.h"

#define STEPS_MAX 65536
#define REMEMBER  8 /* states kept by DW_CFA_remember_state; compilers nest 1 or 2 */

enum {
	CFA_NOP = 0x00,
	CFA_SET_LOC = 0x01,
	CFA_ADVANCE1 = 0x02,
	CFA_ADVANCE2 = 0x03,
	CFA_ADVANCE4 = 0x04,
	CFA_OFFSET_EXTENDED = 0x05,
	CFA_RESTORE_EXTENDED = 0x06,
	CFA_UNDEFINED = 0x07,
	CFA_SAME_VALUE = 0x08,
	CFA_REGISTER = 0x09,
	CFA_REMEMBER = 0x0a,
	CFA_RESTORE_STATE = 0x0b,
	CFA_DEF_CFA = 0x0c,
	CFA_DEF_CFA_REGISTER = 0x0d,
	CFA_DEF_CFA_OFFSET = 0x0e,
	CFA_DEF_CFA_EXPRESSION = 0x0f,
	CFA_EXPRESSION = 0x10,
	CFA_OFFSET_EXTENDED_SF = 0x11,
	CFA_DEF_CFA_SF = 0x12,
	CFA_DEF_CFA_OFFSET_SF = 0x13,
	CFA_VAL_OFFSET = 0x14,
	CFA_VAL_OFFSET_SF = 0x15,
	CFA_VAL_EXPRESSION = 0x16,
	CFA_AARCH64_NEGATE_RA_STATE = 0x2d,
	CFA_GNU_ARGS_SIZE = 0x2e,
	CFA_HIGH = 0xc0,
	CFA_HIGH_ADVANCE = 0x40,
	CFA_HIGH_OFFSET = 0x80,
	CFA_HIGH_RESTORE = 0xc0,
};

struct run {
	struct bytes code;
	const struct rules_common *common;
	const struct native_row *initial;
	struct native_row *row, kept[REMEMBER];
	unsigned kept_n;
	uint64_t location;
};

/* Rules of registers that have no column (xmm, SVE) are read over. */
static void set(struct run *r, uint64_t column, struct rule rule)
{
	if (column < COLUMNS)
		r->row->of[column] = rule;
}

static void restore(struct run *r, uint64_t column)
{
	if (!r->initial)
		r->code.bad = true; /* not in a CIE */
	else if (column < COLUMNS)
		r->row->of[column] = r->initial->of[column];
}

static struct rule at_offset(const struct run *r, enum rule_kind kind, uint64_t factored)
{
	uint64_t offset = factored * (uint64_t)r->common->data_align;

	return (struct rule){ .kind = kind, .value = (int64_t)offset };
}

static struct rule expression(struct run *r, enum rule_kind kind)
{
	uint64_t n = bytes_uleb(&r->code);
	struct rule rule = { .kind = kind, .value = (int64_t)r->code.at, .extra = (int32_t)n };

	if (n > 1024)
		r->code.bad = true;
	bytes_skip(&r->code, n);
	return rule;
}

static void cfa_is(struct run *r, uint64_t reg, int64_t offset)
{
	if (reg >= COLUMNS || offset > INT32_MAX || offset < INT32_MIN)
		r->code.bad = true;
	else
		r->row->cfa = (struct rule){ .kind = RULE_REGISTER,
					     .value = (int64_t)reg,
					     .extra = (int32_t)offset };
}

static void cfa_adjust(struct run *r, bool new_register, int64_t value)
{
	if (r->row->cfa.kind != RULE_REGISTER) {
		r->code.bad = true;
		return;
	}
	if (new_register)
		cfa_is(r, (uint64_t)value, r->row->cfa.extra);
	else
		cfa_is(r, (uint64_t)r->row->cfa.value, value);
}

static int64_t scaled(struct run *r)
{
	return (int64_t)((uint64_t)bytes_sleb(&r->code) * (uint64_t)r->common->data_align);
}

static void advance(struct run *r, uint64_t delta)
{
	r->location += delta * r->common->code_align;
}

static void remember(struct run *r)
{
	if (r->kept_n == REMEMBER)
		r->code.bad = true;
	else
		r->kept[r->kept_n++] = *r->row;
}

static void recall(struct run *r)
{
	if (!r->kept_n)
		r->code.bad = true;
	else
		*r->row = r->kept[--r->kept_n];
}

/* Those that say where the frame begins; false: it is another. */
static bool run_cfa(struct run *r, uint8_t op)
{
	uint64_t reg;

	switch (op) {
	case CFA_DEF_CFA:
		reg = bytes_uleb(&r->code);
		cfa_is(r, reg, (int64_t)bytes_uleb(&r->code));
		return true;
	case CFA_DEF_CFA_SF:
		reg = bytes_uleb(&r->code);
		cfa_is(r, reg, scaled(r));
		return true;
	case CFA_DEF_CFA_REGISTER:
		cfa_adjust(r, true, (int64_t)bytes_uleb(&r->code));
		return true;
	case CFA_DEF_CFA_OFFSET:
		cfa_adjust(r, false, (int64_t)bytes_uleb(&r->code));
		return true;
	case CFA_DEF_CFA_OFFSET_SF:
		cfa_adjust(r, false, scaled(r));
		return true;
	case CFA_DEF_CFA_EXPRESSION:
		r->row->cfa = expression(r, RULE_VAL_EXPRESSION);
		return true;
	default:
		return false;
	}
}

/* Those that say where a register is; false: it is another. */
static bool run_register(struct run *r, uint8_t op)
{
	uint64_t column;

	if (op < CFA_OFFSET_EXTENDED || op == CFA_REMEMBER || op == CFA_RESTORE_STATE ||
	    op > CFA_VAL_EXPRESSION)
		return false;
	column = bytes_uleb(&r->code);
	switch (op) {
	case CFA_OFFSET_EXTENDED:
		set(r, column, at_offset(r, RULE_OFFSET, bytes_uleb(&r->code)));
		return true;
	case CFA_OFFSET_EXTENDED_SF:
		set(r, column, at_offset(r, RULE_OFFSET, (uint64_t)bytes_sleb(&r->code)));
		return true;
	case CFA_VAL_OFFSET:
		set(r, column, at_offset(r, RULE_VAL_OFFSET, bytes_uleb(&r->code)));
		return true;
	case CFA_VAL_OFFSET_SF:
		set(r, column, at_offset(r, RULE_VAL_OFFSET, (uint64_t)bytes_sleb(&r->code)));
		return true;
	case CFA_RESTORE_EXTENDED:
		restore(r, column);
		return true;
	case CFA_UNDEFINED:
		set(r, column, (struct rule){ .kind = RULE_UNDEFINED });
		return true;
	case CFA_SAME_VALUE:
		set(r, column, (struct rule){ .kind = RULE_SAME });
		return true;
	case CFA_REGISTER:
		set(r, column,
		    (struct rule){ .kind = RULE_REGISTER,
				   .value = (int64_t)(bytes_uleb(&r->code) & 0xffff) });
		return true;
	case CFA_EXPRESSION:
		set(r, column, expression(r, RULE_EXPRESSION));
		return true;
	case CFA_VAL_EXPRESSION:
		set(r, column, expression(r, RULE_VAL_EXPRESSION));
		return true;
	default:
		return false;
	}
}

static void run_other(struct run *r, uint8_t op)
{
	switch (op) {
	case CFA_NOP:
		break;
	case CFA_SET_LOC:
		r->location = bytes_pointer(&r->code, r->common->pointer_encoding);
		break;
	case CFA_ADVANCE1:
		advance(r, bytes_unsigned(&r->code, 1));
		break;
	case CFA_ADVANCE2:
		advance(r, bytes_unsigned(&r->code, 2));
		break;
	case CFA_ADVANCE4:
		advance(r, bytes_unsigned(&r->code, 4));
		break;
	case CFA_REMEMBER:
		remember(r);
		break;
	case CFA_RESTORE_STATE:
		recall(r);
		break;
	case CFA_GNU_ARGS_SIZE: /* of use when an exception is thrown */
		(void)bytes_uleb(&r->code);
		break;
	case CFA_AARCH64_NEGATE_RA_STATE: /* signed return addresses are stripped in any case */
		r->code.bad = !r->common->aarch64;
		break;
	default:
		r->code.bad = true;
	}
}

static void run_one(struct run *r)
{
	uint8_t op = (uint8_t)bytes_unsigned(&r->code, 1), low = op & 0x3f;

	switch (op & CFA_HIGH) {
	case CFA_HIGH_ADVANCE:
		advance(r, low);
		break;
	case CFA_HIGH_OFFSET:
		set(r, low, at_offset(r, RULE_OFFSET, bytes_uleb(&r->code)));
		break;
	case CFA_HIGH_RESTORE:
		restore(r, low);
		break;
	default:
		if (!run_cfa(r, op) && !run_register(r, op))
			run_other(r, op);
	}
}

bool rules_run(struct bytes code, const struct rules_common *common, uint64_t location, uint64_t pc,
	       const struct native_row *initial, struct native_row *row)
{
	struct run r;

	r.code = code;
	r.common = common;
	r.initial = initial;
	r.row = row;
	r.kept_n = 0;
	r.location = location;
	for (unsigned step = 0; r.code.p < r.code.end; step++) {
		bool advances = (*r.code.p & CFA_HIGH) == CFA_HIGH_ADVANCE ||
				(*r.code.p >= CFA_SET_LOC && *r.code.p <= CFA_ADVANCE4);

		run_one(&r);
		if (r.code.bad || step == STEPS_MAX)
			return false;
		if (advances && r.location > pc)
			return true;
	}
	return true;
}
