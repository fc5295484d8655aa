// The search tree: rows of the record become boxes, left to right by step. Layout is pure; drawing is SVG with one focusable box a node.

const KEPT = 0, PRUNED = 1, FINISHED = 2;
const MOST_BOXES = 420;

function readTree(payload) {
  const tree = { size: payload.size, pieces: new Map(payload.pieces), children: new Map() };
  for (const name of ["step", "parent", "token", "logp", "total", "rank", "fate", "missed"]) tree[name] = unpack(payload[name]);
  for (let i = 0; i < tree.size; i++) {
    const parent = tree.parent[i];
    if (!tree.children.has(parent)) tree.children.set(parent, []);
    tree.children.get(parent).push(i);
  }
  tree.steps = tree.size ? Math.max(...new Set(tree.step)) + 1 : 0;
  return tree;
}

function pathTo(tree, node) {
  const path = [];
  for (let at = node; at >= 0; at = tree.parent[at]) path.push(at);
  return path.reverse();
}

// Which rows to draw. `must`: rows whose whole path is always shown; `opened`: rows whose children were asked for.
function visibleRows(tree, must, { pruned, opened }) {
  const shown = new Set();
  const addPath = (node) => pathTo(tree, node).forEach((row) => shown.add(row));
  must.forEach(addPath);
  const rest = [];
  for (let i = 0; i < tree.size; i++) {
    if (opened.has(tree.parent[i])) addPath(i);
    else if (tree.fate[i] !== PRUNED || pruned) rest.push(i);
  }
  const order = (row) => (tree.fate[row] === PRUNED ? 1e6 : 0) + tree.rank[row] * 100 + tree.step[row];
  rest.sort((x, y) => order(x) - order(y));
  for (const row of rest) {
    if (shown.size >= MOST_BOXES) break;
    if (tree.parent[row] < 0 || shown.has(tree.parent[row]) || tree.fate[row] !== PRUNED) addPath(row);
  }
  return shown;
}

// Rows -> {row, column (step), y} with the best path straight along the top.
function layoutTree(tree, shown) {
  const best = new Map();
  const rows = [...shown].sort((x, y) => y - x);
  for (const row of rows) {
    const own = tree.fate[row] === PRUNED ? tree.total[row] - 1e4 : tree.fate[row] === FINISHED ? tree.total[row] + 1e3 : tree.total[row];
    best.set(row, Math.max(best.has(row) ? best.get(row) : -Infinity, own));
    const parent = tree.parent[row];
    if (parent >= 0) best.set(parent, Math.max(best.has(parent) ? best.get(parent) : -Infinity, best.get(row)));
  }
  const last = new Int32Array(tree.steps + 1).fill(-1);
  const place = new Map();
  const visit = (row, above) => {
    const step = tree.step[row];
    const y = Math.max(above, last[step] + 1);
    last[step] = y;
    place.set(row, y);
    const children = (tree.children.get(row) || []).filter((child) => shown.has(child)).sort((p, q) => best.get(q) - best.get(p));
    children.forEach((child) => visit(child, y));
  };
  const roots = (tree.children.get(-1) || []).filter((row) => shown.has(row)).sort((p, q) => best.get(q) - best.get(p));
  roots.forEach((row) => visit(row, 0));
  return place;
}

class TreeView {
  constructor(onSelect, onHover) {
    this.onSelect = onSelect;
    this.onHover = onHover;
    this.opened = new Set();
    this.pruned = false;
    this.until = null;
    this.scroller = el("div", { class: "s-scroll s-tree", tabindex: "-1" });
    this.scroller.addEventListener("keydown", (event) => this.key(event));
  }

  // model: {tree, kind, side, selected (row), ends: [rows], marks: {row: side}, partAt (step), title}
  show(model) {
    if (this.model && this.model.tree !== model.tree) {
      this.opened = new Set();
      this.until = null;
    }
    this.model = model;
    const { tree } = model;
    const must = [...model.ends, ...model.marks.keys()];
    if (model.selected >= 0) must.push(model.selected);
    this.shown = visibleRows(tree, must, this);
    this.place = layoutTree(tree, this.shown);
    this.draw();
  }

  widths() {
    const { tree, kind } = this.model;
    const widths = new Array(tree.steps).fill(54);
    for (const row of this.shown) {
      const name = this.name(row, kind);
      widths[tree.step[row]] = Math.max(widths[tree.step[row]], Math.min(132, textWidth(name, 13, 600) + textWidth((tree.fate[row] === FINISHED ? "✓ " : "") + probability(tree.logp[row]), 10.5) + 28));
    }
    return widths;
  }

  gaps(onPath) {
    const gaps = new Array(this.model.tree.steps).fill(30);
    for (const row of this.shown) {
      const note = this.note(row, onPath);
      const step = this.model.tree.step[row];
      if (note) gaps[step] = Math.max(gaps[step], textWidth(note, 11, 600) + 28);
    }
    return gaps;
  }

