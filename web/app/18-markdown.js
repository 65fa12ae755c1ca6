// SPDX-License-Identifier: MIT
// The pages about causes are Markdown. This knows what they use: headings, paragraphs, lists, tables, code, emphasis.

const INLINE = /`([^`]+)`|\*\*([^*]+)\*\*|\*([^*\s][^*]*)\*|\[([^\]]+)\]\(([^)\s]+)\)/g;

// A link to another cause's page works where that page is in this file; any other stays words.
function inlineMarkdown(text, pages) {
	const out = [];
	let at = 0;
	for (const m of text.matchAll(INLINE)) {
		const page = (/^([a-z_]+)\.md$/.exec(m[5] || "") || [])[1];
		out.push(text.slice(at, m.index));
		at = m.index + m[0].length;
		if (m[1])
			out.push(h("code", null, m[1]));
		else if (m[2])
			out.push(h("strong", null, inlineMarkdown(m[2], pages)));
		else if (m[3])
			out.push(h("em", null, m[3]));
		else if (page && pages.has(page))
			out.push(h("a", { href: "#doc-" + page }, inlineMarkdown(m[4], pages)));
		else
			out.push(...inlineMarkdown(m[4], pages));
	}
	return [...out, text.slice(at)];
}

const BLOCKS = [
	[/^#{1,6} /, (lines, pages) => {
		const text = lines.shift().replace(/^#+ /, "");
		return h("h4", null, inlineMarkdown(text, pages));
	}],
	[/^```/, (lines) => {
		const code = [];
		for (lines.shift(); lines.length && !lines[0].startsWith("```");)
			code.push(lines.shift());
		lines.shift();
		return h("pre", { tabindex: "0" }, h("code", null, code.join("\n")));
	}],
	[/^ {4}|^\t/, (lines) => {
		const code = [];
		while (lines.length && (/^ {4}|^\t/.test(lines[0]) || (!lines[0].trim() && /^ {4}/.test(lines[1] || ""))))
			code.push(lines.shift().replace(/^ {4}|^\t/, ""));
		return h("pre", { tabindex: "0" }, h("code", null, code.join("\n")));
	}],
	[/^\|/, (lines, pages) => {
		const rows = [];
		while (lines.length && lines[0].startsWith("|"))
			rows.push(lines.shift().replace(/^\||\|\s*$/g, "").split("|").map((cell) => cell.trim()));
		const body = rows.slice(1).filter((row) => !row.every((cell) => /^:?-+:?$/.test(cell)));
		return table(rows[0].join(", "), rows[0].map((cell) => h("th", { scope: "col" }, inlineMarkdown(cell, pages))),
			body.map((row) => h("tr", null, row.map((cell) => h("td", null, inlineMarkdown(cell, pages))))));
	}],
	[/^[-*] /, (lines, pages) => {
		const items = [];
		while (lines.length && /^([-*] | {2,}\S)/.test(lines[0])) {
			const line = lines.shift();
			if (/^[-*] /.test(line))
				items.push(line.slice(2));
			else
				items[items.length - 1] += " " + line.trim();
		}
		return h("ul", null, items.map((item) => h("li", null, inlineMarkdown(item, pages))));
	}],
	[/./, (lines, pages) => {
		const words = [lines.shift()];
		while (lines.length && lines[0].trim() && !/^(#|```|\||[-*] )/.test(lines[0]))
			words.push(lines.shift().trim());
		return h("p", null, inlineMarkdown(words.join(" "), pages));
	}],
];

// pages: names of the causes whose page is here. The first heading is left out: it is the summary one clicked on.
function markdown(text, pages) {
	const lines = show(text).split("\n"), out = h("div.prose");
	if (lines[0].startsWith("# "))
		lines.shift();
	while (lines.length) {
		if (!lines[0].trim())
			lines.shift();
		else
			out.append(BLOCKS.find(([begins]) => begins.test(lines[0]))[1](lines, pages));
	}
	return out;
}
