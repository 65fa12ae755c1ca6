/* SPDX-License-Identifier: MIT */
#include "native_runs.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define PASTE(a, b)  a##b
#define PASTE2(a, b) PASTE(a, b)
#define NAME(x)      PASTE2(PREFIX, x)
#define TEXT(x)      #x
#define TEXT2(x)     TEXT(x)
#define EXPORTED     __attribute__((visibility("default"), noinline))
/* Behind the last call of a function: it is no jump then. */
#define STAY __asm__ volatile("" ::: "memory")

void NAME(run)(enum run how);
unsigned NAME(spin)(unsigned rounds);
void NAME(inner)(unsigned rounds);
void NAME(middle)(unsigned rounds);
void NAME(array)(unsigned rounds);
void NAME(tail)(unsigned rounds);
void NAME(sort)(unsigned rounds);
int NAME(compare)(const void *a, const void *b);
void NAME(memory)(unsigned rounds);
void NAME(handler)(int number);
void NAME(signals)(unsigned rounds);
void NAME(big)(unsigned rounds);
void NAME(lie)(unsigned rounds);
void NAME(outer)(enum run how);

EXPORTED unsigned NAME(spin)(unsigned rounds)
{
	volatile unsigned x = 1;

	for (unsigned i = 0; i < rounds; i++)
		x = x * 1103515245u + i;
	return x;
}

EXPORTED void NAME(inner)(unsigned rounds)
{
	for (;;)
		NAME(spin)(rounds);
}

EXPORTED void NAME(middle)(unsigned rounds)
{
	NAME(inner)(rounds);
	STAY;
}

EXPORTED void NAME(array)(unsigned rounds)
{
	char *room = __builtin_alloca(100 + (rounds & 63));

	memset(room, 1, 100);
	__asm__ volatile("" ::"r"(room) : "memory");
	NAME(inner)(rounds);
	__asm__ volatile("" ::"r"(room) : "memory");
}

/* clang has no such attribute, and jumps nowhere: -fno-optimize-sibling-calls. */
#ifndef __clang__
__attribute__((optimize("optimize-sibling-calls")))
#endif
EXPORTED void
NAME(tail)(unsigned rounds)
{
	NAME(inner)(rounds + 1);
}

EXPORTED int NAME(compare)(const void *a, const void *b)
{
	const char *x = a, *y = b;

	NAME(spin)(1000);
	return (*x > *y) - (*x < *y);
}

EXPORTED void NAME(sort)(unsigned rounds)
{
	char room[64];

	for (;;) {
		for (unsigned i = 0; i < sizeof(room); i++)
			room[i] = (char)(i * 37 + rounds);
		qsort(room, sizeof(room), 1, NAME(compare));
	}
}

EXPORTED void NAME(memory)(unsigned rounds)
{
	static char room[1 << 16];

	for (;;) {
		memset(room, (int)rounds, sizeof(room) - (rounds & 63));
		rounds++;
		__asm__ volatile("" ::"r"(room) : "memory");
	}
}

EXPORTED void NAME(handler)(int number)
{
	for (;;)
		NAME(spin)((unsigned)number * 100);
}

EXPORTED void NAME(signals)(unsigned rounds)
{
	struct sigaction a = { .sa_handler = NAME(handler) };

	(void)rounds;
	sigaction(OWN_SIGNAL, &a, NULL);
	pthread_kill(pthread_self(), OWN_SIGNAL);
	STAY;
}

EXPORTED void NAME(big)(unsigned rounds)
{
	char room[1 << 16];

	memset(room, 1, sizeof(room));
	__asm__ volatile("" ::"r"(room) : "memory");
	NAME(inner)(rounds);
	__asm__ volatile("" ::"r"(room) : "memory");
}

/* Says that its caller's address is on top of the stack, where in truth an address behind a call of
 * another function is: as a word that was left there. */
#ifdef __x86_64__
__asm__(
    ".text\n"
    ".globl " TEXT2(
	PREFIX) "lie\n"
		".type " TEXT2(PREFIX) "lie, @function\n" TEXT2(
		    PREFIX) "lie:\n"
			    "	.cfi_startproc\n"
			    "	leaq	1f(%rip), %rax\n"
			    "	pushq	%rax\n"
			    "2:	jmp	2b\n"
			    "	.cfi_endproc\n"
			    ".size " TEXT2(PREFIX) "lie, . - " TEXT2(
				PREFIX) "lie\n"
					".globl " TEXT2(
					    PREFIX) "innocent\n"
						    ".type " TEXT2(
							PREFIX) "innocent, "
								"@function\n" TEXT2(
								    PREFIX) "innocent:\n"
									    "	."
									    "cfi_"
									    "startproc\n"
									    "	cal"
									    "l	" TEXT2(
										PREFIX) "spin@PLT\n"
											"1:	"
											"ret\n"
											"	."
											"cfi_"
											"endproc\n"
											".size"
											" " TEXT2(PREFIX) "innocent, . - " TEXT2(
											    PREFIX) "innocent\n");
#else
EXPORTED void NAME(lie)(unsigned rounds)
{
	for (;;)
		rounds++;
}
#endif

EXPORTED void NAME(outer)(enum run how)
{
	static void (*const all[])(unsigned) = {
		[RUN_CHAIN] = NAME(middle),  [RUN_ARRAY] = NAME(array),
		[RUN_TAIL] = NAME(tail),     [RUN_SORT] = NAME(sort),
		[RUN_MEMORY] = NAME(memory), [RUN_SIGNAL] = NAME(signals),
		[RUN_BIG] = NAME(big),       [RUN_LIE] = NAME(lie),
	};

	all[how](3000);
	STAY;
}

EXPORTED void NAME(run)(enum run how)
{
	NAME(outer)(how);
	STAY;
}