  note(row, onPath) {
    const { tree, marks } = this.model;
    if (tree.fate[row] === KEPT && marks.has(row) && !this.goesOn(row)) return "dropped next";
    return tree.fate[row] === PRUNED && (marks.has(row) || onPath.has(row)) ? `missed by ${tree.missed[row].toFixed(2)}` : "";
  }

  name(row) {
    const name = pieceName(this.model.tree.pieces.get(this.model.tree.token[row]), this.model.kind);
    return [...name].length > 13 ? [...name].slice(0, 12).join("") + "…" : name;
  }

  draw() {
    const { tree, side, selected, marks, partAt } = this.model;
    const colours = palette();
    const widths = this.widths();
    const onPath = new Set(selected >= 0 ? pathTo(tree, selected) : []);
    const gaps = this.gaps(onPath);
    const left = [];
    widths.reduce((x, width, i) => ((left[i] = x), x + width + gaps[i]), 62);
    const high = 32, box = 23, top = 30;
    const depth = Math.max(1, ...[...this.place.values()].map((y) => y + 1));
    const width = (left.length ? left[left.length - 1] + widths[widths.length - 1] + gaps[gaps.length - 1] : 90) + 26;
    const height = top + depth * high + 8;
    const root = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, class: "s-tree-svg" });
    if (partAt >= 0 && partAt < left.length) {
      root.append(svg("rect", { x: left[partAt] - 9, y: 3, width: widths[partAt] + 18, height: height - 6, rx: 8, fill: colours["a-soft"] }));
      root.append(svg("text", { x: left[partAt], y: 15, "font-size": 11, "font-weight": 600, fill: colours.a }, "paths part"));
    }
    for (let step = 0; step < tree.steps; step++) {
      if (step !== partAt) root.append(svg("text", { x: left[step], y: 15, "font-size": 11, fill: colours.muted }, String(step + 1)));
    }
    const y = (row) => top + this.place.get(row) * high + box / 2;
    const edges = svg("g", { fill: "none" });
    const boxes = svg("g", { role: "tree", "aria-label": this.model.title });
    root.append(edges, boxes);
    edges.append(svg("text", { x: 8, y: top + box / 2, fill: colours.muted, "font-size": 12, "dominant-baseline": "central" }, "start"));
    const rows = [...this.shown].sort((p, q) => p - q);
    for (const row of rows) {
      const parent = tree.parent[row];
      const x1 = parent < 0 ? 40 : left[tree.step[parent]] + widths[tree.step[parent]];
      const y1 = parent < 0 ? top + box / 2 : y(parent);
      const x2 = left[tree.step[row]];
      const bend = (x1 + x2) / 2;
      const strong = onPath.has(row) ? colours[side.toLowerCase()] : marks.has(row) ? colours[marks.get(row).toLowerCase()] : null;
      edges.append(svg("path", {
        d: `M${x1} ${y1}C${bend} ${y1} ${bend} ${y(row)} ${x2} ${y(row)}`,
        stroke: strong || colours.line, "stroke-width": strong ? 3 : 1.4, "stroke-dasharray": tree.fate[row] === PRUNED && !strong ? "3 3" : null,
        opacity: this.until !== null && tree.step[row] > this.until ? 0.12 : 1,
      }));
      boxes.append(this.box(row, x2, y(row) - box / 2, widths[tree.step[row]], box, onPath, colours));
    }
    this.foldMarks(root, left, widths, y, colours);
    this.node = root;
    clear(this.scroller).append(root);
  }

  box(row, x, y, width, height, onPath, colours) {
    const { tree, side, marks, selected } = this.model;
    const fate = tree.fate[row];
    const mine = onPath.has(row);
    const mark = marks.get(row);
    const tone = mine ? colours[side.toLowerCase()] : mark ? colours[mark.toLowerCase()] : fate === PRUNED ? colours.muted : colours.ink;
    const fill = mine ? colours[`${side.toLowerCase()}-soft`] : mark ? colours[`${mark.toLowerCase()}-soft`] : fate === PRUNED ? colours.ground : colours.panel;
    const name = this.name(row);
    const group = svg("g", {
      role: "treeitem", class: "s-node", tabindex: row === this.focusRow() ? "0" : "-1", "data-node": row, "aria-level": tree.step[row] + 1,
      "aria-selected": String(row === selected), "aria-label": this.lines(row).join(", "),
      opacity: this.until !== null && tree.step[row] > this.until ? 0.12 : 1,
      on: {
        click: () => this.choose(row),
        pointerenter: (event) => {
          tip.show(this.lines(row), event.clientX, event.clientY);
          this.onHover(tree.step[row]);
        },
        pointerleave: () => {
          tip.hide();
          this.onHover(null);
        },
      },
    });
    group.append(svg("rect", {
      x, y, width, height, rx: 6, fill, stroke: mine || mark ? tone : colours.line, "stroke-width": row === selected ? 2.6 : mine || mark ? 1.8 : 1.1,
      "stroke-dasharray": fate === PRUNED ? "3 3" : null,
    }));
    const middle = y + height / 2 + 0.5;
    group.append(svg("text", { x: x + 8, y: middle, "font-size": 13, "font-weight": mine || mark ? 600 : 400, fill: tone, "dominant-baseline": "central" }, name));
    const label = fate === FINISHED ? `✓ ${probability(tree.logp[row])}` : probability(tree.logp[row]);
    group.append(svg("text", { x: x + width - 7, y: middle, "font-size": 10.5, fill: mine || mark ? tone : colours.muted, "text-anchor": "end", "dominant-baseline": "central" }, label));
    const note = this.note(row, onPath);
    if (note) group.append(svg("text", { x: x + width + 17, y: middle, "font-size": 11, "font-weight": 600, fill: tone, "dominant-baseline": "central" }, note));
    return group;
  }

  goesOn(row) {
    return (this.model.tree.children.get(row) || []).some((child) => this.model.marks.has(child));
  }

  foldMarks(root, left, widths, y, colours) {
    const { tree } = this.model;
    for (const row of this.shown) {
      const hidden = (tree.children.get(row) || []).filter((child) => !this.shown.has(child)).length;
      if (!hidden || (this.until !== null && tree.step[row] > this.until)) continue;
      const x = left[tree.step[row]] + widths[tree.step[row]];
      const open = () => {
        this.opened.add(row);
        this.show(this.model);
      };
      const mark = svg("g", { class: "s-fold", on: { click: open } });
      mark.append(svg("title", {}, `${hidden} pruned or folded here: click to show`));
      mark.append(svg("circle", { cx: x, cy: y(row) + 11.5, r: 7, fill: colours.ground, stroke: colours.line }));
      mark.append(svg("text", { x, y: y(row) + 12, "font-size": 9, fill: colours.muted, "text-anchor": "middle", "dominant-baseline": "central" }, `+${hidden}`));
      root.append(mark);
    }
  }

  lines(row) {
    const { tree, kind } = this.model;
    const fate = tree.fate[row] === PRUNED ? `pruned, missed by ${tree.missed[row].toFixed(3)}` : tree.fate[row] === FINISHED ? "finished" : "kept";
    return [
      pieceName(tree.pieces.get(tree.token[row]), kind),
      `${fate}, rank ${tree.rank[row] + 1} at step ${tree.step[row] + 1}`,
      `probability ${probability(tree.logp[row])} (log probability ${signed(tree.logp[row])})`,
      `sum so far ${signed(tree.total[row])}`,
    ];
  }

  focusRow() {
    if (this.focused >= 0 && this.shown.has(this.focused)) return this.focused;
    if (this.model.selected >= 0) return this.model.selected;
    return this.shown.size ? Math.min(...this.shown) : -1;
  }

  choose(row) {
    this.focused = row;
    this.onSelect(row);
    const node = this.scroller.querySelector(`[data-node="${row}"]`);
    if (node) node.focus({ preventScroll: true });
  }

  key(event) {
    const at = Number(event.target.dataset ? event.target.dataset.node : NaN);
    if (!Number.isInteger(at)) return;
    const { tree } = this.model;
    const level = [...this.shown].filter((row) => tree.step[row] === tree.step[at]).sort((p, q) => this.place.get(p) - this.place.get(q));
    const children = (tree.children.get(at) || []).filter((row) => this.shown.has(row)).sort((p, q) => this.place.get(p) - this.place.get(q));
    const moves = {
      ArrowRight: children[0], ArrowLeft: tree.parent[at] >= 0 ? tree.parent[at] : undefined,
      ArrowDown: level[level.indexOf(at) + 1], ArrowUp: level[level.indexOf(at) - 1], Home: Math.min(...this.shown),
    };
    if (event.key === "Enter" || event.key === " ") this.choose(at);
    else if (event.key === "+") {
      this.opened.add(at);
      this.show(this.model);
    } else if (moves[event.key] === undefined) return;
    else {
      this.focused = moves[event.key];
      this.scroller.querySelectorAll('[role="treeitem"][tabindex="0"]').forEach((node) => node.setAttribute("tabindex", "-1"));
      const node = this.scroller.querySelector(`[data-node="${this.focused}"]`);
      node.setAttribute("tabindex", "0");
      node.focus();
      const box = node.getBoundingClientRect();
      tip.show(this.lines(this.focused), box.left, box.bottom - 10);
    }
    event.preventDefault();
  }

  rows() {
    const { tree, kind, title } = this.model;
    return {
      caption: title,
      heads: ["token", "step", "fate", "missed by", "log probability", "sum so far", "after"],
      rows: [...this.shown].sort((p, q) => p - q).map((row) => [
        pieceName(tree.pieces.get(tree.token[row]), kind), tree.step[row] + 1, ["kept", "pruned", "finished"][tree.fate[row]],
        tree.fate[row] === PRUNED ? tree.missed[row].toFixed(3) : "", signed(tree.logp[row]), signed(tree.total[row]),
        tree.parent[row] < 0 ? "start" : pathTo(tree, tree.parent[row]).map((at) => pieceName(tree.pieces.get(tree.token[at]), kind)).join(" "),
      ]),
    };
  }
}
