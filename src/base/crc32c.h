/* SPDX-License-Identifier: MIT
 *
 * CRC-32C (Castagnoli, reflected): what event files of TensorBoard and the queue of what is to be sent carry.
 */
#ifndef SPOTTER_BASE_CRC32C_H
#define SPOTTER_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Of n bytes behind those that gave `before`; 0 to begin with. "123456789" gives 0xe3069283. */
uint32_t crc32c(uint32_t before, const void *p, size_t n);

#endif
