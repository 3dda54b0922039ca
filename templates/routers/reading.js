
const FORM = 'application/x-www-form-urlencoded';
const REST = /<resumptionToken[^>\/]*(?:\/>|>([^<]*)<\/resumptionToken>)\n?(?=<\/List)/;
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

// Returns the answer to a form: {file} is a file as it is, {body} a document. `site` is what a host
// has: read(path), a promise of a text or null; sha1(text), one of hexadecimal digits; its base URL.
async function answer(pairs, site) {
  const router = await readJson('router.json', site), request = parse(pairs, router);
  const base = site.base || router.base;
  let result = request.faults;
  if (!result.length) result = await find(request, router, site);
  if (result.file) return result;
  const body = write(request, result, router.response_date, base);
  return {body: base === router.base ? body : body.split(escapeXml(router.base)).join(escapeXml(base))};
}

async function readJson(path, site) {
  const text = await site.read(path);
  return text ? JSON.parse(text) : null;
}

// Returns XML, {file}, or faults.
async function find(request, router, site) {
  const values = request.values, id = values.identifier, token = values.resumptionToken;
  const place = await findPlace(id, router, site);
  const unknown = ['idDoesNotExist', 'There is no item ' + show(id || '') + '.'];
  let text;
  switch (request.verb) {
    case 'Identify':
      return site.read('identify.xml');
    case 'ListMetadataFormats':
      if (!id) return site.read('formats.xml');
      if (!place) return [unknown];
      text = await site.read('formats/' + place[0] + '.xml');
      text = text || '';
      if (router.sifted.indexOf(place[0]) >= 0) text = await sift(text, place[1], id, router, site);
      return text.match(FORMAT) ? text
        : [['noMetadataFormats', 'Items such as ' + show(id) + ' have no format.']];
    case 'ListSets':
      if (!token && !router.has_sets) return [['noSetHierarchy', 'This repository has no sets.']];
      if (!token) return site.read('sets/0.xml');
      if (!/^s,[0-9]{1,9}$/.test(token)) return [BAD_TOKEN];
      text = await site.read('sets/' + token.slice(2) + '.xml');
      return text || [BAD_TOKEN];
    case 'GetRecord': {
      const row = has(router.formats, values.metadataPrefix) && router.formats[values.metadataPrefix];
      if (place && row && row.kinds.indexOf(place[0]) >= 0) text = await cut(row.r, place[1], id, site);
      if (text) return [['<GetRecord>\n' + text + '\n</GetRecord>\n']];
      const other = ['cannotDisseminateFormat',
        'This item has no format ' + show(values.metadataPrefix) + '.'];
      return (place ? [] : [unknown]).concat(place || !row ? [other] : []);
    }
    default:
      return listPage(request, router, site);
  }
}

// Returns the kind and position of an item, or undefined.
async function findPlace(id, router, site) {
  if (!id) return;
  const hash = await site.sha1(id), key = hash.slice(0, 16);
  const names = ['recent', hash.slice(0, router.digits)];
  for (let n = 0; n < 2; n++) {
    const bucket = await readJson('index/' + names[n] + '.json', site);
    if (bucket && has(bucket, key)) return [router.kinds[bucket[key][0]], bucket[key][1]];
  }
}

// Returns the folder and pages of a list, each an instant and a first position, or null.
async function readChain(folder, spec, site) {
  let name = folder + (spec ? '/set/' + spec : '/all');
  if (spec && (spec.length > 200 || spec === '.' || spec === '..')) {
    name = await site.sha1(spec);
    name = folder + '/set/sha1-' + name;
  }
  const segments = await readJson(name + '.json', site), pages = [];
  if (!segments) return null;
  segments.forEach(function (segment) {
    segment[1].forEach(function (first) { pages.push([segment[0], first]); });
  });
  return {name: name, pages: pages};
}

// Returns the record of an item out of the page that has its position, or undefined. Metadata has
// records of its own, and comments and CDATA may have what looks like some.
async function cut(folder, position, id, site) {
  const chain = await readChain(folder, '', site);
  const before = chain ? chain.pages.filter(function (page) { return page[1] <= position; }) : [];
  if (!before.length) return;
  const page = await site.read(chain.name + '/' + before[before.length - 1][1] + '.xml');
  const own = '<identifier>' + escapeXml(id) + '</identifier>';
  if (!page || page.indexOf(own) < 0) return;
  if (!/<!|<[?](?!xml version)/.test(page)) return cutPlain(page, own);
  const tags = /<!--[\s\S]*?-->|<!\[CDATA\[[\s\S]*?\]\]>|<(\/?)record(?=[\s\/>])(?:"[^"]*"|'[^']*'|[^'">])*>/g;
  let depth = 0, start = 0, tag;
  while ((tag = tags.exec(page))) {
    if (tag[1] === undefined || /\/>$/.test(tag[0])) continue;
    if (tag[1] && --depth === 0) {
      const record = page.slice(start, tags.lastIndex), at = record.indexOf('<identifier>');
      if (record.slice(at, at + own.length) === own) return record;
    } else if (!tag[1] && depth++ === 0) {
      start = tag.index;
    }
  }
}

// Does the same in a page where each `<record` is a tag: without expressions over all of it, which
// take njs half a second.
function cutPlain(page, own) {
  function count(text) {
    return text.split('<record').slice(1).filter(function (part) {
      return !/\/>$/.test(/^(?:"[^"]*"|'[^']*'|[^'">])*>/.exec(part)[0]);
    }).length - text.split('</record').length + 1;
  }
  for (let at = page.indexOf(own); at >= 0; at = page.indexOf(own, at + 1)) {
    const start = page.lastIndexOf('<record>', at);
    if (start < 0 || !/^<record>\s*<header[^<>]*>\s*$/.test(page.slice(start, at))) continue;
    if (count(page.slice(0, start))) continue;
    for (let end = page.indexOf('</record>', at); end >= 0; end = page.indexOf('</record>', end + 9)) {
      const record = page.slice(start, end + 9);
      if (!count(record)) return record;
    }
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
  const chain = await readChain(router.formats[prefix][letter], spec, site);
  const pages = chain ? chain.pages : [], first = token ? Number(match[3]) : 0;
  let at = 0;
  while (at < pages.length && (pages[at][1] < first || pages[at][0] < from)) at++;
  if (at === pages.length || (until && pages[at][0] > until)) {
    return token ? [BAD_TOKEN] : [['noRecordsMatch', spec && !chain
      ? 'There are no records in a set ' + show(spec) + '.'
      : 'Nothing matches, or what matched has changed since.']];
  }
  const file = chain.name + '/' + pages[at][1] + '.xml', next = pages[at + 1];
  if (token && !until && pages[at][1] === first) return {file: file};
  const text = await site.read(file);
  if (!next || (until && next[0] > until)) return text.replace(REST, token ? '<resumptionToken/>\n' : '');
  return until ? text.replace(REST, function (all, rest) {
    const tail = rest.split(',').length > 3 ? ',' + until : ',,' + until;
    return '<resumptionToken>' + rest + tail + '</resumptionToken>\n';
  }) : text;
}
