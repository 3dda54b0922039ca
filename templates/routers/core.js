// Which file of a site answers a request of OAI-PMH, and what is changed in it. Written for njs
// 0.7 as well, which has neither destructuring nor spread.

const LETTERS = {ListRecords: 'r', ListIdentifiers: 'i'};
const BAD_TOKEN = ['badResumptionToken',
  'This repository did not issue this resumption token for this verb.'];
const ESCAPES = {'&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&#34;', "'": '&#39;',
  '\t': '&#9;', '\n': '&#10;', '\r': '&#13;'};
const HEAD = /<responseDate>[^<]*<\/responseDate>\s*<request[^>]*>[^<]*<\/request>/;
const TOKEN = /^([ri]),([^,]+),([0-9]{1,15})(?:,([^,]*)(?:,([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z))?)?$/;

function escapeXml(text) {
  return text.replace(/[\x00-\x08\x0b\x0c\x0e-\x1f]/g, '').replace(/[\ufffe\uffff]/g, '\ufffd')
    .replace(/[&<>"'\t\n\r]/g, function (c) { return ESCAPES[c]; });
}

function has(table, name) {
  return Object.prototype.hasOwnProperty.call(table, name);
}

function show(text) {
  const letters = Array.from ? Array.from(text) : text.split('');
  return '"' + letters.slice(0, 80).join('') + (letters.length > 80 ? '..."' : '"');
}

function decode(text) {
  try {
    return decodeURIComponent(text.replace(/\+/g, ' ').replace(/%(?![0-9a-fA-F]{2})/g, '%25'));
  } catch (e) {
    return '\ufffd'; // no argument has it
  }
}

// Returns the request of a form: its verb, values and pairs, and its faults.
function parse(pairs, router) {
  const values = Object.create(null), count = Object.create(null), faults = [];
  const request = {verb: '', values: values, pairs: pairs, faults: faults};
  function bad(code, text) { faults.push([code, text]); }
  function isVerb(pair) { return pair[0] === 'verb'; }
  if (typeof pairs === 'string') {
    bad('badArgument', pairs);
    return request;
  }
  const verbs = pairs.filter(isVerb), names = Object.keys(router.verbs).join(', ');
  if (verbs.length !== 1) {
    bad('badVerb', verbs.length ? 'The verb is repeated.'
      : 'The verb is missing; expected one of ' + names + '.');
    return request;
  }
  const name = request.verb = verbs[0][1];
  if (!has(router.verbs, name)) {
    bad('badVerb', show(name) + ' is not a verb; expected one of ' + names + '.');
    return request;
  }
  const verb = router.verbs[name], given = pairs.filter(function (pair) { return !isVerb(pair); });
  const allowed = verb.required.concat(verb.optional, verb.exclusive || []);
  given.forEach(function (pair) {
    values[pair[0]] = pair[1];
    count[pair[0]] = (count[pair[0]] || 0) + 1;
  });
  const keys = Object.keys(count);
  function argument(list, text) {
    list.forEach(function (key) { bad('badArgument', text.replace('*', function () { return key; })); });
  }
  keys.filter(function (key) { return allowed.indexOf(key) < 0; }).forEach(function (key) {
    bad('badArgument', name + ' has no argument ' + show(key) + '.');
  });
  argument(keys.filter(function (key) { return count[key] > 1; }), 'The argument * is repeated.');
  argument(keys.filter(function (key) {
    return given.some(function (pair) { return pair[0] === key && !pair[1]; });
  }), 'The argument * is empty.');
  if (!(verb.exclusive in count)) {
    argument(verb.required.filter(function (key) { return !(key in count); }),
      'The argument * is missing.');
  } else if (keys.length > 1) {
    bad('badArgument', verb.exclusive + ' cannot be combined with other arguments.');
  }
  faults.splice(8);
  function fits(key) {
    const match = new RegExp('^(?:' + router.forms[key][0] + ')$').exec(values[key] || '');
    return match && match[0] === values[key];
  }
  let wrong = 0;
  allowed.slice().sort().forEach(function (key) {
    if (!values[key] || fits(key)) return;
    wrong += 1;
    bad('badArgument', key + ' is ' + show(values[key]) + ', expected ' + router.forms[key][1] + '.');
  });
  if (!wrong && fits('from') && fits('until')) {
    if (values.from.length !== values.until.length) {
      bad('badArgument', 'from and until have different granularities.');
    } else if (values.from > values.until) {
      bad('badArgument', 'from is later than until.');
    }
  }
  return request;
}

// Returns the parts of an answer: texts and what `content` has, which is {parts} or a list of faults.
function write(request, content, date, base) {
  let parts = content.parts;
  if (!parts) {
    const oai = 'http://www.openarchives.org/OAI/2.0/';
    parts = ['<?xml version="1.0" encoding="UTF-8"?>\n<OAI-PMH xmlns="' + oai +
      '" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:schemaLocation="' + oai + ' ' +
      oai + 'OAI-PMH.xsd">\n<responseDate></responseDate><request></request>\n' +
      content.map(function (fault) {
        return '<error code="' + fault[0] + '">' + escapeXml(fault[1]) + '</error>\n';
      }).join('') + '</OAI-PMH>\n'];
  }
  const pairs = request.faults.length ? [] : request.pairs, first = parts[0], end = '</request>';
  const head = '<responseDate>' + date + '</responseDate>\n<request' + pairs.map(function (pair) {
    return ' ' + pair[0] + '="' + escapeXml(pair[1]) + '"';
  }).join('') + '>' + escapeXml(base) + '</request>';
  return [first.slice(0, first.indexOf('<responseDate>')), head,
    first.slice(first.indexOf(end) + end.length)].concat(parts.slice(1));
}
