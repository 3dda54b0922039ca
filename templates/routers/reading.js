
const FORM = 'application/x-www-form-urlencoded';
const REST = /^<resumptionToken[^>\/]*(?:\/>|>[^<]*<\/resumptionToken>)\n$/;
const FORMAT = /<metadataFormat>\s*<metadataPrefix>([^<]*)<[\s\S]*?<\/metadataFormat>\n?/g;

// Returns the pairs of a query and of the body of a POST (null without one), or a text of what is
// wrong with them.
function readForm(query, type, body) {
  if (body && (type || '').split(';')[0].trim().toLowerCase() !== FORM) {
    return 'The body of a POST must be ' + FORM + '.';
  }
  if (query.length + (body || '').length > 65536) {
    return 'The request is longer than 65536 characters.';
  }
  return (query + '&' + (body || '')).split('&').filter(function (part) {
    return part;
  }).map(function (part) {
    const at = (part + '=').indexOf('=');
    return [decode(part.slice(0, at)), decode(part.slice(at + 1))];
  });
}

// Returns the answer to a form: {file} is a file as it is, {parts} the texts and ranges of pages of a
// document. `site` is what a host has: read(path), a promise of a text or null; open(path), of a page,
// which may be a Buffer; sha1(text), of hexadecimal digits; its base URL.
async function answer(pairs, site) {
  const router = await readJson('router.json', site), request = parse(pairs, router);
  const base = site.base || router.base;
  let result = request.faults;
  if (!result.length) result = await find(request, router, site);
  if (result.file) return result;
  const parts = write(request, result, router.response_date, base);
  return {parts: base === router.base ? parts : move(parts, escapeXml(router.base), escapeXml(base))};
}

function move(parts, before, after) {
  const moved = [];
  parts.forEach(function (part) {
    let from = 0;
    for (let at = part.indexOf(before); at >= 0; at = part.indexOf(before, from)) {
      moved.push(part.slice(from, at), after);
      from = at + before.length;
    }
    moved.push(part.slice(from));
  });
  return moved;
}

async function readJson(path, site) {
  const text = await site.read(path);
  return text ? JSON.parse(text) : null;
}

// Returns {file}, {parts}, or faults.
async function find(request, router, site) {
  const values = request.values, id = values.identifier, token = values.resumptionToken;
  const place = await findPlace(id, router, site);
  const unknown = ['idDoesNotExist', 'There is no item ' + show(id || '') + '.'];
  let text;
  switch (request.verb) {
    case 'Identify':
      return readParts('identify.xml', site);
    case 'ListMetadataFormats':
      if (!id) return readParts('formats.xml', site);
      if (!place) return [unknown];
      text = await site.read('formats/' + place[0] + '.xml');
      text = text || '';
      if (router.sifted.indexOf(place[0]) >= 0) text = await sift(text, place[1], place[2], router, site);
      return text.match(FORMAT) ? {parts: [text]}
        : [['noMetadataFormats', 'Items such as ' + show(id) + ' have no format.']];
    case 'ListSets':
      if (!token && !router.has_sets) return [['noSetHierarchy', 'This repository has no sets.']];
      if (!token) return readParts('sets/0.xml', site);
      if (!/^s,[0-9]{1,9}$/.test(token)) return [BAD_TOKEN];
      text = await readParts('sets/' + token.slice(2) + '.xml', site);
      return text || [BAD_TOKEN];
    case 'GetRecord': {
      const row = has(router.formats, values.metadataPrefix) && router.formats[values.metadataPrefix];
      if (place && row && row.kinds.indexOf(place[0]) >= 0) {
        text = await cut(row.r, place[1], place[2], site, router.sifted.indexOf(place[0]) < 0);
      }
      if (text) return text;
      const other = ['cannotDisseminateFormat',
        'This item has no format ' + show(values.metadataPrefix) + '.'];
      return (place ? [] : [unknown]).concat(place || !row ? [other] : []);
    }
    default:
      return listPage(request, router, site);
  }
}

async function readParts(path, site) {
  const text = await site.read(path);
  return text && {parts: [text]};
}

// Returns the kind, position and identifier of an item by that or by another name, or undefined.
async function findPlace(id, router, site) {
  const names = id ? [id, id.replace(/^oai:/, '').toLowerCase()] : [];
  for (let n = 0; n < 2 * names.length; n++) {
    const hash = await site.sha1(names[n >> 1]), key = hash.slice(0, 16);
    const name = n % 2 ? hash.slice(0, router.digits) : 'recent';
    const bucket = await readJson('index/' + name + '.json', site);
    const row = bucket && has(bucket, key) && bucket[key];
    if (row) return [router.kinds[row[0]], row[1], row[2] || id];
  }
}

