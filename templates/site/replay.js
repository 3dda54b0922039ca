// Registers the installed service worker, and shows the page that the address names behind its #.
"use strict";
const {stamp, place, calm} = document.currentScript.dataset;
const url = location.hash.slice(1);

async function show() {
  await navigator.serviceWorker.register(`${place}sw.js?injectScripts=archived.js`, {scope: place});
  const {active} = await navigator.serviceWorker.ready;
  const added = new Promise((resolve) => {
    navigator.serviceWorker.addEventListener("message", ({data}) => {
      if (data.msg_type === "collAdded" && data.name === stamp) resolve();
    });
    navigator.serviceWorker.startMessages();
  });
  const base = `${place}${stamp}/`;
  active.postMessage({
    msg_type: "addColl",
    name: stamp,
    type: "remotewarcproxy",
    file: {sourceUrl: `proxy:${base}`},
    extraConfig: {
      prefix: base,
      sourceType: "kiwix",
      // Its own policy would let pages open sockets to any host.
      csp: "default-src 'unsafe-eval' 'unsafe-inline' 'self' data: blob: mediastream:; " +
        "form-action 'self'; object-src 'none'",
    },
  });
  await added;
  const frame = document.createElement("iframe");
  frame.name = "___wb_replay_top_frame"; // by this name the worker's script knows the top
  frame.title = url;
  frame.referrerPolicy = "no-referrer-when-downgrade";
  frame.sandbox = "allow-scripts allow-same-origin allow-forms allow-modals allow-popups";
  frame.src = `${place}w/${stamp}/${stamp}mp_/${url}`;
  document.querySelector("main").replaceChildren(frame);
}

if (location.origin !== new URL(place).origin) {
  location.replace(`${place}${stamp}/${location.hash}`);
} else if (/^https?:\/\//.test(url)) {
  document.querySelector(".url").textContent = url;
  document.querySelector("#calm").href = `${calm}/${stamp}/${url.replaceAll("#", "%23")}`;
  if (navigator.serviceWorker) show();
}
addEventListener("hashchange", () => location.reload());
