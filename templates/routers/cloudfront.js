import crypto from 'crypto';
@PARSER@
const ROUTER = @DATA@;

function respond(status, type, body) {
  return {statusCode: status, statusDescription: status === 200 ? 'OK' : 'Method Not Allowed', body: body,
    headers: {'content-type': {value: type + '; charset=utf-8'}, 'cache-control': {value: 'no-cache'},
      'access-control-allow-origin': {value: '*'}, allow: {value: 'GET, HEAD'}}};
}

function handler(event) {
  const r = event.request, pairs = [];
  if (r.method !== 'GET' && r.method !== 'HEAD') {
    return respond(405, 'text/plain', 'Use GET: this host does not see what a POST asks for.\n');
  }
  if (!/^\/oai\/*$/.test(r.uri)) {
    r.uri = '/www' + r.uri + (r.uri.slice(-1) === '/' ? 'index.html' : '');
    return r;
  }
  Object.keys(r.querystring).forEach(function (key) {
    const row = r.querystring[key];
    (row.multiValue || [row]).forEach(function (each) { pairs.push([decode(key), decode(each.value)]); });
  });
  const request = parse(pairs, ROUTER), faults = request.faults;
  const file = faults.length ? '' : findFile(request, function (code, text) { return [[code, text]]; });
  if (typeof file === 'string' && file) {
    r.uri = '/' + file + '.xml';
    r.querystring = {};
    return r;
  }
  const body = write(request, faults.length ? faults : file, ROUTER.response_date, ROUTER.base).join('');
  return respond(200, 'text/xml', body);
}

// Returns the name of a file, or faults. Whether it exists is seen by the bucket.
function findFile(request, fail) {
  const values = request.values, token = values.resumptionToken, prefix = values.metadataPrefix;
  const letter = LETTERS[request.verb], until = values.until || '', spec = values.set || '';
  const row = prefix && has(ROUTER.formats, prefix) && ROUTER.formats[prefix];
  if (request.verb === 'Identify') return 'identify';
  if (request.verb === 'ListMetadataFormats') return 'formats';
  if (request.verb === 'ListSets') {
    if (token) return /^s,[0-9]+$/.test(token) ? 'sets/' + token.slice(2) : [BAD_TOKEN];
    return ROUTER.has_sets ? 'sets/0' : fail('noSetHierarchy', 'This repository has no sets.');
  }
  if (token) {
    const match = TOKEN.exec(token);
    if (!match || match[1] !== letter || match[5] || !has(ROUTER.formats, match[2])) return [BAD_TOKEN];
    if (match[4] && !new RegExp('^(?:' + ROUTER.forms.set[0] + ')$').test(match[4])) return [BAD_TOKEN];
    return ROUTER.formats[match[2]][letter] + nameSet(match[4]) + '/' + Number(match[3]);
  }
  if (!row) return fail('cannotDisseminateFormat', 'There is no metadata format ' + show(prefix) + ' here.');
  if (request.verb === 'GetRecord') return 'get/' + prefix + '/' + sha1(values.identifier);
  if (spec && !ROUTER.has_sets) return fail('noSetHierarchy', 'This repository has no sets.');
  if (spec && !ROUTER.with_sets) return fail('badArgument', 'This host cannot enter the list of a set.');
  const name = row[letter] + nameSet(spec), list = has(ROUTER.lists, name) ? ROUTER.lists[name] : [];
  const rest = list.filter(function (page) { return ROUTER.instants[page[0]] >= (values.from || ''); });
  const end = until.length === 10 ? until + 'T23:59:59Z' : until;
  if (!rest.length || (end && ROUTER.instants[rest[0][0]] > end)) {
    return fail('noRecordsMatch', 'Nothing matches, or what matched has changed since.');
  }
  if (end && ROUTER.instants[rest[rest.length - 1][0]] > end) {
    return fail('badArgument', 'This host cannot end a list before its newest record.');
  }
  return name + '/' + rest[0][1];
}

function nameSet(spec) {
  if (!spec) return '/all';
  return '/set/' + (spec.length > 200 || spec === '.' || spec === '..' ? 'sha1-' + sha1(spec) : spec);
}

function sha1(text) {
  return crypto.createHash('sha1').update(text).digest('hex');
}
