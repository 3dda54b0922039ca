// Runs the installed service worker of ReplayWeb.page. Nothing that it answers may ask other hosts.
"use strict";
const archived = `${registration.scope}w/`;
const policy = "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob: mediastream:; " +
  `frame-src ${archived} data: blob:; form-action ${archived}; object-src 'none'`;

// A frame in a sandbox shows no other files; the page with the banner says so, and is told of it.
const shown = /^$|^(?:text|image|audio|video)\/|[/+](?:xml|json|javascript)\b/;
const note = `<!DOCTYPE html><script src="${registration.scope}static/proxy/archived.js"></script>`;

async function guard(answer, isFrame) {
  const response = await answer;
  if (response.type === "error" || response.status < 200 || response.headers.has("Location")) {
    return response;
  }
  const headers = new Headers(response.headers), {status, statusText} = response;
  const isNoted = isFrame && !shown.test(headers.get("Content-Type") ?? "");
  if (isNoted) headers.set("Content-Type", "text/html");
  if (isNoted) headers.delete("Content-Length");
  headers.set("Content-Security-Policy", policy); // its own lets pages open sockets to any host
  headers.set("X-DNS-Prefetch-Control", "off");
  return new Response(isNoted ? note : response.body, {status, statusText, headers});
}

const {respondWith} = FetchEvent.prototype;
FetchEvent.prototype.respondWith = function (answer) {
  const {destination} = this.request, isRun = /document|frame|worker|object|embed/.test(destination);
  return respondWith.call(this, isRun ? guard(answer, destination.endsWith("frame")) : answer);
};
addEventListener("fetch", (event) => {
  const {destination, url} = event.request;
  // The server has the loader, and leads a page in a window of its own to the one with a banner.
  if (destination === "document" || /\/replay\/[0-9]+\/$/.test(url)) event.stopImmediatePropagation();
});
importScripts("sw.js");
