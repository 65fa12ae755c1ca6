/* SPDX-License-Identifier: MIT
 *
 * A sample as perf records it (PERF_RECORD_SAMPLE, 8-byte words in the order of perf_event_open(2)):
 *
 *	header, ip, pid and tid, time, then either
 *	n, ips[n]                                       PERF_SAMPLE_CALLCHAIN, or
 *	abi, registers[], size, stack[size], dyn_size   PERF_SAMPLE_REGS_USER and PERF_SAMPLE_STACK_USER
 *
 * Registers come in the order of the kernel's own numbers (asm/perf_regs.h). dyn_size is how much of the
 * copy is one: the stack may end before; there is none when size is 0.
 */
#include "stack/native/sample.h"

#include <linux/perf_event.h>
#include <string.h>

enum {
	WORD_IP = 1,
	WORD_TIME = 3,
	WORD_MORE = 4,
};

/* By the kernel's number: the column of unwind rules, -1: none (not asked for but the pointer). */
#if defined(__x86_64__)
/* ax bx cx dx si di bp sp ip; flags cs ss ds es fs gs are left out; r8-r15 */
static const int8_t columns[] = { 0,  3,  2,  1,  4, 5, 6,  7,  -1, -2, -2, -2,
				  -2, -2, -2, -2, 8, 9, 10, 11, 12, 13, 14, 15 };
enum { COLUMN_SP = 7 };
#elif defined(__aarch64__)
/* x0-x29, lr, sp, pc */
static const int8_t columns[] = { 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
				  11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
				  22, 23, 24, 25, 26, 27, 28, 29, 30, 31, -1 };
enum { COLUMN_SP = 31 };
#else
static const int8_t columns[] = { -2 };
enum { COLUMN_SP = 0 };
#endif

uint64_t native_sample_registers(void)
{
	uint64_t bits = 0;

	for (size_t i = 0; i < sizeof(columns); i++)
		bits |= (uint64_t)(columns[i] > -2) << i;
	return bits;
}

static uint64_t word(const uint8_t *record, size_t i)
{
	uint64_t v;

	memcpy(&v, record + 8 * i, 8);
	return v;
}

/* Registers, from word i on: how many words. */
static size_t read_registers(const uint8_t *record, size_t i, struct native_sample *ret)
{
	size_t n = 0;

	for (size_t k = 0; k < sizeof(columns); k++) {
		if (columns[k] == -2)
			continue;
		if (columns[k] >= 0) {
			ret->registers[columns[k]] = word(record, i + n);
			ret->known |= 1ull << columns[k];
		}
		n++;
	}
	return n;
}

static void read_callers(const uint8_t *record, size_t words, struct native_sample *ret)
{
	size_t registers = (size_t)__builtin_popcountll(native_sample_registers());
	size_t i = WORD_MORE + 1 + registers;
	uint64_t size, real;

	if (!registers || words < i + 2 || word(record, WORD_MORE) != PERF_SAMPLE_REGS_ABI_64)
		return;
	size = word(record, i);
	if (!size || size % 8 || size / 8 > words - i - 2)
		return;
	real = word(record, i + 1 + size / 8);
	(void)read_registers(record, WORD_MORE + 1, ret);
	ret->sp = ret->registers[COLUMN_SP];
	ret->stack = record + 8 * (i + 1);
	ret->stack_n = (size_t)(real < size ? real : size);
}

bool native_sample_read(const uint8_t *record, size_t n, bool callers, struct native_sample *ret)
{
	size_t words = n / 8;

	if (words <= WORD_MORE)
		return false;
	*ret = (struct native_sample){ .pc = word(record, WORD_IP),
				       .ns = (int64_t)word(record, WORD_TIME) };
	if (callers)
		read_callers(record, words, ret);
	else if (word(record, WORD_MORE) > words - WORD_MORE - 1)
		return false;
	return true;
}

size_t native_sample_chain(const uint8_t *record, uint64_t *addresses, size_t max)
{
	uint64_t chain = word(record, WORD_MORE), ip;
	size_t n = 0;

	addresses[n++] = word(record, WORD_IP);
	for (uint64_t i = 0; i < chain && n < max; i++) {
		ip = word(record, WORD_MORE + 1 + i);
		/* Marks are the largest numbers there are; the chain begins with the pointer itself. */
		if (ip >= (uint64_t)PERF_CONTEXT_MAX || ip == 0 || (n == 1 && ip == addresses[0]))
			continue;
		addresses[n++] = ip;
	}
	return n;
}
