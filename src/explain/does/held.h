/* SPDX-License-Identifier: MIT
 *
 * What a piece of Python says of training and of asking, by the words people have for it.
 */
#ifndef SPOTTER_EXPLAIN_DOES_HELD_H
#define SPOTTER_EXPLAIN_DOES_HELD_H

#include "explain/keeps/words.h"

/* Names something that is kept for asking only: val_loader, X_test, dev_set, testloader. Strings must be gone. */
bool text_names_held_out(const char *text, size_t n);
/* Calls something that trains: train(...), self.fit_fold(...), run_epoch(...). Setting the training mode is none. */
bool text_calls_training(struct span s);
/* A line as it was written hands what was held out to a function that does not train: score(net, X_val, y_val). */
bool line_asks_held_out(const char *line);
/* A line as it was written makes the model learn: loss.backward(), opt.step(). */
bool line_learns(const char *line);

#endif
