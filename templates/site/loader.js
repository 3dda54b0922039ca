// Registers the service worker in the frame, and makes way for the page that is named behind the #.
"use strict";
(async () => {
  const [note] = document.getElementsByTagName("p");
  note.hidden = true;
  try {
    const {serviceWorker} = navigator, scope = new URL("..", location).href;
    await serviceWorker.register(`${scope}worker.js?injectScripts=archived.js`, {scope});
    const {active} = await serviceWorker.ready;
    const prefix = location.href.replace(location.hash, ""), name = prefix.split("/").at(-2);
    const added = new Promise((resolve) => {
      serviceWorker.addEventListener("message", ({data}) => {
        if (data.msg_type === "collAdded" && data.name === name) resolve();
      });
      serviceWorker.startMessages();
    });
    active.postMessage({
      msg_type: "addColl",
      name,
      type: "remotewarcproxy",
      file: {sourceUrl: `proxy:${prefix}`},
      extraConfig: {prefix, sourceType: "kiwix", notFoundPageUrl: `${scope}missing`},
    });
    await added;
    location.replace(`${scope}w/${name}/${name}mp_/${location.hash.slice(1)}`);
  } catch {
    note.hidden = false;
  }
})();
