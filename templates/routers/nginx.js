@CORE@
import fs from 'fs';
import crypto from 'crypto';

function sha1(text) {
  return crypto.createHash('sha1').update(text).digest('hex');
}

async function oai(r) {
  const root = r.variables.sheaf_root + '/', site = {base: r.variables.sheaf_base, sha1: sha1, tag: ''};
  site.read = function (path) {
    try {
      return fs.readFileSync(root + path, 'utf8');
    } catch (e) {
      return null;
    }
  };
  site.open = function (path) { // bytes: njs takes a hundred times as long for a text
    try {
      const row = fs.statSync(root + path);
      site.tag += row.mtimeMs + ' ' + row.size + ' ';
      return fs.readFileSync(root + path);
    } catch (e) {
      return null;
    }
  };
  const form = readForm(r.variables.args || '', r.headersIn['Content-Type'], r.method === 'POST' && r.requestText);
  const result = await answer(form, site);
  if (result.file && r.method !== 'POST') {
    r.internalRedirect('/sheaf-page/' + result.file);
    return;
  }
  const parts = result.parts || [site.open(result.file)];
  const texts = parts.filter(function (part) { return typeof part === 'string'; });
  const tag = 'W/"' + sha1(site.tag + texts.join('').replace(HEAD, '')) + '"';
  r.headersOut.ETag = tag;
  if (r.method !== 'POST' && (r.headersIn['If-None-Match'] || '').indexOf(tag.slice(2)) >= 0) {
    r.return(304);
    return;
  }
  r.headersOut['Content-Type'] = 'text/xml'; // with a charset, it would not be compressed
  r.return(200, Buffer.concat(parts.map(function (part) {
    return typeof part === 'string' ? Buffer.from(part) : part;
  })));
}

export default {oai: oai};
