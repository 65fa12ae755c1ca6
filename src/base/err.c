/* SPDX-License-Identifier: MIT */
#include "base/err.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int err_set(struct err *e, int code, const char *fmt, ...)
{
	va_list ap;

	if (!e || e->code)
		return code;
	e->code = code;
	e->hint[0] = '\0';
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	return code;
}

void err_hint(struct err *e, const char *fmt, ...)
{
	va_list ap;

	if (!e || e->hint[0])
		return;
	va_start(ap, fmt);
	vsnprintf(e->hint, sizeof(e->hint), fmt, ap);
	va_end(ap);
}

const char *err_name(int code, char *buf, unsigned long size)
{
	char local[128];
	const char *s = strerror_r(code < 0 ? -code : code, local, sizeof(local));

	snprintf(buf, size, "%s", s);
	if (buf[0] && buf[1] && !isupper((unsigned char)buf[1]))
		buf[0] = (char)tolower((unsigned char)buf[0]);
	return buf;
}