// Returns the pages of a list, or null: instant, first position and file of each, and whether it is
// one of the list of all records, in which those of a set are to be found.
async function readChain(folder, spec, site) {
  let name = folder + (spec ? '/set/' + spec : '/all');
  if (spec && (spec.length > 200 || spec === '.' || spec === '..')) {
    name = await site.sha1(spec);
    name = folder + '/set/sha1-' + name;
  }
  const segments = await readJson(name + '.json', site), pages = [];
  if (!segments) return null;
  segments.forEach(function (segment) {
    const stem = segment[2] ? folder + '/all/' : name + '/';
    segment[1].forEach(function (first) {
      pages.push([segment[0], first, stem + first + '.xml', !!segment[2]]);
    });
  });
  return pages;
}

// Returns the index of the page that has a position, or 0.
function findPage(pages, position) {
  let low = 0, high = pages.length;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (pages[middle][1] <= position) low = middle; else high = middle;
  }
  return low;
}

// Returns an answer with the record of an item, out of the page that has its position, or undefined.
// `isThere`: all items of its kind are in the list, so that what stands on the page once is the item.
async function cut(folder, position, id, site, isThere) {
  const pages = await readChain(folder, '', site);
  if (!pages || !pages.length) return;
  const page = await site.open(pages[findPage(pages, position)][2]);
  const own = '<identifier>' + escapeXml(id) + '</identifier>', hit = page ? page.indexOf(own) : -1;
  if (hit < 0) return;
  const end = page.indexOf('>', page.indexOf('</record', hit)) + 1; // mostly
  const record = (isThere && page.indexOf(own, hit + 1) < 0 && cutPlain(page, own, hit)) ||
    cutRecord(page.slice(0, end), own, hit) || cutRecord(page, own, hit);
  return record && {parts: [page.slice(0, page.indexOf('<ListRecords>')), '<GetRecord>\n', record,
    '\n</GetRecord>\n</OAI-PMH>\n']};
}

// Returns the record around an identifier, unless it has what may be another one.
function cutPlain(page, own, hit) {
  const part = page.slice(page.lastIndexOf('<record>', hit), page.indexOf('</record', hit) + 9);
  const text = String(part), head = /^<record>\s*<header[^<>]*>\s*/.exec(text);
  return head && text.indexOf(own) === head[0].length && !/<record|<[!?]/.test(text.slice(8)) && part;
}

// Returns the record that begins with an identifier.
function cutRecord(page, own, hit) {
  let record;
  eachRecord(page, function (start, end) {
    if (end < hit) return false;
    const part = page.slice(start, end);
    if (part.indexOf(own) === part.indexOf('<identifier>')) record = part;
    hit = page.indexOf(own, end);
    return record || hit < 0;
  });
  return record;
}

// Returns the parts of a page that are records in a set, neighbours as one.
function choose(page, verb, spec) {
  const mark = '<setSpec>' + escapeXml(spec), chosen = [];
  function seek(from) {
    let at = page.indexOf(mark, from);
    while (at >= 0 && !/[<:]/.test(String(page.slice(at + mark.length, at + mark.length + 1)))) {
      at = page.indexOf(mark, at + 1);
    }
    return at;
  }
  let hit = seek(0);
  function add(start, end) {
    const last = chosen[chosen.length - 1];
    if (last && last[1] + 1 === start) last[1] = end; else chosen.push([start, end]);
    hit = seek(end);
  }
  if (verb === 'ListIdentifiers') {
    while (hit >= 0) add(page.lastIndexOf('<header', hit), page.indexOf('</header>', hit) + 9);
  } else if (hit >= 0) {
    eachRecord(page, function (start, end) {
      if (hit < end && hit < page.indexOf('</header>', start)) add(start, end);
      else if (hit < end) hit = seek(end);
      return hit < 0;
    });
  }
  return chosen.map(function (range) { return page.slice(range[0], range[1] + 1); });
}

