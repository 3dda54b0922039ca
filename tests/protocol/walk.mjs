// Walks a specification at random, as `quint run` does, but faster.
//
//   node walk.mjs MODULE.json STEPS SEED LENGTH [RULE]
//
// Each walk has LENGTH steps and a seed of its own, so that one can be repeated. RULE is left out.
// Prints one line of JSON; the state at a violation, or with TRAIL=1 all states, go to stderr.
import { performance } from "node:perf_hooks"
import { begin, load, show } from "./evaluate.mjs"

const [file, steps, seed, length, rule] = process.argv.slice(2)
const model = load(file, rule)
const began = performance.now()
let done = 0
let walk = Number(seed)
let found = null
for (; done < Number(steps) && found === null; walk++) {
  begin(Math.imul(walk, 0x9e3779b1))
  const trail = []
  for (let i = 0; i <= Number(length) && found === null; i++, done++) {
    const moved = i === 0 ? model.begin() : model.step()
    if (!moved) throw new Error(`walk ${walk} stops at step ${i}`)
    model.shift()
    if (process.env.TRAIL) trail.push(JSON.stringify(show(model.state())))
    if (!model.holds()) found = { seed: walk, step: i }
  }
  if (found !== null && process.env.TRAIL) console.error(trail.join("\n"))
}
if (found !== null && !process.env.TRAIL) console.error(JSON.stringify(show(model.state())))
const seconds = Math.round(performance.now() - began) / 1000
console.log(JSON.stringify({ steps: done, walks: walk - Number(seed), seconds, violation: found }))
