/* SPDX-License-Identifier: MIT
 *
 * Unwind rules as DWARF has them (DWARF 4, 6.4; LSB's .eh_frame): at a program counter, where the
 * caller's frame begins (CFA) and where the callee kept the caller's registers.
 */
#ifndef SPOTTER_STACK_NATIVE_RULES_H
#define SPOTTER_STACK_NATIVE_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COLUMNS 33 /* x86_64 has 17 (16: return address), aarch64 x0-x30 and sp */

enum rule_kind {
	RULE_SAME, /* nothing said: as in the callee */
	RULE_UNDEFINED,
	RULE_OFFSET,     /* at CFA + value */
	RULE_VAL_OFFSET, /* is CFA + value */
	RULE_REGISTER,   /* in register `value`; for the CFA: plus `extra` */
	RULE_EXPRESSION, /* at what the expression gives; it is at `value`, `extra` bytes long */
	RULE_VAL_EXPRESSION,
};

struct rule {
	int64_t value;
	int32_t extra;
	enum rule_kind kind : 8;
};

struct native_row {
	struct rule cfa; /* RULE_REGISTER or RULE_VAL_EXPRESSION */
	struct rule of[COLUMNS];
	uint8_t return_column;
	bool signal; /* a frame that the kernel made: its caller was interrupted, not calling */
};

/* Bytes of a table, and where in the target they are. Nothing is read past `end`; a read that would
 * be sets `bad`, and gives 0. */
struct bytes {
	const uint8_t *p, *end;
	uint64_t at; /* address of p */
	bool bad;
};

uint64_t bytes_unsigned(struct bytes *b, size_t size);
int64_t bytes_signed(struct bytes *b, size_t size);
uint64_t bytes_uleb(struct bytes *b);
int64_t bytes_sleb(struct bytes *b);
void bytes_skip(struct bytes *b, uint64_t n);
/* A pointer in one of the encodings of .eh_frame (DW_EH_PE_*): absolute or relative to itself. */
uint64_t bytes_pointer(struct bytes *b, uint8_t encoding);

/* What a CIE says of all its functions. */
struct rules_common {
	uint64_t code_align;
	int64_t data_align;
	uint8_t return_column, pointer_encoding;
	bool signal, augmented;
	bool aarch64;
};

/* Runs the instructions from the state in `row` until the location passes pc. `initial`: the row
 * that DW_CFA_restore goes back to. False when there is something we do not know. */
bool rules_run(struct bytes code, const struct rules_common *common, uint64_t location, uint64_t pc,
	       const struct native_row *initial, struct native_row *row);

/* Evaluates an expression: registers by number, memory by `read`. False: unknown, or cannot. */
struct rules_machine {
	const uint64_t *registers;
	uint64_t known; /* bit per register */
	bool (*read)(void *arg, uint64_t at, uint64_t *ret);
	void *arg;
};
bool rules_evaluate(struct bytes code, const struct rules_machine *machine, const uint64_t *first,
		    uint64_t *ret);

#endif
