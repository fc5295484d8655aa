// What comes when a person asks for it: the hands of every section, the menus of words, and curves.
import { mountCurves } from "../../figures/js/curves.js";
import { ClosingHands } from "./closing.js";
import { GateTimes } from "./gatetimes.js";
import { GateHands } from "./holds.js";
import { RowHands } from "./rows.js";
import { StripHands } from "./strips.js";
import { UnitHands } from "./unitrank.js";
import { WayHands } from "./ways.js";
import { WordMenus } from "./wordhands.js";

class Curves {
  constructor(holder, { payload, tables, emit }) {
    this.payload = payload;
    this.drawing = mountCurves(holder, payload, { tables }, emit);
  }

  show(tables) {
    this.drawing.update(this.payload, { tables });
  }
}

const HANDS = { piece: RowHands, cell: RowHands, gates: GateHands, units: UnitHands, times: GateTimes, words: WordMenus, dimmer: StripHands, strips: StripHands, ways: WayHands, closing: ClosingHands, curves: Curves };

/** @param {string} name @param {any} bench @param {any} options @returns {any} */
export function handsOf(name, bench, options) {
  return new HANDS[name](bench, options);
}
