/* SPDX-License-Identifier: MIT
 *
 * What strangers send to the agent: the first byte says to whom. Environments of processes, requests, headers.
 */
#include "fuzz.h"

#include "agent/environ.h"
#include "agent/http.h"
#include "sink/exposition.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct http_head head;
	struct job_env env;
	char *text;

	if (!size || !(text = malloc(size)))
		return 0;
	/* A copy of its own length: what is read beyond it is found. */
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	switch (data[0] % 3) {
	case 0:
		job_env_read(text, size - 1, &env);
		if (env.rank < -1 || strlen(env.run_id) >= sizeof(env.run_id))
			abort();
		break;
	case 1:
		(void)http_parse(text, size - 1, &head);
		(void)http_host_is_local(head.host);
		break;
	default:
		(void)exposition_wanted(text);
	}
	free(text);
	return 0;
}
