// @ts-check
// Guards that are calls: of readers, which check an argument, and of functions that refuse.
import { BEFORE_VALUES, blocksOf, closing, functionOf, plain, spanOf, splitAt, wordsOf } from './lua.mjs'

/** @typedef {import('./lua.mjs').Block} Block */
/** @typedef {import('./guards.mjs').Found} Found */

/** What is told of a call: whether it refuses. @type {Found['marks']} */
const REFUSAL = ['REFUSAL(function() return ', ' end)']
/** Readers of arguments, of lib/arguments.lua and lib/keys.lua, and the same without their checks. @type {ReadonlyMap<string, (value: string) => string>} */
const READERS = new Map([
  ...['id', 'host_id', 'word', 'hash', 'text', 'delivery_id'].map(
    (name) => /** @type {const} */ ([name, (/** @type {string} */ value) => `(${value})`]),
  ),
  ['integer', (value) => `tonumber(${value})`],
  ['optional_integer', (value) => `tonumber(${value})`],
  ['optional_id', (value) => `(${value} ~= '' and ${value} or nil)`],
])

/** Calls that stand alone, of functions that refuse, and those of readers. @param {string} source @param {string} file @param {Block} block @param {ReadonlySet<string>} refusing @returns {Found[]} */
export function callsOf(source, file, block, refusing) {
  /** @type {Found[]} */
  const found = []
  const { tokens } = block
  for (const [at, { text }] of tokens.entries()) {
    if (tokens[at + 1]?.text !== '(') continue
    const shared = tokens[at - 1]?.text === '.' && tokens[at - 2]?.text === 'hf'
    const read = shared && file !== 'lib/arguments.lua' ? READERS.get(text) : undefined
    if (read !== undefined && BEFORE_VALUES.has(tokens[at - 3]?.text ?? '')) {
      const [from, to] = [tokens[at - 2]?.from ?? 0, closing(tokens, at + 1)]
      const [value = []] = splitAt(
        tokens.slice(at + 2).filter((token) => token.to < to),
        ',',
      )
      const { from: first, to: last } = spanOf(value)
      const becomes = read(source.slice(first, last))
      found.push({
        block,
        kind: 'checks',
        what: plain(source.slice(from, to)),
        from,
        to,
        becomes,
        marks: REFUSAL,
      })
      continue
    }
    if (text === 'refuse' || !refusing.has(shared ? `hf.${text}` : `${file} ${text}`)) continue
    const first = shared ? at - 2 : at
    if (first > 0 && BEFORE_VALUES.has(tokens[first - 1]?.text ?? '')) continue
    const from = tokens[first]?.from ?? 0
    const before = source.slice(0, from).match(/(\S+)\s*$/)?.[1] ?? ''
    if (/[=(,]$|^(?:return|and|or|not|function)$/.test(before)) continue
    const to = closing(tokens, at + 1)
    const said = source.slice(from, to)
    found.push({
      block,
      kind: 'calls',
      what: plain(said),
      from,
      to,
      becomes: ' ',
      marks: REFUSAL,
    })
  }
  return found
}

/** Functions with a refusal in them: shared ones as `hf.<name>`, the others with their file. @param {Map<string, string>} sources @returns {Set<string>} */
export function refusingFunctions(sources) {
  const found = new Set()
  for (const [file, source] of sources) {
    for (const block of blocksOf(source)) {
      if (!wordsOf(source, block.tokens).includes('hf.refuse(')) continue
      const { name, from } = functionOf(block)
      const isShared = source
        .slice(from, from + 4)
        .trim()
        .startsWith('hf.')
      found.add(isShared ? `hf.${name}` : `${file} ${name}`)
    }
  }
  return found
}
