// Examples: as buttons, and what choosing one makes of a page.

// The first example of every kind as buttons; all of them, under what they show, on demand.
function exampleList(bench, make) {
  const { examples } = bench.setup;
  const kinds = [...new Set(examples.map((example) => example.kind))];
  const nodes = [];
  const made = (example) => {
    const node = make(example);
    nodes.push([node, example]);
    return node;
  };
  const first = kinds.length > 1 ? kinds.slice(0, 8).map((kind) => examples.find((example) => example.kind === kind)) : examples.slice(0, 10);
  const list = el("div", { class: "s-examples", role: "group", "aria-label": "Examples" }, first.map(made));
  if (first.length < examples.length) {
    list.append(el("details", { class: "s-all-examples" }, el("summary", {}, `All ${examples.length} examples`), kinds.map((kind) => {
      const own = examples.filter((example) => example.kind === kind);
      return el("div", { role: "group", "aria-label": own[0].title || "Examples" }, el("p", { class: "s-muted" }, own[0].title), el("div", { class: "s-examples" }, own.map(made)));
    })));
  }
  list.press = (chosen) => nodes.forEach(([node, example]) => node.setAttribute("aria-pressed", String(example === chosen)));
  return list;
}

// What choosing an example makes of the state.
function exampleState(example, state, setup) {
  const next = { ...structuredClone(state), text: example.text || "", example: example.photo || null, photo: null };
  const card = setup.checkpoints.find((item) => item.name === example.checkpoint);
  const first = setup.languages.length && card && card.targets && card.targets[0];
  if (example.language || first) next.language = example.language || first;
  for (const side of ["A", "B"]) {
    const column = example.columns && example.columns[side];
    if (column) Object.assign(next.columns[side], { options: { ...setup.defaults, ...column.options }, edits: structuredClone(column.edits) });
    if (column || example.checkpoint) next.columns[side].checkpoint = example.checkpoint || setup.start.columns[side].checkpoint;
  }
  return next;
}

function sameQuestion(one, other) {
  const asked = ({ text, example, language, columns }, [side, options]) => [text, example, language, columns[side].checkpoint, columns[side].edits, options.map((name) => columns[side].options[name])];
  return ["A", "B"].every((side) => {
    const options = Object.keys(one.columns[side].options).sort();
    return JSON.stringify(asked(one, [side, options])) === JSON.stringify(asked(other, [side, options]));
  });
}
