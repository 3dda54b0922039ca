// Runs a Worker in Cloudflare's simulator: node miniflare.mjs WORKER SITE bucket|assets
// BINDING. Prints its address, and ends when its input does.
import {readFileSync, readdirSync, existsSync, statSync} from 'node:fs';
import {join} from 'node:path';
import {createRequire} from 'node:module';

const [worker, site, kind, binding] = process.argv.slice(2);
const {Miniflare, Response} = createRequire(join(process.cwd(), 'x.js'))('miniflare');
const assets = async request => {
  const path = join(site, decodeURIComponent(new URL(request.url).pathname));
  if (!existsSync(path) || !statSync(path).isFile()) return new Response(null, {status: 404});
  const tag = `"${statSync(path).size}"`, headers = {ETag: tag};
  if (request.headers.get('If-None-Match') === tag) return new Response(null, {status: 304, headers});
  return new Response(readFileSync(path), {headers});
};
const simulator = new Miniflare({
  modules: true,
  script: readFileSync(worker, 'utf8'),
  compatibilityDate: '2025-10-01',
  host: '127.0.0.1',
  port: 0,
  ...(kind === 'bucket' ? {r2Buckets: [binding]} : {serviceBindings: {ASSETS: assets}}),
});
if (kind === 'bucket') {
  const bucket = await simulator.getR2Bucket(binding);
  for (const name of readdirSync(site, {recursive: true})) {
    const path = join(site, name);
    if (statSync(path).isFile()) {
      await bucket.put(name, new Uint8Array(readFileSync(path)));
    }
  }
}
console.log(String(await simulator.ready));
process.stdin.on('end', async () => {
  await simulator.dispose();
  process.exit();
}).resume();
