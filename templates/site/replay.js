// Shows an archived page with its scripts, and lets the banner follow it. It is on another host.
"use strict";
const frame = document.querySelector("main iframe");
if (frame) {
  const base = location.href.slice(0, location.href.indexOf("/replay/") + 8);
  const {origin} = new URL(frame.dataset.src);
  let wanted = location.href.replace(location.hash, "");
  frame.src = frame.dataset.src + location.hash;
  addEventListener("message", async ({data, origin: sender, source}) => {
    if (sender !== origin || source !== frame.contentWindow) return;
    if (!["load", "replace-url"].includes(data?.wb_type)) return;
    const [url, ...mark] = String(data.url).split("#");
    const address = `${base}${data.ts}/${url}`;
    if (address === wanted) return;
    wanted = address;
    const reply = await fetch(address);
    const page = new DOMParser().parseFromString(await reply.text(), "text/html");
    const banner = page.querySelector("header.banner");
    if (address !== wanted || !banner || !reply.url.startsWith(base)) return;
    if (reply.ok && !page.querySelector("main iframe")) {
      location.replace(reply.url);
      return;
    }
    document.querySelector("header.banner").replaceWith(banner);
    document.title = page.title;
    history.replaceState(null, "", [reply.url, ...mark].join("#"));
  });
}
