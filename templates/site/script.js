// Adds a button that copies the text beside it. Pages work without it.
"use strict";
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
