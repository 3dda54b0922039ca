// Copies the text beside a button, and shows the place within an archived page. Pages work without.
"use strict";
const archived = document.querySelector(".replay iframe[src]");
if (archived && location.hash) {
  const place = archived.src + location.hash; // loaded already, it is not loaded again
  archived.addEventListener("load", () => { archived.src = place; }, {once: true});
}
if (navigator.clipboard) {
  const label = document.currentScript.dataset.copy;
  for (const block of document.querySelectorAll("pre.command, .copy")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copier";
    button.textContent = label;
    button.addEventListener("click", () => {
      navigator.clipboard.writeText(block.textContent.trim()).then(() => {
        button.textContent = "✓";
        setTimeout(() => { button.textContent = label; }, 1500);
      });
    });
    block.after(button);
  }
}
