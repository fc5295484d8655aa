// The units of a network over time: unpacking the gates of a trace, ordering units, counting how often they are open or shut.
import { unpack } from "./core.js";

/**
 * @typedef {{values: Int8Array, steps: number, units: number, scale: number, open: boolean, which?: Set<number> | null}} Gate
 *   value = byte * scale; `open`: from 0 to 1; `which`: the only units whose values have come so far
 */

export const GATE_WORDS = {
  input: ["Input gate", "How much of the new candidate each unit lets in: 0 none, 1 all."],
  forget: ["Forget gate", "How much of its cell each unit keeps from the step before: 0 erases, 1 keeps."],
  output: ["Output gate", "How much of its cell each unit shows: 0 hides it, 1 shows it."],
  candidate: ["Candidate", "What each unit would write into its memory, from −1 to 1."],
  cell: ["Cell", "The memory of each unit: not bounded, positive or negative."],
  hidden: ["Hidden state", "What each unit hands on: to the next step, and to what reads this part of the network."],
  update: ["Update gate", "How each unit mixes its old state with the candidate: in a GRU 1 keeps the old state, in a MUT cell 1 takes the candidate."],
  reset: ["Reset gate", "How much of its old state each unit lets into the candidate: 0 none, 1 all."],
};

/** Part of the network -> name of the gate -> its values. @returns {Map<string, Map<string, Gate>>} */
export function readGates(payload) {
  const parts = new Map();
  for (const [path, packed] of Object.entries(payload)) {
    const dot = path.lastIndexOf(".");
    const [part, name] = [path.slice(0, dot), path.slice(dot + 1)];
    if (!parts.has(part)) parts.set(part, new Map());
    const [steps, wide] = packed.shape;
    const values = unpack(packed);
    const [units, which] = packed.which ? [packed.units, new Set(packed.which)] : [wide, null];
    parts.get(part).set(name, { values: which ? spread(values, packed) : values, steps, units, which, scale: packed.scale, open: Boolean(packed.open) });
  }
  return parts;
}

// The columns of a few units at their own places among all.
function spread(values, { shape: [steps, wide], which, units }) {
  const all = new Int8Array(steps * units);
  for (let i = 0; i < steps * wide; i++) all[Math.floor(i / wide) * units + which[i % wide]] = values[i];
  return all;
}

/** @param {string} part such as encoder.0.backward */
export function partName(part) {
  const [side, layer, direction] = part.split(".");
  const where = side === "encoder" ? (direction === "backward" ? "Encoder, right to left" : "Encoder, left to right") : "Decoder";
  return Number(layer) ? `${where}, layer ${Number(layer) + 1}` : where;
}

/** The share of time each unit is nearly shut (below 0.1) and nearly open (above 0.9). @param {Gate} gate */
export function saturation(gate) {
  const shut = new Float32Array(gate.units);
  const open = new Float32Array(gate.units);
  for (let i = 0; i < gate.values.length; i++) {
    const value = gate.values[i] * gate.scale;
    if (value < 0.1) shut[i % gate.units] += 1 / gate.steps;
    else if (value > 0.9) open[i % gate.units] += 1 / gate.steps;
  }
  return { shut, open };
}

/** Units as they stand ("unit"), by "variance", by "saturation", or by how strongly step `at` stands out ("token"). @param {Gate} gate */
export function unitOrder(gate, order, at) {
  const list = Array.from({ length: gate.units }, (_, unit) => unit);
  if (order === "unit") return list;
  const key = new Float32Array(gate.units);
  const { shut, open } = saturation(gate);
  for (let unit = 0; unit < gate.units; unit++) {
    let sum = 0, squares = 0;
    for (let step = 0; step < gate.steps; step++) {
      const value = gate.values[step * gate.units + unit] * gate.scale;
      sum += value;
      squares += value * value;
    }
    const mean = sum / gate.steps;
    if (order === "variance") key[unit] = squares / gate.steps - mean * mean;
    else if (order === "saturation") key[unit] = shut[unit] + open[unit];
    else key[unit] = Math.abs(gate.values[at * gate.units + unit] * gate.scale - mean);
  }
  return list.sort((p, q) => key[q] - key[p] || p - q);
}

/** The size of a unit's value that gets the strongest colour: its own largest; of a unit that stays at one value, as a held one does, the
 * largest of all units. @param {Gate} gate @param {number} unit */
export function strongestOf(gate, unit) {
  let [low, high] = [Infinity, -Infinity];
  for (let i = unit; i < gate.values.length; i += gate.units) [low, high] = [Math.min(low, gate.values[i]), Math.max(high, gate.values[i])];
  const strongest = low === high ? gate.values.reduce((most, value) => Math.max(most, Math.abs(value)), 0) : Math.max(-low, high);
  return Math.max(1e-6, strongest * gate.scale);
}

/** The largest value a gate is drawn for: 1, or of a cell, which has no bound, its own largest. @param {Gate} gate @param {string} name */
export function boundOf(gate, name) {
  return name === "cell" ? gate.scale * 127 : 1;
}
