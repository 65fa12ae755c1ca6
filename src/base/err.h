/* SPDX-License-Identifier: MIT
 *
 * An error as a person will read it: what happened and why (`text`), and what to do (`hint`).
 * Functions whose failure a *user* caused (files, options, processes that are gone) take a
 * `struct err *` as last argument; everything else returns a plain negative errno.
 * Text is lower case, without a full stop, with the subject in single quotes.
 */
#ifndef SPOTTER_BASE_ERR_H
#define SPOTTER_BASE_ERR_H

struct err {
	int code; /* negative errno, 0 when nothing is wrong */
	char text[480];
	char hint[240];
};

/* Sets text and code and returns the code: `return err_set(e, -ENOENT, "no run '%s'", name);`
 * `e` may be NULL. The first error wins: a later one does not overwrite it. */
int err_set(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Adds what to do about it. */
void err_hint(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* strerror without its capital and without a shared buffer ("permission denied"). */
const char *err_name(int code, char *buf, unsigned long size);

#endif
