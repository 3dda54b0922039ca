// A Cloudflare Worker that answers from a site: its files are in the R2 bucket SITE, or in ASSETS.
@CORE@
const BASE = '@BASE@';
const CORS = {'Access-Control-Allow-Origin': '*', 'Access-Control-Expose-Headers': 'ETag, Retry-After'};
const GUARD = @GUARD@, PAGES = @PAGES@;
const TYPES = @TYPES@;

// Returns the response with a file, or null without it; 304 if the client has it already.
async function open(env, path, headers) {
  const extension = path.slice(path.lastIndexOf('.') + 1), type = TYPES[extension] || 'text/html';
  const guard = path.startsWith('www/web/in/') ? GUARD : path.startsWith('www/') ? PAGES : {};
  const own = {...CORS, ...guard, 'Cache-Control': 'no-cache', 'Content-Type': type};
  if (/^text|xml$|json$/.test(type) && !/^image/.test(type)) own['Content-Type'] += '; charset=utf-8';
  if (env.SITE) {
    const object = await env.SITE.get(path, headers ? {onlyIf: headers} : {});
    if (!object) return null;
    return new Response(object.body || null,
      {status: object.body ? 200 : 304, headers: {...own, ETag: object.httpEtag}});
  }
  const url = 'https://site/' + path.split('/').map(encodeURIComponent).join('/');
  const response = await env.ASSETS.fetch(new Request(url, {headers: headers || {}}));
  if (response.status !== 200 && response.status !== 304) return null;
  const tag = response.headers.get('ETag');
  if (tag) own.ETag = tag;
  return new Response(response.body, {status: response.status, headers: own});
}

async function sha1(text) {
  const digest = await crypto.subtle.digest('SHA-1', new TextEncoder().encode(text));
  return [...new Uint8Array(digest)].map(byte => byte.toString(16).padStart(2, '0')).join('');
}

async function respondOai(request, query, env) {
  const isPost = request.method === 'POST', held = isPost ? null : request.headers;
  const conditions = new Headers();
  if (held && held.has('If-None-Match')) conditions.set('If-None-Match', held.get('If-None-Match'));
  const read = async path => {
    const response = await open(env, path);
    return response && response.text();
  };
  const form = readForm(query, request.headers.get('Content-Type'), isPost && await request.text());
  const result = await answer(form, {read, open: read, sha1, base: BASE});
  if (result.file) return open(env, result.file, conditions);
  const body = result.parts.join(''), tag = '"' + await sha1(body.replace(HEAD, '')) + '"';
  const same = (conditions.get('If-None-Match') || '').includes(tag);
  return new Response(same ? null : body, {status: same ? 304 : 200, headers: {...CORS,
    'Cache-Control': 'no-cache', 'Content-Type': 'text/xml; charset=utf-8', ETag: 'W/' + tag}});
}

export default {
  async fetch(request, env) {
    const url = new URL(request.url), isOai = /^\/oai\/*$/.test(url.pathname);
    const methods = isOai ? ['GET', 'HEAD', 'POST'] : ['GET', 'HEAD'];
    if (!methods.includes(request.method)) {
      const allow = methods.join(', ');
      return new Response(`Use one of: ${allow}.\n`, {status: 405, headers: {...CORS, Allow: allow}});
    }
    if (isOai) return respondOai(request, url.search.slice(1), env);
    const path = 'www' + decode(url.pathname.replace(/\+/g, '%2B')).replace(/\/+/g, '/');
    const names = [path, path + '.html', path.replace(/\/?$/, '/index.html')];
    if (path.startsWith('www/web/timemap/link/')) {
      names.splice(0, 3, ...url.search ? [] : [path, path + '.link', path + 'index.link']);
    }
    // An escaped slash must not lead out of www/.
    for (const name of path.split('/').includes('..') ? [] : names) {
      const response = await open(env, name, request.headers);
      if (response) return response;
    }
    return new Response('Not found; try / or /oai.\n', {status: 404, headers: CORS});
  },
};
