// Runs the installed service worker of ReplayWeb.page. Nothing that it answers may ask other hosts.
"use strict";
const archived = `${registration.scope}w/`;
const policy = "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob: mediastream:; " +
  `frame-src ${archived} data: blob:; form-action ${archived}; object-src 'none'`;

async function guard(answer) {
  const response = await answer;
  if (response.type === "error" || response.status < 200 || response.headers.has("Location")) {
    return response;
  }
  const headers = new Headers(response.headers), {status, statusText} = response;
  headers.set("Content-Security-Policy", policy); // its own lets pages open sockets to any host
  headers.set("X-DNS-Prefetch-Control", "off");
  return new Response(response.body, {status, statusText, headers});
}

const {respondWith} = FetchEvent.prototype;
FetchEvent.prototype.respondWith = function (answer) {
  const isRun = /document|frame|worker|object|embed/.test(this.request.destination);
  return respondWith.call(this, isRun ? guard(answer) : answer);
};
addEventListener("fetch", (event) => {
  const {destination, url} = event.request;
  // The server has the loader, and leads a page in a window of its own to the one with a banner.
  if (destination === "document" || /\/replay\/[0-9]+\/$/.test(url)) event.stopImmediatePropagation();
});
importScripts("sw.js");
