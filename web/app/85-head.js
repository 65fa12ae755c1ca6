// SPDX-License-Identifier: MIT
// The bar at the top: where one is, copy as Markdown, light or dark.

const DARK = matchMedia("(prefers-color-scheme: dark)");
const PRINTED = matchMedia("print");
const PAPER = 688; // pixels: A4 without its margins. Asked before the sheet is laid out, so it cannot be measured

// A page opened from a file may be refused its storage.
function remembered(value) {
	try {
		if (value === undefined)
			return localStorage.getItem("spotter-theme");
		localStorage.setItem("spotter-theme", value);
	} catch {
		// then it is not remembered
	}
	return null;
}

function setTheme(theme) {
	document.documentElement.dataset.theme = theme;
	ink.cache = {};
	repaintCharts();
	const toggle = document.getElementById("theme");
	if (toggle) {
		toggle.textContent = theme === "dark" ? "Light" : "Dark";
		toggle.setAttribute("aria-label", `Switch to ${theme === "dark" ? "light" : "dark"} colours`);
	}
}

function themeNow() {
	const chosen = remembered();
	return chosen === "dark" || chosen === "light" ? chosen : DARK.matches ? "dark" : "light";
}

// On paper: light, everything unfolded, charts as wide as the sheet.
function toPaper(printing) {
	for (const details of document.querySelectorAll("main details")) {
		if (printing && !details.open)
			details.dataset.paper = "";
		if (printing || details.dataset.paper !== undefined)
			details.open = printing;
		if (!printing)
			delete details.dataset.paper;
	}
	ink.cache = {};
	resizeCharts(printing ? PAPER : undefined);
	repaintCharts();
}

// Which section is being read.
function followScroll(nav, sections) {
	const seen = new Set(), links = new Map([...nav.querySelectorAll("a")].map((a) => [a.hash.slice(1), a]));
	const observer = new IntersectionObserver((changes) => {
		for (const { target, isIntersecting } of changes)
			seen[isIntersecting ? "add" : "delete"](target.id);
		const first = sections.find((id) => seen.has(id));
		for (const [id, a] of links)
			if (id === first)
				a.setAttribute("aria-current", "true");
			else
				a.removeAttribute("aria-current");
	}, { rootMargin: "-120px 0px -55% 0px" });
	sections.forEach((id) => document.getElementById(id) && observer.observe(document.getElementById(id)));
}

function themeButton() {
	DARK.addEventListener("change", () => setTheme(themeNow()));
	return button("", () => {
		const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
		remembered(theme);
		setTheme(theme);
	}, { id: "theme" });
}

// home: of a dashboard, where all runs are.
function makeHead(getStory, home) {
	const titles = components.filter((c) => c.title);
	const short = { time: "Time", cpu: "CPU", steps: "Steps", machine: "Machine" };
	const nav = h("nav", { "aria-label": "Sections" }, titles.map((c) => h("a", { href: "#" + c.id }, short[c.id] || c.title)));
	const brand = h("a.brand", { href: home || "#verdict", "aria-label": home ? "Spotter: all runs" : "Spotter: the verdict" },
		"spotter");
	const head = h("header.bar", null, brand, nav,
		h("div.actions", null,
			button("Copy as Markdown", () => copyText(getStory().markdown || "", "Copied the verdict as Markdown"),
				{ id: "copy-markdown" }),
			themeButton()));
	document.body.prepend(h("a.skip", { href: "#verdict" }, "To the verdict"), head);
	PRINTED.addEventListener("change", () => toPaper(PRINTED.matches));
	return () => followScroll(nav, titles.map((c) => c.id));
}
