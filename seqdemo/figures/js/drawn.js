// The common part of the drawings with controls: what the page leaves open they decide themselves, in `own`.

/** @template {object} Own */
export class Drawn {
  /** @param {HTMLElement} element @param {import("./grid.js").Emit} emit @param {Own} own */
  constructor(element, emit, own) {
    this.element = element;
    this.emit = emit;
    this.own = own;
    this.told = 0; // how often the page has updated the drawing
  }

  show() {}

  take(payload, view) {
    this.payload = payload;
    this.given = view;
    this.told += 1;
  }

  change(name, value) {
    this.own = { ...this.own, [name]: value };
    const { told } = this;
    this.emit(name, value);
    if (this.told === told) this.show(); // else whoever heard it has updated the drawing
  }
}

/** What a page holds of a drawing; `more` are further functions. @template {object} More @param {any} drawing @param {More} [more] */
export function mounted(drawing, payload, view, more) {
  drawing.update(payload, view);
  return { update: (next, seen) => drawing.update(next, seen), destroy: () => drawing.destroy(), ...more };
}
