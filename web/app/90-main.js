// SPDX-License-Identifier: MIT
// Puts the page together: once from the story in the file, again with each one a server sends.

let current = null;

function draw(story) {
	const main = document.getElementById("app");
	current = story;
	document.title = `${show(story.verdict.run?.name || "run")}: ${show(headline(story.verdict).title)} – spotter`;
	for (const c of components) {
		try {
			drawComponent(c, main, story);
		} catch (error) { // one section that cannot be drawn must not take the others with it
			console.error(error);
			add(main, absent(`This part could not be drawn (${c.id}): ${error.message}`));
		}
	}
}

// page, of a dashboard: { home: where all runs are, foot: what it is served by }
function mount(story, page) {
	let main = document.getElementById("app");
	if (!main)
		document.body.append(main = h("main", { id: "app", tabindex: "-1" }));
	empty(main);
	const follow = makeHead(() => current, page?.home);
	setTheme(themeNow());
	draw(story);
	follow();
	add(document.body, h("footer", null, "Made by spotter ", story.spotter || "", " from the record ",
		h("code", null, story.verdict.run?.id || "?"), ". ", page?.foot || "This file needs no network and asks for none."));
	goToHash(); // the browser looked for it before it was there
	addEventListener("hashchange", goToHash);
}

function goToHash() {
	const aim = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
	if (!aim)
		return;
	if (aim.matches("details"))
		aim.open = true;
	aim.scrollIntoView();
}

function update(story) {
	if (current)
		draw(story);
	else
		mount(story);
}

// For the dashboard's own script (web/serve).
const kit = { h, add, name, show, list, finite, button, toast, ink, themeButton, setTheme, themeNow, headline, howItEnded, moment,
	sentence, plural, bytes, seconds, percent, cores, stepRate, gainWords, NBSP };
window.spotter = { mount, update, kit };

const source = document.getElementById("story");
if (source && source.textContent.trim())
	mount(JSON.parse(source.textContent));
