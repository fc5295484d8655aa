// The controls of a column, built from the list of options the server sends; names and limits are the command line's.
import { el, tipFor } from "../../figures/js/core.js";

export function optionField(field, value, onChange, side) {
  const id = `s-${side}-${field.name}`;
  const change = (event) => {
    const read = event.target.type === "checkbox" ? event.target.checked : field.kind === "choice" ? event.target.value : Number(event.target.value);
    if (field.kind !== "choice" && (event.target.value === "" || !Number.isFinite(read) || !event.target.checkValidity())) {
      event.target.setAttribute("aria-invalid", "true");
      return;
    }
    event.target.removeAttribute("aria-invalid");
    onChange(field.name, read);
  };
  const input = field.kind === "choice"
    ? el("select", { id, on: { change } }, field.choices.map(([key, label]) => el("option", { value: key, selected: key === value }, label)))
    : el("input", { id, type: "number", min: field.min, max: field.max, step: field.kind === "int" ? 1 : "any", value, on: { input: change }, inputmode: field.kind === "int" ? "numeric" : "decimal" });
  if (field.kind === "int" || field.kind === "choice") input.setAttribute("data-option", field.name);
  const label = tipFor(el("label", { for: id }, field.label, field.zero ? ` (0: ${field.zero})` : null), () => [field.label, field.help]);
  return el("div", { class: "s-field" }, label, input);
}

export function optionsFor(setup, strategy, options) {
  return setup.options.filter((field) => field.for.includes(strategy) && (!field.when || options[field.when[0]] === field.when[1] || field.when[1] === "*" && options[field.when[0]] !== field.when[2]));
}

// How many options differ from those at the start.
export function changedOptions(setup, spec, which = (field) => !field.front) {
  return optionsFor(setup, spec.options.strategy, spec.options).filter((field) => which(field) && spec.options[field.name] !== setup.defaults[field.name]).length;
}

/** The controls behind "Options"; those that are rarely wanted are `rare`. */
export function optionsPanel(setup, spec, onChange, side, rare) {
  const fields = optionsFor(setup, spec.options.strategy, spec.options).filter((field) => !field.front && Boolean(field.rare) === rare);
  return el("div", { class: "s-fields" }, fields.map((field) => optionField(field, spec.options[field.name], onChange, side)));
}
