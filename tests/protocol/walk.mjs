// Walks a specification at random, as `quint run` does, some fifty times as fast.
//
//   quint compile MODULE.qnt --main MODULE --init init --step step --invariant promises > MODULE.json
//   node walk.mjs MODULE.json STEPS SEED LENGTH [RULE]
//
// Quint itself parses, checks and flattens the specification; this turns what it made of it into
// JavaScript. Operators that are not in the table below are refused. Each walk has a seed of its
// own, so that one can be repeated. RULE is left out: it becomes the value of the constant WITHOUT.
// Prints one line of JSON; the state at a violation, or with TRAIL=1 all states, go to stderr.
import { readFileSync } from "node:fs"
import { performance } from "node:perf_hooks"

/** A text that is equal for equal values. */
function key(v) {
  if (typeof v !== "object") return v
  if (v.key !== undefined) return v.key
  let text
  if (v instanceof Items) text = `{${[...v.of.keys()].sort().join()}}`
  else if (v instanceof Table) {
    text = `<${[...v.of].map(([k, [, value]]) => `${k}:${key(value)}`).sort().join()}>`
  } else if (Array.isArray(v)) text = `[${v.map(key).join()}]`
  else text = `(${Object.keys(v).sort().map((k) => `${k}=${key(v[k])}`).join()})`
  return text
}

/** A set, by the keys of its members. */
class Items {
  constructor(of) { this.of = of }
  static from(values) {
    const of = new Map()
    for (const v of values) of.set(key(v), v)
    return new Items(of)
  }
  filter(f) {
    const of = new Map()
    for (const [k, v] of this.of) if (f(v)) of.set(k, v)
    return new Items(of)
  }
}

/** A map, by the keys of its keys. */
class Table {
  constructor(of) { this.of = of }
  get(k) {
    const found = this.of.get(key(k))
    if (found === undefined) throw new Error(`no key ${key(k)}`)
    return found[1]
  }
  put(k, v) { return new Table(new Map(this.of).set(key(k), [k, v])) }
}

function same(a, b) {
  if (typeof a !== "object" || a === b) return a === b
  if (a instanceof Items) {
    if (a.of.size !== b.of.size) return false
    for (const k of a.of.keys()) if (!b.of.has(k)) return false
    return true
  }
  if (a instanceof Table) {
    if (a.of.size !== b.of.size) return false
    for (const [k, [, v]] of a.of) {
      const other = b.of.get(k)
      if (other === undefined || !same(v, other[1])) return false
    }
    return true
  }
  if (Array.isArray(a)) return a.length === b.length && a.every((v, i) => same(v, b[i]))
  for (const k in a) if (!same(a[k], b[k])) return false
  return true
}

const every = (set, f) => { for (const v of set.of.values()) if (!f(v)) return false; return true }
const some = (set, f) => { for (const v of set.of.values()) if (f(v)) return true; return false }

/** Builtin operators whose arguments are evaluated first. */
const EAGER = {
  eq: same,
  neq: (a, b) => !same(a, b),
  not: (a) => !a,
  iuminus: (a) => -a,
  iadd: (a, b) => a + b,
  isub: (a, b) => a - b,
  imul: (a, b) => a * b,
  idiv: (a, b) => Math.trunc(a / b),
  ilt: (a, b) => a < b,
  ilte: (a, b) => a <= b,
  igt: (a, b) => a > b,
  igte: (a, b) => a >= b,
  field: (a, name) => a[name],
  with: (a, name, v) => ({ ...a, [name]: v }),
  Rec: (...all) => {
    const made = {}
    for (let i = 0; i < all.length; i += 2) made[all[i]] = all[i + 1]
    return made
  },
  Tup: (...all) => all,
  List: (...all) => all,
  length: (a) => a.length,
  nth: (a, i) => a[i],
  append: (a, v) => [...a, v],
  select: (a, f) => a.filter((v) => f(v)),
  foldl: (a, start, f) => a.reduce((found, v) => f(found, v), start),
  indices: (a) => Items.from(a.keys()),
  Set: (...all) => Items.from(all),
  to: (a, b) => Items.from(Array.from({ length: b - a + 1 }, (_, i) => a + i)),
  size: (a) => a.of.size,
  contains: (a, v) => a.of.has(key(v)),
  union: (a, b) => new Items(new Map([...a.of, ...b.of])),
  exclude: (a, b) => new Items(new Map([...a.of].filter(([k]) => !b.of.has(k)))),
  intersect: (a, b) => new Items(new Map([...a.of].filter(([k]) => b.of.has(k)))),
  subseteq: (a, b) => { for (const k of a.of.keys()) if (!b.of.has(k)) return false; return true },
  filter: (a, f) => a.filter(f),
  map: (a, f) => Items.from([...a.of.values()].map((v) => f(v))),
  fold: (a, start, f) => [...a.of.values()].reduce((found, v) => f(found, v), start),
  forall: every,
  exists: some,
  Map: (...all) => new Table(new Map(all.map(([k, v]) => [key(k), [k, v]]))),
  mapBy: (a, f) => new Table(new Map([...a.of].map(([k, v]) => [k, [v, f(v)]]))),
  keys: (a) => new Items(new Map([...a.of].map(([k, [v]]) => [k, v]))),
  get: (a, k) => a.get(k),
  put: (a, k, v) => a.put(k, v),
  set: (a, k, v) => { a.get(k); return a.put(k, v) },
  setOfMaps: (a, b) => ({
    draw: () => new Table(new Map([...a.of].map(([k, v]) => [k, [v, draw(b)]]))),
  }),
}

