/* SPDX-License-Identifier: MIT
 *
 * Private to src/stack/native: what is in a record of perf's.
 */
#ifndef SPOTTER_STACK_NATIVE_SAMPLE_H
#define SPOTTER_STACK_NATIVE_SAMPLE_H

#include "stack/native/native.h"

#define NATIVE_COPY 15360 /* bytes of stack; a multiple of 8. Some 70 frames */
/* Header, ip, pid, tid, time; abi and registers; size, copy, size. */
#define NATIVE_RECORD_MAX (8 + 24 + 8 + 8 * 33 + 8 + NATIVE_COPY + 8)

/* Bits of the registers that are asked for (perf_event_attr.sample_regs_user); 0: not on this machine. */
uint64_t native_sample_registers(void);

/* A record as the kernel wrote it, n bytes: false, it is not what we asked for. With `callers`, registers
 * and stack are in it; known is 0 when they are not all there (a 32-bit program). */
bool native_sample_read(const uint8_t *record, size_t n, bool callers, struct native_sample *ret);
/* The call chain of one without callers, that was read before: how many, at least 1. */
size_t native_sample_chain(const uint8_t *record, uint64_t *addresses, size_t max);

#endif
