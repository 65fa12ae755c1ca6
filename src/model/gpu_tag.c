/* SPDX-License-Identifier: MIT */
#include "model/gpu_tag.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>

void gpu_tag_write(const struct gpu_tag *t, char *ret, size_t size)
{
	snprintf(
	    ret, size,
	    "vendor=%s\tuuid=%s\tpci=%s\tdriver=%s\truntime=%s\tmode=%s\tprofile=%s\tflags=%s%s%s",
	    t->vendor, t->uuid, t->pci, t->driver, t->runtime, t->mode, t->profile,
	    t->simulated ? "s" : "", t->unified ? "u" : "", t->partitioned ? "p" : "");
}

/* The text after "KEY=" up to the next tab; "" when there is none. */
static void take(const char *text, const char *key, char *ret, size_t size)
{
	size_t k = strlen(key);

	ret[0] = '\0';
	for (const char *p = text; p; p = strchr(p, '\t')) {
		char field[128];
		size_t n;

		if (*p == '\t')
			p++;
		if (strncmp(p, key, k) != 0 || p[k] != '=')
			continue;
		p += k + 1;
		n = strcspn(p, "\t");
		if (n >= sizeof(field))
			n = sizeof(field) - 1;
		memcpy(field, p, n);
		field[n] = '\0';
		text_safe_copy(ret, size, field);
		return;
	}
}

void gpu_tag_read(const char *text, struct gpu_tag *ret)
{
	char flags[8];

	*ret = (struct gpu_tag){ 0 };
	take(text, "vendor", ret->vendor, sizeof(ret->vendor));
	take(text, "uuid", ret->uuid, sizeof(ret->uuid));
	take(text, "pci", ret->pci, sizeof(ret->pci));
	take(text, "driver", ret->driver, sizeof(ret->driver));
	take(text, "runtime", ret->runtime, sizeof(ret->runtime));
	take(text, "mode", ret->mode, sizeof(ret->mode));
	take(text, "profile", ret->profile, sizeof(ret->profile));
	take(text, "flags", flags, sizeof(flags));
	ret->simulated = strchr(flags, 's');
	ret->unified = strchr(flags, 'u');
	ret->partitioned = strchr(flags, 'p');
}
