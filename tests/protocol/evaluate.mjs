// Evaluates a specification that `quint compile` has parsed, checked and flattened: it becomes
// JavaScript. Operators that are not in the table below are refused. Quint's simulator does the
// same, many times as slowly; tests/protocol/prove.py lets it check a part of what this walks.
import { readFileSync } from "node:fs"

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

/** Return JavaScript for an expression; `names` are those of variables, values and definitions. */
function write(e, names) {
  const inner = (x) => write(x, names)
  if (e.kind === "name") {
    if (names.vars.has(e.name)) return `now.${plain(e.name)}`
    return names.vals.has(e.name) ? `${plain(e.name)}()` : plain(e.name)
  }
  if (e.kind === "lambda") {
    return `((${e.params.map((p) => plain(p.name)).join()}) => ${inner(e.expr)})`
  }
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
  if (names.defs.has(e.opcode)) return `${plain(e.opcode)}(${given().join()})`
  if (!EAGER[e.opcode]) throw new Error(`operator ${e.opcode} is not known`)
  return `EAGER.${e.opcode}(${given().join()})`
}

/** Return functions that begin a walk, make a step, tell whether the promises hold, and `more`. */
function build(declarations, more) {
  const vars = new Set(declarations.filter((d) => d.kind === "var").map((d) => d.name))
  const defs = declarations.filter((d) => d.kind === "def")
  const vals = new Set(defs.filter((d) => d.expr.kind !== "lambda").map((d) => d.name))
  const names = { vars, vals, defs: new Set(defs.map((d) => d.name)) }
  const lines = defs.map((d) => {
    const code = write(d.expr, names)
    if (d.qualifier === "pureval") {
      return `let c${plain(d.name)}; const ${plain(d.name)} = () => c${plain(d.name)} ??= ${code};`
    }
    return `const ${plain(d.name)} = ${vals.has(d.name) ? `() => ${code}` : code};`
  })
  const ends = ["begin: _q__init, step: _q__step, holds: _q__inv, state: () => now"]
  for (const name of more) ends.push(plain(name))
  return new Function("EAGER", "draw", `let now = {}, then = {}; ${lines.join("\n")}
    return { ${ends.join()}, shift: () => { now = then; then = {} } }`)(EAGER, draw)
}

/** Return a value as plain JSON. */
export function show(v) {
  if (v instanceof Items) return [...v.of.values()].map(show)
  if (v instanceof Table) return Object.fromEntries([...v.of].map(([k, [, x]]) => [k, show(x)]))
  if (Array.isArray(v)) return v.map(show)
  if (typeof v !== "object") return v
  return Object.fromEntries(Object.entries(v).map(([k, x]) => [k, show(x)]))
}

/** Return a value from JSON in which sets and maps are marked as in Quint's traces (ITF). */
export function read(v) {
  if (typeof v !== "object") return v
  if (Array.isArray(v)) return v.map(read)
  if (v["#bigint"] !== undefined) return Number(v["#bigint"])
  if (v["#set"] !== undefined) return Items.from(v["#set"].map(read))
  if (v["#tup"] !== undefined) return v["#tup"].map(read)
  if (v["#map"] !== undefined) {
    return new Table(new Map(v["#map"].map(([k, x]) => [key(read(k)), [read(k), read(x)]])))
  }
  return Object.fromEntries(Object.entries(v).map(([k, x]) => [k, read(x)]))
}

/** Seed the choices. */
export function begin(seed) { state = seed | 0 }

/** Return the functions of a specification that `quint compile` flattened, without one rule. */
export function load(file, rule = "", more = []) {
  const { declarations } = JSON.parse(readFileSync(file, "utf8")).modules.at(-1)
  for (const d of declarations) {
    if (d.name.endsWith("::WITHOUT")) d.expr = { kind: "str", value: rule }
  }
  return build(declarations, more)
}
