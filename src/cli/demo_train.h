/* SPDX-License-Identifier: MIT
 *
 * examples/demo_train.py, carried along in the program (tools/embed.py writes the definition).
 */
#ifndef SPOTTER_CLI_DEMO_TRAIN_H
#define SPOTTER_CLI_DEMO_TRAIN_H

#include <stddef.h>

extern const unsigned char demo_train[];
extern const size_t demo_train_size;

#endif
