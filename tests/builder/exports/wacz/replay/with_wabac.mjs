// Replays a WACZ file in wabac.js, as its service worker does. See tests/builder/exports/wacz/test_replay.py.
//
// Arguments: the folder of its node_modules, the WACZ file. Input: [date in 14 digits, URL] of each
// capture. Output: the status, memento date and SHA-1 of each answer, all as JSON.
import { createHash } from 'node:crypto'
import { createReadStream, readFileSync, statSync } from 'node:fs'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

const [,, folder, path] = process.argv
const { resolve } = createRequire(`${folder}/`)
const load = name => import(pathToFileURL(resolve(name)))

// The player reads the file by ranges.
const size = statSync(path).size
const server = createServer((request, response) => {
  const range = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range || '')
  const start = range ? Number(range[1]) : 0
  const end = range && range[2] ? Math.min(Number(range[2]), size - 1) : size - 1
  const headers = { 'Content-Length': end - start + 1, 'Accept-Ranges': 'bytes' }
  if (range) headers['Content-Range'] = `bytes ${start}-${end}/${size}`
  response.writeHead(range ? 206 : 200, headers)
  if (request.method === 'HEAD') response.end()
  else createReadStream(path, { start, end }).pipe(response)
})
await new Promise(resolve => server.listen(0, '127.0.0.1', resolve))
const origin = `http://127.0.0.1:${server.address().port}`

// What a service worker has and node has not.
await load('fake-indexeddb/auto')
globalThis.self = globalThis
self.location = new URL(`${origin}/sw.js`)
self.registration = { scope: `${origin}/` }
self.addEventListener = () => {}
self.caches = { open: async () => {}, match: async () => {}, delete: async () => true }
const note = (...said) => process.stderr.write(`${said.map(String).join(' ')}\n`)
console.log = console.warn = console.error = note

const { SWReplay } = await load('@webrecorder/wabac/swlib')
const player = new SWReplay()
await player.collections.inited
const file = { sourceUrl: `${origin}/export.wacz` }
if (!await player.collections.addCollection({ name: 'a', file }, note)) process.exit(1)

// The player redirects to the file that has a capture, and to the canonical form of a URL.
async function ask (address) {
  const request = new Request(address)
  const response = await player.handleFetch({ request, waitUntil: () => {} })
  const location = response.headers.get('location') || ''
  const leads = location.startsWith(`${origin}/w/a/`) && location !== address
  return leads && !response.headers.has('memento-datetime') ? ask(location) : response
}

const answers = []
for (const [stamp, url] of JSON.parse(readFileSync(0))) {
  const response = await ask(`${origin}/w/a/${stamp}id_/${url}`)
  const body = new Uint8Array(await response.arrayBuffer())
  const sha1 = createHash('sha1').update(body).digest('hex')
  answers.push({ status: response.status, sha1 })
}
process.stdout.write(JSON.stringify(answers))
server.close()
server.closeAllConnections()
