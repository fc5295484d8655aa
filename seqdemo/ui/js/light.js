// Hover: a word under the pointer highlights its partners everywhere. It is not part of the state.
import { el, listen } from "../../figures/js/core.js";
import { Door } from "./door.js";

export class Lit extends Door {
  constructor(setup) {
    super(setup);
    this.hover = null;
    /** @type {Object<string, any>} the answer that is shown in each column, by its letter */
    this.columns = {};
  }

  atomNode(side, end, atom) {
    const node = el("span", { class: "s-atom" }, atom.text);
    this.hoverNode(node, side, end, atom.pieces[0]);
    node.setAttribute(`data-${end}`, atom.pieces.join(" "));
    if (end === "source") node.classList.add("s-source-atom");
    return node;
  }

  hoverNode(node, side, end, index) {
    listen(node, "pointerenter", () => this.setHover({ side, end, index }));
    listen(node, "pointerleave", () => this.setHover(null));
    listen(node, "focus", () => this.setHover({ side, end, index }));
    listen(node, "blur", () => this.setHover(null));
  }

  setHover(hover) {
    this.hover = hover;
    this.tell("light");
  }

  /** How brightly a piece is lit: 1 under the pointer, its attention weight where it is a partner. */
  brightness(side, end, index) {
    const { hover } = this;
    if (!hover) return 0;
    const column = this.columns[side];
    if (hover.end === end && (end === "source" || hover.side === side)) return hover.index === index ? 1 : 0;
    if (hover.end === end || !column || !column.trace || !column.trace.attention) return 0;
    if (end === "source" && hover.side !== side) return 0;
    const across = column.trace.source.length;
    const at = end === "source" ? hover.index * across + index : index * across + hover.index;
    return column.trace.attention[at] || 0;
  }
}