// Calls visit(start, end) for each record of a page, until it returns true. Metadata has records of
// its own, and comments and CDATA may have what looks like some. njs takes 1.5 ns a byte to find a
// text, and far longer for expressions over a page.
function eachRecord(page, visit) {
  const list = page.indexOf('<ListRecords>'), plain = page[list + 12];
  function seek(mark, from) {
    const place = page.indexOf(mark, from);
    return place < 0 ? page.length : place;
  }
  let at = list, depth = 0, start = 0, odd = 0, open = 0, close = 0;
  for (;;) {
    if (odd < at) odd = Math.min(seek('<!', at), seek('<?', at));
    if (open < at) open = seek('<record', at);
    if (close < at) close = seek('</record', at);
    if (odd < open && odd < close) {
      const sign = String(page.slice(odd, odd + 3));
      at = seek(sign[1] === '?' ? '?>' : sign === '<!-' ? '-->' : ']]>', odd + 2) + 2;
      continue;
    }
    const from = Math.min(open, close);
    let tag = open < close ? '<record>' : '</record>';
    if (page[from + tag.length - 1] !== plain) tag = readTag(page, from);
    if (!tag) return;
    at = from + tag.length;
    if (tag.slice(-2) === '/>' || !/^<.?record[\s>]/.test(tag)) continue;
    if (from === open) {
      if (!depth++) start = from;
    } else if (!--depth && visit(start, at)) {
      return;
    }
  }
}

function readTag(page, from) {
  for (let end = page.indexOf('>', from); end >= 0; end = page.indexOf('>', end + 1)) {
    const tag = String(page.slice(from, end + 1));
    if (/^(?:"[^"]*"|'[^']*'|[^'">])*>$/.test(tag)) return tag;
  }
}

// Returns a list of formats without those in which an item did not come.
async function sift(text, position, id, router, site) {
  const rows = text.match(FORMAT) || [];
  for (let n = 0; n < rows.length; n++) {
    const prefix = rows[n].replace(FORMAT, '$1');
    const row = has(router.formats, prefix) && router.formats[prefix];
    let record;
    if (row) record = await cut(row.r, position, id, site);
    if (!record) text = text.replace(rows[n], '');
  }
  return text;
}

async function listPage(request, router, site) {
  const values = request.values, token = values.resumptionToken, letter = LETTERS[request.verb];
  const match = token && TOKEN.exec(token), faults = [];
  if (token && (!match || match[0] !== token || match[1] !== letter || !has(router.formats, match[2]))) {
    return [BAD_TOKEN];
  }
  const prefix = token ? match[2] : values.metadataPrefix;
  const spec = (token ? match[4] : values.set) || '', from = values.from || '';
  let until = (token ? match[5] : values.until) || '';
  if (!has(router.formats, prefix)) {
    faults.push(['cannotDisseminateFormat', 'There is no metadata format ' + show(prefix) + ' here.']);
  }
  if (spec && !router.has_sets) faults.push(['noSetHierarchy', 'This repository has no sets.']);
  if (faults.length) return token ? [BAD_TOKEN] : faults;
  if (token && spec && !new RegExp('^(?:' + router.forms.set[0] + ')$').test(spec)) return [BAD_TOKEN];
  if (until.length === 10) until += 'T23:59:59Z';
  const pages = await readChain(router.formats[prefix][letter], spec, site);
  const count = pages ? pages.length : 0, first = token ? Number(match[3]) : 0;
  let at = token ? findPage(pages || [], first) : 0;
  while (at < count && pages[at][0] < from) at++;
  for (; at < count && (!until || pages[at][0] <= until); at++) {
    const file = pages[at][2], shared = pages[at][3], next = pages[at + 1];
    if (token && !until && pages[at][1] === first && !shared) return {file: file};
    const page = await site.open(file);
    let text = token ? '<resumptionToken/>\n' : '', end = page.lastIndexOf('</List');
    if (next && (!until || next[0] <= until)) {
      const parts = [letter, prefix, next[1]].concat(spec || until ? spec : [], until || []);
      text = '<resumptionToken>' + parts.join(',') + '</resumptionToken>\n';
    }
    if (shared) {
      const chosen = choose(page, request.verb, spec), list = page.indexOf('<' + request.verb + '>');
      const head = page.slice(0, list + request.verb.length + 3);
      if (chosen.length) return {parts: [head].concat(chosen, text, page.slice(end))};
      continue; // nothing of the set is left there
    }
    const start = page.lastIndexOf('<resumptionToken');
    if (!REST.test(String(page.slice(start, end)))) return {parts: [page]};
    return {parts: [page.slice(0, start), text, page.slice(end)]};
  }
  return token ? [BAD_TOKEN] : [['noRecordsMatch', spec && !pages
    ? 'There are no records in a set ' + show(spec) + '.'
    : 'Nothing matches, or what matched has changed since.']];
}
