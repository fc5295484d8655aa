// The state of a page as a link, and results as files. Only what differs from the start is written.

function stateToQuery(state, setup) {
  const query = new URLSearchParams();
  if (state.text !== setup.start.text) query.set("text", state.text);
  if (state.language && state.language !== setup.start.language) query.set("language", state.language);
  if (state.example && state.example !== setup.start.example) query.set("photo", state.example);
  for (const side of ["A", "B"]) {
    const [now, first] = [state.columns[side], setup.start.columns[side]];
    const name = (key) => `${side.toLowerCase()}.${key}`;
    if (now.checkpoint !== first.checkpoint) query.set(name("checkpoint"), now.checkpoint);
    const known = setup.checkpoints.find((item) => item.name === now.checkpoint);
    if (known && known.revision) query.set(name("revision"), known.revision);
    for (const [key, value] of Object.entries(now.options)) if (value !== first.options[key]) query.set(name(key), String(value));
    if (now.edits.length) query.set(name("edits"), JSON.stringify(now.edits));
    if (state.picked[side]) query.set(name("pick"), state.picked[side].join("."));
  }
  if (state.tab !== setup.tab) query.set("tab", state.tab);
  if (state.treeSide !== "B") query.set("tree", state.treeSide);
  return query;
}

// -> {state, notes, absent}: what the link asks for, over the start; anything unknown is left out, `absent` are models of the Hub.
function queryToState(query, setup) {
  const state = structuredClone({ ...setup.start, picked: { A: null, B: null }, tab: setup.tab, treeSide: "B" });
  const [notes, absent] = [[], []];
  if (query.has("text")) state.text = query.get("text").slice(0, setup.limits.characters);
  if (query.has("language") && setup.languages.some(([tag]) => tag === query.get("language"))) state.language = query.get("language");
  if (query.has("photo") && setup.examples.some((example) => example.photo === query.get("photo"))) state.example = query.get("photo");
  for (const side of ["A", "B"]) {
    const spec = state.columns[side];
    const get = (key) => query.get(`${side.toLowerCase()}.${key}`);
    const wanted = get("checkpoint") || spec.checkpoint;
    const known = setup.checkpoints.find((item) => item.name === wanted);
    if (known) spec.checkpoint = wanted;
    else {
      notes.push(`This link asks for the model “${wanted.slice(0, 300)}”, which is not loaded here.`);
      if (wanted.includes("/") && !absent.includes(wanted)) absent.push(wanted);
    }
    if (known && get("revision") && known.revision && get("revision") !== known.revision) {
      notes.push(`This link was made with another revision of ${wanted}; results may differ.`);
    }
    for (const field of [...setup.options, { name: "strategy", kind: "choice", choices: setup.strategies }]) {
      const value = get(field.name);
      if (value === null) continue;
      if (field.kind === "choice") {
        if (field.choices.some(([key]) => key === value)) spec.options[field.name] = value;
      } else if (Number.isFinite(Number(value))) spec.options[field.name] = Math.max(field.min, Math.min(field.max, Number(value)));
    }
    try {
      const edits = JSON.parse(get("edits") || "[]");
      if (Array.isArray(edits)) spec.edits = edits.filter((edit) => edit && typeof edit === "object" && typeof edit.kind === "string").slice(0, 20);
    } catch {
      notes.push("The edits in this link cannot be read; they were left out.");
    }
    if (/^\d+(\.\d+)*$/.test(get("pick") || "")) state.picked[side] = get("pick").split(".").map(Number);
  }
  if (["text", "tree", "alignment", "gates", "attention"].includes(query.get("tab"))) state.tab = query.get("tab");
  if (query.get("tree") === "A") state.treeSide = "A";
  return { state, notes, absent };
}

function writeQuery(query) {
  const theme = new URLSearchParams(location.search).get("__theme");
  if (theme) query.set("__theme", theme);
  const text = query.toString();
  history.replaceState(null, "", text ? `${location.pathname}?${text}` : location.pathname); // a bare ?… would lead to the base of all pages
}

async function copyText(text, note) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = el("textarea", { "aria-hidden": "true" });
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  if (note) note();
}

function csvLine(cells) {
  return cells.map((cell) => (/[",\n\r]|^[=+\-@]/.test(String(cell)) ? `"${String(cell).replace(/"/g, '""')}"` : String(cell))).join(",");
}

function nbestCsv(columns) {
  const lines = [csvLine(["column", "rank", "text", "log_probability", "normalised_score", "finished", "tokens"])];
  for (const [side, column] of Object.entries(columns)) {
    column.hypotheses.forEach((item, i) => lines.push(csvLine([side, i + 1, item.text, item.total, item.score, item.finished, item.pieces.join(" ")])));
  }
  return lines.join("\r\n") + "\r\n";
}

function pythonString(text) {
  return JSON.stringify(text).replace(/[\u007f-\uffff]/g, (c) => (/[\p{L}\p{M}\p{N}\p{P}]/u.test(c) ? c : "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0")));
}

function pythonValue(value) {
  if (typeof value === "string") return pythonString(value);
  if (Array.isArray(value)) return `(${value.map(pythonValue).join(", ")}${value.length === 1 ? "," : ""})`;
  return value === null ? "None" : value === true ? "True" : value === false ? "False" : String(value);
}

function editPython(edit) {
  const { kind, ...fields } = edit;
  return `${kind}(${Object.entries(fields).filter(([, value]) => value !== null).map(([name, value]) => `${name}=${pythonValue(value)}`).join(", ")})`;
}

// `before`: of a language model, how many pieces of the output are the person's own text.
function pythonSnippet(state, setup, side, before = 0) {
  const own = state.columns[side];
  const spec = { ...own, edits: own.edits.map((edit) => (edit.position === undefined ? edit : { ...edit, position: edit.position + before })) };
  const names = new Set(optionsFor(setup, spec.options.strategy, spec.options).map((field) => field.name));
  const options = Object.entries(spec.options).filter(([name, value]) => name === "strategy" || (names.has(name) && value !== setup.library[name]));
  const kinds = [...new Set(spec.edits.map((edit) => edit.kind))].sort();
  const [name, commit] = spec.checkpoint.split("@");
  const given = setup.task === "caption" ? 'Image.open("photograph.jpg")' : pythonString(state.text);
  const revision = commit ? `, revision=${pythonString(commit)}` : "";
  return [
    ...(setup.task === "caption" ? ["from PIL import Image", ""] : []),
    "from seqdemo.checkpoints import load",
    "from seqdemo.config import SearchOptions",
    ...(kinds.length ? [`from seqdemo.edits import ${kinds.join(", ")}`] : []),
    "from seqdemo.playground import run",
    "",
    `checkpoint = load(${pythonString(name)}${revision})`,
    `options = SearchOptions(${options.map(([name, value]) => `${name}=${pythonValue(value)}`).join(", ")})`,
    `result = run(checkpoint, ${given}, options${kinds.length ? `, edits=(${spec.edits.map(editPython).join(", ")},)` : ""}${setup.languages.length ? `, language=${pythonString(state.language)}` : ""})`,
    "for hypothesis, text in zip(result.hypotheses, result.texts):",
    '    print(f"{hypothesis.total:8.3f} {hypothesis.score:8.3f}  {text}")',
    "",
  ].join("\n");
}
