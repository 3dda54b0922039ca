// Checks recorded runs, one JSON list of events a line, against recorded.qnt.
//
//   node check.mjs RECORDED.json RUNS.jsonl
//
// Prints one line of JSON: how many runs and events there are, and the faults of those refused.
import { createReadStream } from "node:fs"
import { createInterface } from "node:readline"
import { load, read } from "./evaluate.mjs"

const [file, runs] = process.argv.slice(2)
const { _check } = load(file, "", ["check"])
let count = 0
let events = 0
const refused = []
for await (const line of createInterface({ input: createReadStream(runs) })) {
  const run = read(JSON.parse(line))
  const fault = _check(run)
  if (fault !== "") refused.push({ run: count, fault })
  count++
  events += run.length
}
console.log(JSON.stringify({ runs: count, events, refused }))