let state = 0
function random(below) {
  state = (state + 0x6d2b79f5) | 0
  let t = Math.imul(state ^ (state >>> 15), 1 | state)
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
  return Math.floor((((t ^ (t >>> 14)) >>> 0) / 4294967296) * below)
}

function draw(set) {
  if (set.draw) return set.draw()
  const values = [...set.of.values()]
  return values[random(values.length)]
}

const plain = (name) => `_${name.replace(/[^A-Za-z0-9_]/g, "_")}`

/** Return JavaScript for an expression; `vars` are state variables, `vals` parameterless ones. */
function write(e, vars, vals) {
  const inner = (x) => write(x, vars, vals)
  if (e.kind === "name") {
    if (vars.has(e.name)) return `now.${plain(e.name)}`
    return vals.has(e.name) ? `${plain(e.name)}()` : plain(e.name)
  }
  if (e.kind === "lambda") return `((${e.params.map((p) => plain(p.name)).join()}) => ${inner(e.expr)})`
  if (e.kind === "let") {
    const { name, qualifier, expr } = e.opdef
    const value = qualifier === "nondet" ? `draw(${inner(expr.args[0])})` : inner(expr)
    return `(() => { const ${plain(name)} = ${value}; return ${inner(e.expr)} })()`
  }
  if (e.kind !== "app") return JSON.stringify(e.value)
  const given = () => e.args.map(inner)
  if (e.opcode === "ite") { const [a, b, c] = given(); return `(${a} ? ${b} : ${c})` }
  if (e.opcode === "and" || e.opcode === "actionAll") return `(${given().join(" && ")})`
  if (e.opcode === "or") return `(${given().join(" || ")})`
  if (e.opcode === "assign") return `(then.${plain(e.args[0].name)} = ${inner(e.args[1])}, true)`
  if (e.opcode === "field") return `${inner(e.args[0])}.${e.args[1].value}`
  if (e.opcode.includes("::")) return `${plain(e.opcode)}(${given().join()})`
  if (!EAGER[e.opcode]) throw new Error(`operator ${e.opcode} is not known`)
  return `EAGER.${e.opcode}(${given().join()})`
}

/** Return functions that begin a walk, make a step, and tell whether the promises hold. */
function build(declarations) {
  const vars = new Set(declarations.filter((d) => d.kind === "var").map((d) => d.name))
  const defs = declarations.filter((d) => d.kind === "def")
  const vals = new Set(defs.filter((d) => d.expr.kind !== "lambda").map((d) => d.name))
  const lines = defs.map((d) => {
    const code = write(d.expr, vars, vals)
    if (d.qualifier === "pureval") {
      return `let c${plain(d.name)}; const ${plain(d.name)} = () => c${plain(d.name)} ??= ${code};`
    }
    return `const ${plain(d.name)} = ${vals.has(d.name) ? `() => ${code}` : code};`
  })
  const ends = "begin: _q__init, step: _q__step, holds: _q__inv, state: () => now"
  return new Function("EAGER", "draw", `let now = {}, then = {}; ${lines.join("\n")}
    return { ${ends}, shift: () => { now = then; then = {} } }`)(EAGER, draw)
}

function show(v) {
  if (v instanceof Items) return [...v.of.values()].map(show)
  if (v instanceof Table) return Object.fromEntries([...v.of].map(([k, [, x]]) => [k, show(x)]))
  if (Array.isArray(v)) return v.map(show)
  if (typeof v !== "object") return v
  return Object.fromEntries(Object.entries(v).map(([k, x]) => [k, show(x)]))
}

const [file, steps, seed, length, rule = ""] = process.argv.slice(2)
const { declarations } = JSON.parse(readFileSync(file, "utf8")).modules.at(-1)
for (const d of declarations) if (d.name.endsWith("::WITHOUT")) d.expr = { kind: "str", value: rule }
const model = build(declarations)
const began = performance.now()
let done = 0
let walk = Number(seed)
let found = null
for (; done < Number(steps) && found === null; walk++) {
  state = Math.imul(walk, 0x9e3779b1)
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
