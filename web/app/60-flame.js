// SPDX-License-Identifier: MIT
// The functions as an icicle: callers above, what they call below, as wide as it took. Elements, not a canvas: they can
// be read aloud, found with the browser's search, reached by keys and printed.

const FLAME_ROW = 22, FLAME_LEAST = 4, FLAME_NAMED = 32; // pixels: height of a row, width of what is still drawn, and named
const FLAME_NODES = 5000;

// Survives a new story: the names from the top to the function that fills the width, and what is looked for.
const flame = { path: [], search: "", busy: false, source: null, top: null, zoomed: null, at: null, items: new Map() };

function flameKind(node) {
	if (node.depth === 0)
		return "role";
	if (/^\[(waiting|queued)/.test(node.name))
		return "waiting";
	if (/^\[|^_Z|\.so[.\d]*$/.test(node.name) || /\.so[.\d]*$/.test(node.file))
		return "native";
	if (!node.file)
		return "other";
	return /(site|dist)-packages\/|\/lib(64)?\/python|^\/usr\/|^<frozen|\/spotter\/_hooks\//.test(node.file) ? "library" : "own";
}

// Nodes as the story has them are flat, parents first; whatever does not hold together is left out. busy: without the
// time in which a thread only waited.
function flameTree(source, busy) {
	const text = (i) => String(list(source.strings)[i] ?? ""), nodes = [];
	const top = { name: "all", file: "", line: 0, depth: -1, kids: [], parent: null, kind: "all", self: 0 };
	for (const [parent, fn, file, line, self] of list(source.nodes).slice(0, FLAME_NODES)) {
		const above = parent === -1 ? top : nodes[parent];
		const fits = above && !(busy && text(fn).startsWith("[waiting"));
		nodes.push(fits ? { name: text(fn), file: text(file), line, depth: above.depth + 1, kids: [], parent: above,
			self: finite(self) && self > 0 ? self : 0 } : null);
	}
	const grown = [top, ...nodes.filter(Boolean)];
	grown.forEach((node) => { node.total = node.self; });
	for (const node of [...grown].reverse())
		if (node.parent)
			node.parent.total += node.total;
	top.x = top.next = 0;
	for (const node of grown.slice(1).filter((n) => n.total > 0)) {
		node.kind = flameKind(node);
		node.x = node.next = node.parent.next;
		node.parent.next += node.total;
		node.parent.kids.push(node);
	}
	return top;
}

function flamePath(node) {
	return node && node.parent ? [...flamePath(node.parent), node.name] : [];
}

function flameFind(path) {
	let node = flame.top;
	for (const step of path) {
		const next = node.kids.find((kid) => kid.name === step);
		if (!next)
			break;
		node = next;
	}
	return node;
}

function flameWords(node) {
	const where = node.file ? `, ${pathEnd(node.file)}${node.line > 0 ? ":" + node.line : ""}` : "";
	return `${node.name}${where}: ${seconds(node.total)}, ${percent(node.total / flame.top.total)} of all` +
		(node.self > 0 && node.kids.length ? `, ${seconds(node.self)} in itself` : "");
}

// Ancestors of the zoomed one are as wide as it is.
function flameSpan(node) {
	const z = flame.zoomed, inside = node.depth > z.depth;
	return inside ? [(node.x - z.x) / z.total, node.total / z.total] : [0, 1];
}

function flameVisible(width) {
	const out = [], walk = (node) => {
		if (node.total / flame.zoomed.total * width < FLAME_LEAST)
			return;
		out.push(node);
		node.kids.forEach(walk);
	};
	for (let node = flame.zoomed.parent; node; node = node.parent)
		out.unshift(node);
	walk(flame.zoomed);
	return out;
}

function flameMatches(node) {
	return flame.search && (node.name + " " + node.file).toLowerCase().includes(flame.search);
}

// Time in functions that match; one below another counts once.
function flameFound(node) {
	return flameMatches(node) && node.parent ? node.total : node.kids.reduce((sum, kid) => sum + flameFound(kid), 0);
}

function flameItem(node, whole) {
	const [x, width] = flameSpan(node), above = node.depth < flame.zoomed.depth;
	const kinds = [node.kind, above && "above", flame.search && (flameMatches(node) ? "match" : "miss")].filter(Boolean);
	const label = flameWords(node);
	return h(`div.frame.${kinds.join(".")}`, { role: "treeitem", "aria-level": node.depth + 2, "aria-label": label, title: label,
		"aria-selected": node === flame.zoomed ? "true" : "false", tabindex: node === flame.at ? "0" : "-1",
		vars: { left: x * 100 + "%", width: width * 100 + "%", top: (node.depth + 1) * FLAME_ROW + "px" } },
	width * whole >= FLAME_NAMED && name(node.parent ? node.name || "?" : `all: ${seconds(node.total)}`));
}

function growFlame() {
	flame.top = flameTree(flame.source, flame.busy);
	flame.zoomed = flame.at = flameFind(flame.path);
}

function drawFlame() {
	const host = flame.host, whole = host.clientWidth || 800, nodes = flameVisible(whole);
	if (!nodes.includes(flame.at))
		flame.at = flame.zoomed;
	flame.items = new Map(nodes.map((node) => [node, flameItem(node, whole)]));
	flame.back = new Map([...flame.items].map(([node, item]) => [item, node]));
	host.style.setProperty("height", (Math.max(...nodes.map((n) => n.depth)) + 2) * FLAME_ROW + "px");
	host.replaceChildren(...flame.items.values());
	sayFrame(flame.at);
	flame.found.textContent = flame.search ? `${percent(flameFound(flame.top) / flame.top.total)} of the time` : "";
	flame.out.disabled = flame.zoomed === flame.top;
}

function sayFrame(node) {
	add(empty(flame.info), h("strong", null, name(node.name)), node.file && [" ", place(node)],
		` ${seconds(node.total)}, ${percent(node.total / flame.top.total)} of all`,
		node.parent && node.parent.parent && `, ${percent(node.total / node.parent.total)} of its caller`,
		node.kids.length > 0 && node.self > 0 && `, ${seconds(node.self)} in itself`);
}

function flameZoom(node, focus) {
	flame.zoomed = node;
	flame.at = node;
	flame.path = flamePath(node);
	drawFlame();
	if (focus)
		flame.items.get(node)?.focus({ preventScroll: true });
}

function flameFocus(node) {
	const item = flame.items.get(node);
	if (!item)
		return;
	flame.items.get(flame.at)?.setAttribute("tabindex", "-1");
	flame.at = node;
	item.setAttribute("tabindex", "0");
	item.focus();
	sayFrame(node);
}

// The next one of the same row, to the left (-1) or right (1).
function flameBeside(node, way) {
	const row = [...flame.items.keys()].filter((n) => n.depth === node.depth).sort((a, b) => a.x - b.x);
	return row[row.indexOf(node) + way];
}

function flameKey(event) {
	const at = flame.at, widest = [...at.kids].sort((a, b) => b.total - a.total).find((kid) => flame.items.has(kid));
	const keys = {
		ArrowUp: () => flameFocus(at.parent), ArrowDown: () => flameFocus(widest),
		ArrowLeft: () => flameFocus(flameBeside(at, -1)), ArrowRight: () => flameFocus(flameBeside(at, 1)),
		Home: () => flameFocus(flame.top), Enter: () => flameZoom(at, true), " ": () => flameZoom(at, true),
		Escape: () => flameZoom(flame.top, true), Backspace: () => flameZoom(flame.zoomed.parent || flame.top, true),
	};
	if (event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(keys, event.key))
		return;
	event.preventDefault();
	keys[event.key]();
}

function flameBar() {
	const search = h("input", { type: "search", placeholder: "Find a function or file", "aria-label": "Find a function or file",
		"data-key": "flame-search", spellcheck: "false", value: flame.search, oninput: () => {
			flame.search = search.value.trim().toLowerCase();
			drawFlame();
		} });
	flame.found = h("output", { "aria-label": "Found" });
	flame.out = button("All", () => flameZoom(flame.top), { "aria-label": "All functions", "data-key": "flame-all" });
	const waits = list(flame.source.strings).some((s) => String(s).startsWith("[waiting"));
	const busy = waits && button("Without waiting", () => {
		flame.busy = !flame.busy;
		busy.setAttribute("aria-pressed", flame.busy);
		growFlame();
		drawFlame();
	}, { "aria-pressed": String(flame.busy), "data-key": "flame-busy" });
	return h("div.toolbar", null, flame.out, search, busy, flame.found, h("span.legend", null,
		[["own", "your code"], ["library", "libraries"], ["native", "native code"], ["waiting", "waiting"]].map(([kind, words]) =>
			h("span", null, h(`span.swatch.frame-${kind}`, { "aria-hidden": "true" }), words))),
	h("span.hint", null, "Click to zoom. Keys: arrows, Enter zooms, Escape shows all."));
}

function listenToFlame(host) {
	const nodeOf = (event) => flame.back.get(event.target.closest?.(".frame"));
	host.addEventListener("click", (event) => nodeOf(event) && flameZoom(nodeOf(event), true));
	host.addEventListener("pointerover", (event) => nodeOf(event) && sayFrame(nodeOf(event)));
	host.addEventListener("pointerleave", () => sayFrame(flame.at));
	host.addEventListener("keydown", flameKey);
	flame.observer?.disconnect();
	flame.observer = new ResizeObserver(() => {
		if (flame.host.clientWidth !== flame.width && !flame.host.contains(document.activeElement))
			drawFlame();
		flame.width = flame.host.clientWidth;
	});
	flame.observer.observe(host);
}

component("functions", "Functions", (body, story) => {
	const { verdict } = story;
	flame.source = story.flame || {};
	growFlame();
	if (!flame.top.kids.length && !flame.busy)
		return add(body, absent("Absent: no stacks were sampled" + (verdict.level_why ? `: ${verdict.level_why}.` :
			`; this record was made at level ${verdict.level || "unknown"}.`)));
	flame.info = h("p.info");
	flame.host = h("div.flame", { role: "tree", "aria-label": "Functions by the time they took" });
	add(body, h("p", null, `What ${seconds(flame.top.total)} of its threads' time went into, from the samples of its stacks. ` +
		"Callers are above, what they call is below; the wider, the longer."),
	flameBar(), flame.info, h("div.flame-scroll", null, flame.host));
	listenToFlame(flame.host);
	drawFlame();
	return body;
}, (story) => [story.flame]);
