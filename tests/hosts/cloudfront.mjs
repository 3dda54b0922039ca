// Runs a CloudFront function before a folder as S3 is: node cloudfront.mjs FUNCTION SITE MISSING.
// Prints its address. MISSING is what the distribution answers in place of a file that is missing.
import {createServer} from 'node:http';
import {existsSync, readFileSync, writeFileSync} from 'node:fs';

const [code, site, missing] = process.argv.slice(2);
writeFileSync(`${code}.mjs`, `${readFileSync(code, 'utf8')}\nexport {handler};\n`);
const {handler} = await import(`${code}.mjs`);

const server = createServer((request, response) => {
  const [uri, query] = request.url.split('?'), querystring = {};
  for (const part of (query || '').split('&').filter(part => part)) {
    const [key, ...value] = part.split('='), row = {value: value.join('=')};
    if (!Object.hasOwn(querystring, key)) {
      Object.defineProperty(querystring, key, {value: row, enumerable: true});
    } else {
      const first = querystring[key];
      first.multiValue = [...(first.multiValue || [{value: first.value}]), row];
    }
  }
  const event = {version: '1.0', context: {eventType: 'viewer-request'}, request: {method: request.method,
    uri, querystring, headers: {}, cookies: {}}};
  const result = handler(event);
  if (result.statusCode) {
    for (const [name, each] of Object.entries(result.headers)) response.setHeader(name, each.value);
    response.statusCode = result.statusCode;
    response.end(result.body);
    return;
  }
  const path = `${site}${result.uri}`, allowed = /^\/(www\/|[a-z]+\.xml$|(oai|sets|get)\/)/.test(result.uri);
  response.setHeader('content-type', 'text/xml; charset=utf-8');
  response.end(readFileSync(allowed && existsSync(path) ? path : missing));
});
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`));
process.stdin.on('end', () => process.exit()).resume();
