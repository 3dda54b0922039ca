// Runs in each archived page before its own scripts, but behind ReplayWeb.page's.
"use strict";
(() => {
  // It holds back what a script writes until an inline script ends. One that is inserted later than
  // it should be then writes into a page that is whole, so that the page is lost. Here a script's
  // text is written when the script ends, as browsers do.
  let isHeld = false;
  const close = document.close;
  document.close = Document.prototype.close = function () {
    isHeld = false;
    return close.apply(this, arguments);
  };
  for (const name of ["write", "writeln"]) {
    const write = document[name];
    document[name] = Document.prototype[name] = function () {
      write.apply(this, arguments);
      if (document.readyState === "complete") return;
      isHeld = true;
      queueMicrotask(() => { if (isHeld) document.close(); });
    };
  }
})();
