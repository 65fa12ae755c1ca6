/* SPDX-License-Identifier: MIT
 *
 * What S, R and the program-to-be say to each other: a SOCK_SEQPACKET pair, so that a message is
 * whole or not there, several may write, and either side sees when the other is gone. Sending
 * never blocks and never raises SIGPIPE: nobody may be held up by somebody who is stopped. What
 * was sent before its sender died is still received.
 */
#ifndef SPOTTER_LAUNCH_CHANNEL_H
#define SPOTTER_LAUNCH_CHANNEL_H

#include <stddef.h>
#include <stdint.h>

enum channel_kind {
	CHANNEL_STARTED = 1, /* the program before its exec: value is its pid; fd a pidfd or -1 */
	CHANNEL_FAILED,      /* the program: value is the errno of exec */
	CHANNEL_BROKEN,      /* R: value is why it could not even fork the program, an errno */
	CHANNEL_EXITED,      /* R: value is the program's status as of waitpid */
	CHANNEL_ENDED,       /* R: the run is over (with wait_orphans: the last one has ended) */
	CHANNEL_WORDS,       /* R: text for the user */
	CHANNEL_DONE,        /* R: its body has returned, no more words */
	CHANNEL_CLEAR,       /* S: forget that you got the signal `value` */
	CHANNEL_CLEARED,     /* R: forgotten */
	CHANNEL_LEAVE,       /* S: wait for orphans no longer */
};

enum { CHANNEL_TEXT_MAX = 4096 }; /* bytes of text in one message */

struct channel_msg {
	enum channel_kind kind;
	int value;
	int fd; /* -1, or a descriptor that now is the receiver's */
	size_t n;
	char text[CHANNEL_TEXT_MAX];
};

/* Both ends, close-on-exec: 0 or -errno. */
int channel_open(int ret_ends[2]);
/* 0; -EAGAIN when the other side does not read, -EPIPE when it is gone. fd < 0: none to pass. */
int channel_send(int end, enum channel_kind kind, int value, int fd);
/* At most CHANNEL_TEXT_MAX bytes of words. */
int channel_send_words(int end, const char *text, size_t n);
/* 1 with a message, 0 when the other side is gone and all has been read, -EAGAIN when there is
 * nothing now. A message that is not one of ours (-EBADMSG) has been taken off. */
int channel_recv(int end, struct channel_msg *ret);

#endif
