// Runs a CloudFront function before a folder as S3 is: node cloudfront.mjs FUNCTION BUCKET. Prints its
// address. The distribution answers with /missing.xml in place of a file that is missing.
import {createServer} from 'node:http';
import {existsSync, readFileSync, writeFileSync} from 'node:fs';

const [code, bucket] = process.argv.slice(2);
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
  const path = `${bucket}${result.uri}`;
  response.setHeader('content-type', 'text/xml; charset=utf-8');
  response.end(readFileSync(existsSync(path) ? path : `${bucket}/missing.xml`));
});
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`));
process.stdin.on('end', () => process.exit()).resume();
