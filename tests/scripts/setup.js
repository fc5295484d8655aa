// A small page: two models, one of them with a revision, greedy against beam.
const column = (strategy) => ({ checkpoint: "m", edits: [], options: { strategy, beam: 5 } });

/** @type {any} */
export const SETUP = {
  task: "translate", page: "", tab: "tree", limits: { characters: 1000 }, languages: [], examples: [], defaults: { strategy: "beam", beam: 5 },
  strategies: [["greedy", "Greedy"], ["beam", "Beam"]], checkpoints: [{ name: "m", revision: "r1", attention: true }, { name: "n" }],
  options: [{ name: "beam", label: "Beam size", kind: "int", min: 1, max: 100, for: ["beam"] }], library: { beam: 5 },
  start: { text: "a", language: null, columns: { A: column("greedy"), B: column("beam") } },
};

/** @type {any} */
export const SPEAKING = {
  ...SETUP, languages: [["hi", "Hindi"], ["ur", "Urdu"]],
  checkpoints: [{ name: "m", targets: ["hi", "ur"], attention: true }, { name: "n", targets: ["hi"] }],
  start: { ...SETUP.start, language: "ur" },
};

export const after = (state, ...changes) => changes.reduce((next, change) => change(next), state);
