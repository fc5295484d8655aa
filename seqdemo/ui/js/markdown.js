// A model card as a page shows it: headings, paragraphs, lists, tables, code, links and the card's own pictures. Whatever else stands
// in it is shown as text and never becomes markup.
import { el, newId } from "../../figures/js/core.js";

const INLINE = /(`[^`]+`|!\[[^\]]*\]\([^)\s]*\)|\[[^\]]+\]\([^)\s]+\)|\*\*[^*]+\*\*|\*[^*\s][^*]*\*)/;
const ITEM = /^\s*(?:[*-]|\d+\.)\s+/;
const HEADING = /^(#{1,6})\s+(.*)$/;

/** @param {string} text  @param {Object<string, string>} pictures  the addresses of the pictures beside the card, by their names */
export function markdown(text, pictures = {}) {
  const lines = text.replace(/\r\n?/g, "\n").split("\n");
  const blocks = [];
  for (let at = 0; at < lines.length; ) {
    const kind = KINDS.find(({ starts }) => starts(lines[at]));
    let end = at + 1;
    while (end < lines.length && kind.goesOn(lines[end], lines.slice(at, end))) end += 1;
    blocks.push(kind.made(lines.slice(at, end), pictures));
    at = end;
  }
  return blocks.filter(Boolean);
}

const plain = (line) => line.trim() !== "" && !/^(#{1,6}\s|```|\|)/.test(line) && !ITEM.test(line);

const KINDS = [
  { starts: (line) => line.trim() === "", goesOn: (line) => line.trim() === "", made: () => null },
  { starts: (line) => line.startsWith("```"), goesOn: (line, before) => before.length === 1 || !before[before.length - 1].startsWith("```"),
    made: (lines) => el("pre", { tabindex: "0", "aria-label": "Code" }, lines.slice(1, lines[lines.length - 1].startsWith("```") ? -1 : undefined).join("\n")) },
  { starts: (line) => HEADING.test(line), goesOn: () => false,
    made: ([line], pictures) => { const [, signs, title] = line.match(HEADING); return el(`h${Math.min(6, signs.length + 3)}`, {}, inline(title, pictures)); } },
  { starts: (line) => line.startsWith("|"), goesOn: (line) => line.startsWith("|"), made: cardTable },
  { starts: (line) => ITEM.test(line), goesOn: (line) => ITEM.test(line) || /^\s+\S/.test(line), made: cardList },
  { starts: () => true, goesOn: plain, made: (lines, pictures) => el("p", {}, inline(lines.join(" "), pictures)) },
];

function cardList(lines, pictures) {
  const items = [];
  for (const line of lines) {
    if (ITEM.test(line)) items.push(line.replace(ITEM, ""));
    else items[items.length - 1] += ` ${line.trim()}`;
  }
  return el(/^\s*\d/.test(lines[0]) ? "ol" : "ul", {}, items.map((item) => el("li", {}, inline(item, pictures))));
}

function cardTable(lines, pictures) {
  const [heads, ...rows] = lines.filter((line) => !/^[|\s:-]+$/.test(line)).map((line) => line.replace(/^\||\|\s*$/g, "").split("|").map((cell) => cell.trim()));
  const cells = (row, tag) => row.map((cell, i) => el(i ? tag : "th", i ? {} : { scope: tag === "th" ? "col" : "row" }, inline(cell, pictures)));
  return el("div", { class: "s-table-wrap", tabindex: "0", role: "group", "aria-label": "Table of the card", id: newId("s-card-table") },
    el("table", { class: "s-table" }, el("thead", {}, el("tr", {}, cells(heads || [], "th"))), el("tbody", {}, rows.map((row) => el("tr", {}, cells(row, "td"))))));
}

function inline(text, pictures) {
  return text.split(INLINE).filter(Boolean).map((part) => {
    const [, bang, label, address] = part.match(/^(!?)\[([^\]]*)\]\(([^)\s]*)\)$/) || [];
    if (bang) return picture(label, pictures[address]);
    if (address) return /^https?:\/\//.test(address) ? el("a", { href: address, target: "_blank", rel: "noopener noreferrer" }, label) : label;
    if (/^`[^`]+`$/.test(part)) return el("code", {}, part.slice(1, -1));
    if (/^\*\*[^*]+\*\*$/.test(part)) return el("strong", {}, part.slice(2, -2));
    if (/^\*[^*\s][^*]*\*$/.test(part)) return el("em", {}, part.slice(1, -1));
    return part;
  });
}

// A model that a visitor loaded has no pictures here; their descriptions are shown instead.
function picture(label, address) {
  if (!address) return null;
  const image = el("img", { src: address, alt: label, loading: "lazy" });
  image.addEventListener("error", () => image.remove());
  return image;
}
