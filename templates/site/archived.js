// Runs in each archived page before its own scripts, but behind ReplayWeb.page's.
"use strict";
(() => {
  if (!self.wbinfo) {
    // This stands for what is not in the archive or not shown: the banner is to name it too.
    const [, ts, url] = /\/w\/[0-9]+\/([0-9]+)[a-z_]*\/(.*)/.exec(location.href) ?? [];
    if (url && parent === top) parent.postMessage({wb_type: "load", ts, url}, "*");
    return;
  }
  // No policy keeps this from asking other hosts.
  delete self.RTCPeerConnection;
  delete self.webkitRTCPeerConnection;
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
  // In its sandbox a page opens no window, and leads none on but those in it: what a link names
  // leads itself, and the whole page instead of a new window.
  const list = (place) => [place, ...Array.from({length: place.length}, (_, at) => list(place[at])).flat()];
  const lead = (link) => {
    if (!link || /^(?:_self)?$/i.test(link.target) || !link.href) return;
    try {
      if (list(self).some(({name}) => name === link.target)) return;
      const whole = self.__WB_replay_top ?? self, places = list(whole);
      const isParent = /^_parent$/i.test(link.target) && self !== whole;
      const place = isParent ? parent : places.find(({name}) => name === link.target) ?? whole;
      const copy = place.document.importNode(link); // with its address as it was rewritten
      for (const {name} of [...copy.attributes]) if (name !== "href") copy.removeAttribute(name);
      place.document.documentElement.append(copy);
      copy.click();
      copy.remove();
    } catch {
      // What is within belongs to another origin, such as a page of data.
    }
  };
  addEventListener("click", (event) => {
    const link = event.target.closest?.("a, area");
    setTimeout(() => { if (!event.defaultPrevented) lead(link); });
  }, true);
  addEventListener("submit", ({target}) => {
    if (/^_(?!self)/i.test(target.target)) target.target = "_self";
  }, true);
})();
