// SPDX-License-Identifier: MIT
// Elements. Whatever a record says reaches the page as text only: there is no innerHTML anywhere in this folder.

// Control characters and those that turn the reading direction: a name could pretend to be another one with them.
// Tab and line feed stay.
const UNSEEN =
	/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

function show(text) {
	return String(text).replace(UNSEEN, "\ufffd");
}

function add(parent, ...children) {
	for (const child of children.flat(Infinity)) {
		if (child === undefined || child === null || child === false || child === "")
			continue;
		parent.append(child instanceof Node ? child : show(child));
	}
	return parent;
}

// h("p.small", { title: "...", onclick: f, vars: { "--c": "red" } }, "text", element, [more]). The names of attributes
// and the tag are ours, never a record's.
function h(what, attributes, ...children) {
	const [tag, ...classes] = what.split(".");
	const element = document.createElement(tag);
	if (classes.length)
		element.className = classes.join(" ");
	for (const [key, value] of Object.entries(attributes || {})) {
		if (value === undefined || value === null || value === false)
			continue;
		if (key.startsWith("on"))
			element.addEventListener(key.slice(2), value);
		else if (key === "vars") // the policy of the page forbids style attributes, not this
			Object.entries(value).forEach(([name, v]) => element.style.setProperty(name, v));
		else
			element.setAttribute(key, value === true ? "" : show(value));
	}
	return add(element, children);
}

// A name somebody chose: its writing direction stays its own.
function name(text) {
	return h("bdi", null, text);
}

function empty(element) {
	element.replaceChildren();
	return element;
}

// For ids and keys: a record's words in them would be anybody's.
function slug(text) {
	return String(text).replace(/[^A-Za-z0-9_-]/g, "-").slice(0, 60);
}

function list(value) {
	return Array.isArray(value) ? value : [];
}

function finite(value) {
	return typeof value === "number" && Number.isFinite(value);
}

function pathEnd(path) {
	return String(path).split("/").pop();
}

// "train.py:41", the whole path as its title.
function place(where) {
	if (!where || !where.file)
		return null;
	const line = where.line > 0 ? ":" + where.line : "";
	return h("code.place", { title: where.file + line }, pathEnd(where.file) + line);
}

function swatch(color) {
	return h("span.swatch", { "aria-hidden": "true", vars: { "--c": color } });
}

function button(label, onclick, more) {
	return h("button", { type: "button", onclick, ...more }, label);
}

// Folded; its key lets it stay open when the page is drawn again.
function fold(key, summary, ...children) {
	return h("details", { "data-key": slug(key) }, h("summary", null, summary), children);
}

// A table that scrolls by itself where the window is narrow. Heads: "text", or "#text" for numbers.
function table(caption, heads, rows) {
	const wide = (head) => head.startsWith("#");
	return h("div.scroll", { tabindex: "0", role: "region", "aria-label": "Table: " + caption },
		h("table", null, h("caption.hidden", null, caption),
			h("thead", null, h("tr", null, heads.map((head) => head instanceof Node ? head
				: h(wide(head) ? "th.number" : "th", { scope: "col" }, head.replace(/^#/, ""))))),
			h("tbody", null, rows)));
}

function absent(why) {
	return h("p.absent", null, why);
}

// What was open, and where the reader was, survives drawing again.
function redraw(body, draw) {
	const open = [...body.querySelectorAll("details[open]")].map((d) => d.dataset.key);
	const at = body.contains(document.activeElement) ? document.activeElement.dataset.key : null;
	draw(empty(body));
	for (const details of body.querySelectorAll("details"))
		details.open = details.open || open.includes(details.dataset.key);
	if (at)
		body.querySelector(`[data-key="${at}"]`)?.focus();
}

// Says it at the foot of the window, and to a screen reader.
function toast(text) {
	let box = document.getElementById("toast");
	if (!box)
		document.body.append(box = h("div", { id: "toast", role: "status" }));
	box.textContent = show(text);
	box.classList.add("on");
	clearTimeout(toast.timer);
	toast.timer = setTimeout(() => box.classList.remove("on"), 2500);
}

// A page opened from a file may not have the clipboard's interface: then the old way.
async function copyText(text, said) {
	try {
		await navigator.clipboard.writeText(text);
	} catch {
		const area = h("textarea.hidden", { "aria-hidden": "true", tabindex: "-1" });
		area.value = text;
		document.body.append(area);
		const before = document.activeElement;
		area.select();
		const done = document.execCommand("copy");
		area.remove();
		before?.focus();
		if (!done)
			return toast("The browser does not let this page copy");
	}
	return toast(said);
}

// Code with a button that copies it.
function snippet(code, key) {
	return h("div.snippet", null, h("pre", { tabindex: "0" }, h("code", null, code)),
		button("Copy", () => copyText(code, "Copied"), { "aria-label": "Copy this code", "data-key": slug(key) }));
}
