// The tours of the pages as data. A step is the state it is shown in (as a link tells it), the targets it points at (the first one
// that is visible), and its sentence. `next` is the page's first hint, before any tour.

/**
 * @typedef {{state: string, targets: string[], says: string}} TourStep
 * @typedef {{next: string, targets: string[], steps: TourStep[]}} Tour
 */

const OUTPUT_B = "#s-column-b .s-output";
const DROPPED = "[role=treeitem][aria-label*='pruned']";
const TAKE = ".s-card .s-primary";
const PAGE_LINKS = ".s-header nav";

/** @type {Object<string, Tour>} */
export const TOURS = {
  translate: {
    next: "Point at a word of A or B (or tap it): the words it was translated from light up.",
    targets: [OUTPUT_B],
    steps: [
      { state: "", targets: [OUTPUT_B], says: "A and B are two searches through the same network, and the sentence above them says what the difference was. Point at a word on either side: its partners light up." },
      { state: "tab=tree&pruned=1", targets: [TAKE, DROPPED], says: "The search tree holds every word that was considered. Click a word with a dashed box, which was dropped, then “Take this”: B is decoded again with that word forced. The price is what the untouched model loses by it." },
      { state: "tab=attention", targets: ["[data-key=twin]"], says: "This button gives B a model that was trained without attention. Press it, then type a longer sentence above. Below the button stands the quality of both models by the length of the input." },
      { state: "tab=tree", targets: ["#s-column-b .s-strategy"], says: "Set B to “Exact”: it proves which output is the best of all. That is often shorter and worse than what beam search finds. In its tree each box unfolds the best word it did not follow, and by how much that missed." },
      { state: "", targets: [PAGE_LINKS], says: "Go on with the other pages: Transliterate writes one word in twelve languages, Caption shows where each word of a caption looked, and Language model finds the unit that knows it is inside a quotation." },
    ],
  },
  transliterate: {
    next: "Choose another language for the same word.",
    targets: ["#s-language"],
    steps: [
      { state: "", targets: ["#s-language"], says: "The model writes the sounds of one word in several scripts. Choose another language here: the word stays, and both searches spell it again." },
      { state: "tab=alignment", targets: ["#s-panel-alignment canvas"], says: "Each row is a letter that was written, each column a letter that was read. Point at a cell to see how much of the attention went there. Does it look at the letter it writes?" },
      { state: "tab=tree&pruned=1", targets: [TAKE, DROPPED], says: "Every spelling the search considered stands in the tree. Click a dashed box, then “Take this”: B spells the word again with that letter forced, and tells the price." },
    ],
  },
  caption: {
    next: "Point at a word of the caption (or tap it): the photograph stays bright where the model looked.",
    targets: [".s-overlay-words"],
    steps: [
      { state: "tab=alignment", targets: [".s-overlay-words"], says: "Point at a word, or click it: the photograph stays bright where the model looked while it wrote that word." },
      { state: "tab=alignment", targets: [".s-trust"], says: "How far should one trust this map? Compare how often it points at the thing named with how often the middle of the picture does." },
      { state: "tab=alignment", targets: ["#s-photo"], says: "Choose a photograph of your own, or paste one. It is deleted from this server within the hour." },
    ],
  },
  complete: {
    next: "Press “Draw again”: sampling goes on from the same beginning in another way.",
    targets: ["#s-column-b .s-draw", "#s-column-b .s-strategy"],
    steps: [
      { state: "tab=text", targets: [".s-text"], says: "The colour of each letter is the value of one unit of the network. This unit was measured to follow something in the text: the sentence above the text tells what." },
      { state: "tab=text", targets: ["[aria-label='Next unit']"], says: "Press this button to look at the next unit: hardly any can be read like the first one. The buttons above find those that can." },
      { state: "tab=text&by=probability", targets: [".s-text"], says: "Now the colour tells how likely the model found each letter before it came. Where is it surprised: inside a word, or where one begins?" },
      { state: "tab=text", targets: ["#s-column-b .s-draw", "#s-column-b .s-strategy"], says: "B draws each letter at random by its probability. Draw again, then raise the temperature to 1.5 and see what falls apart first." },
    ],
  },
};
