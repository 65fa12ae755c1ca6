/* SPDX-License-Identifier: MIT */
#include "tui/view.h"

const struct view *const views[] = {
	&overview_view, &processes_view, &functions_view, &why_view, &help_view, NULL,
};

const struct view *view_by_key(uint32_t key)
{
	for (size_t i = 0; views[i]; i++)
		if ((uint32_t)views[i]->key == key || (key == '1' + i && key <= '9'))
			return views[i];
	return NULL;
}
