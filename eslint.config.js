// What tsc does not see: names that nobody uses, == for ===, var, conditions that are constant, and other slips.
import js from "@eslint/js";
import globals from "globals";

export default [
  { ignores: ["**/.venv/**", "build/**", "runs/**"] },
  js.configs.recommended,
  {
    languageOptions: { ecmaVersion: 2025, sourceType: "module", globals: { ...globals.browser } },
    rules: {
      eqeqeq: "error",
      "no-var": "error",
      "prefer-const": ["error", { destructuring: "all" }],
      "no-unused-vars": ["error", { args: "none" }],
      "no-control-regex": "off", // scripts that make hidden characters visible have to name them
      "no-misleading-character-class": "off",
    },
  },
  { files: ["tests/scripts/**/*.js"], languageOptions: { globals: { ...globals.node } } },
];
