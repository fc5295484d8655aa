// The script that a page loads on demand, by its address, or through the component if the document has none.

let coming = null;
/** @type {any} */
let component = null;

/** The component is mounted: keep its server functions. */
export function laterBy(server) {
  component = server;
}

/** The module behind import("./hands.js"). @returns {Promise<any>} */
export function later() {
  coming = coming || fetchLater();
  coming.catch(() => (coming = null)); // the next call tries again
  return coming;
}

async function fetchLater() {
  const page = /** @type {any} */ (window).seqdemo;
  const script = document.createElement("script");
  const own = /** @type {HTMLScriptElement | null} */ (document.querySelector("script[src*='seqdemo-assets/pages-']"));
  if (own) {
    script.src = own.src.replace(/[^/]*$/, page.laterName);
    await new Promise((done, fail) => {
      script.onload = done;
      script.onerror = fail;
      document.head.append(script);
    });
  } else {
    script.textContent = await component.later_file();
    document.head.append(script);
  }
  return page.laterModule;
}
