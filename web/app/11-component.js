// SPDX-License-Identifier: MIT
// A page is a list of components, in the order of the files of this folder. A component draws one section from the
// story; drawn again only when what it uses has changed, which a live page does every second.

const components = [];

// uses: story -> what it depends on. refresh, where there is one: (body, story) -> true when it could take the new
// story without drawing again.
function component(id, title, draw, uses, refresh) {
	components.push({ id, title, draw, uses, refresh, seen: null });
}

function drawComponent(c, main, story) {
	const seen = JSON.stringify(c.uses(story));
	let section = document.getElementById(c.id);
	if (section && seen === c.seen)
		return;
	c.seen = seen;
	if (!section) {
		section = h("section", { id: c.id, "aria-labelledby": c.title && c.id + "-title" },
			c.title && h("h2", { id: c.id + "-title" }, c.title), h("div.body"));
		main.append(section);
	}
	const body = section.querySelector(":scope > .body");
	if (body.firstChild && c.refresh?.(body, story))
		return;
	redraw(body, () => c.draw(body, story));
	section.hidden = !body.firstChild;
}

// Colours of drawings that CSS does not reach. Read once for each theme.
const ink = {
	cache: {},
	of(variable) {
		return this.cache[variable] ||= getComputedStyle(document.documentElement).getPropertyValue(variable).trim() || "#888888";
	},
	// "#rrggbb" with an opacity of 0..1
	thin(variable, opacity) {
		return this.of(variable) + Math.round(opacity * 255).toString(16).padStart(2, "0");
	},
};
