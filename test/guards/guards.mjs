// @ts-check
// The guards of lua/: every place where a call, an item or a delivery is refused or turned aside by a condition. Of each
// there is a mutant: the library in which it does not bite.
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { blocksOf, functionOf, spanOf, splitAt, tokensOf } from './lua.mjs'

/** @typedef {import('./lua.mjs').Token} Token */
/** @typedef {import('./lua.mjs').Block} Block */

/**
 * What a guard does: it `refuses` with a code or an error; it `turns aside` a delivery (fails, holds, parks, moves, requeues
 * it); it `returns` early; it `calls` a function for its refusals alone; it `checks` an argument while reading it; it
 * `compares` what tells owners, processes, grants or times apart.
 * @typedef {'refuses' | 'turns aside' | 'returns' | 'calls' | 'checks' | 'compares'} Kind
 */

/**
 * A guard: `name` says which, for people and over changes elsewhere in the file; `digest` is of the function that it stands
 * in. `becomes` takes the place of the text between `from` and `to` in the mutant; `marks` stand before and after it where
 * bites are told, by a function called BITE, or REFUSAL where a call is what refuses.
 * @typedef {{ name: string, kind: Kind, file: string, digest: string, from: number, to: number, becomes: string,
 *   marks: readonly [before: string, after: string] }} Guard
 */

/** What is told of a call: whether it refuses. @type {Guard['marks']} */
const REFUSAL = ['REFUSAL(function() return ', ' end)']

/** A guard before it has a name. @typedef {Omit<Guard, 'name' | 'file' | 'digest'> & { block: Block, what: string }} Found */

export const ownLua = fileURLToPath(new URL('../../lua', import.meta.url))

/** A fault of the server that is passed on (`error(reply)`) is no refusal. */
const REFUSES = /\b(?:hf\.refuse|item_refused|refused)\(|\berror\(\w+\.failure\)|\breturn '[A-Z_]{4,}'/
const CODE = /'([A-Z_]{4,})'/
const ASIDE =
  /\b(?:hf\.(?:fail_delivery|hold_delivery|stop_by|stop_in_claim|park|move_delivery|requeue_delivery|correct_entry|clear_ghost)|hf\.list_unknown|list_unknown|keep_late)\(/
/**
 * What an early return goes by where it is a guard: owners, places and processes, states and outcomes, fences, times and
 * limits. Shortcuts and returns that only shape an answer go by something else.
 */
const DECIDES = new RegExp(
  [
    'owner|epoch|incarnation|grant|executor|started_at|attested|attesting|presented|config_of|begun|fingerprint|is_same',
    'state|status|terminal|basis|verdict|kind|fence|parked_by|known|again|replayed|has_outcome|unsettled|pruned_from|crashed',
    'is_executing|is_finished|is_retired|is_gone|is_due|is_missing|is_host_gone|is_unfinished|is_in_stream|has_room|must_wait',
    'executor_lives|live_attempt|live|may_judge|came_too_late|proves_too_little|served|retired|on_row|joined_at|home',
    'expires_at|deliver_by|execute_by|released_at|settled_at|heartbeat_at|judge_after|rewound_at|set_aside_at|now|request',
    'full|room|looked|left|most|granted|setting|repair|usable|[A-Z_]+_A_CALL|LOOKED_AT_MOST',
  ]
    .map((words) => `\\b(?:${words})\\b`)
    .concat('\\.host [=~]=', 'row\\.entry ~=')
    .join('|'),
)
/** What this call has read already, or noted. */
const NOTED = /^(?:not )?(?:ctx|claim)\.\w+(?:\[[^\]]*\])?$/
/** Functions here tell what is, and decide nothing. */
const TELLING = /^lib\/(?:why|tally)\.lua$/
/** What two rows, processes or grants are told apart by. */
const IDENTITY =
  /\b(?:owner|epoch|incarnation|grant|executor|started_at|instance|fingerprint|payload_hash|settled_digest|digest_of|report_key|attested|presented|session_epoch|unresolved|basis)\b/
/** What is over, too late or too much. */
const BOUND =
  /\b(?:epoch|incarnation|deliver_by|execute_by|expires_at|until_ms|released_at|heartbeat_at|judge_after|takeovers|redrive_from|age|now|most|largest|LOOKED_AT_MOST|CHILDREN_A_CALL|max_\w+)\b/
/** Readers of arguments, of lib/arguments.lua and lib/keys.lua, and the same without their checks. @type {ReadonlyMap<string, (value: string) => string>} */
const READERS = new Map([
  ...['id', 'host_id', 'word', 'hash', 'text', 'delivery_id'].map(
    (name) => /** @type {const} */ ([name, (/** @type {string} */ value) => `(${value})`]),
  ),
  ['integer', (value) => `tonumber(${value})`],
  ['optional_integer', (value) => `tonumber(${value})`],
  ['optional_id', (value) => `(${value} ~= '' and ${value} or nil)`],
])
/** No operand of a comparison goes beyond these. */
const ENDS = new Set([
  'and',
  'or',
  'not',
  'if',
  'elseif',
  'while',
  'then',
  'return',
  '=',
  ',',
  '(',
  '{',
  '[',
  'local',
  'end',
  'do',
  'in',
  'until',
])
const BEFORE_VALUES = new Set([
  ...ENDS,
  '..',
  '#',
  '+',
  '-',
  '*',
  '/',
  '%',
  '.',
  ':',
  '==',
  '~=',
  '<',
  '>',
  '<=',
  '>=',
  'function',
])

/** The guards of a folder like lua/, file by file. @param {string} [luaDir] @returns {Guard[]} */
export function guardsOf(luaDir = ownLua) {
  const files = ['lib', 'functions'].flatMap((folder) =>
    readdirSync(join(luaDir, folder))
      .filter((name) => name.endsWith('.lua'))
      .sort()
      .map((name) => `${folder}/${name}`),
  )
  const sources = new Map(files.map((file) => [file, readFileSync(join(luaDir, file), 'utf8')]))
  const refusing = refusingFunctions(sources)
  return [...sources].flatMap(([file, source]) => guardsIn(file, source, refusing))
}

/** The source of a guard's file with its mutant in it. @param {Guard} guard @param {string} [luaDir] */
export function mutantOf({ file, from, to, becomes }, luaDir = ownLua) {
  const source = readFileSync(join(luaDir, file), 'utf8')
  return source.slice(0, from) + becomes + source.slice(to)
}

/** @param {string} file @param {string} source @param {ReadonlySet<string>} refusing @returns {Guard[]} */
function guardsIn(file, source, refusing) {
  const blocks = blocksOf(source)
  const found = blocks
    .flatMap((block) => [...bitesOf(source, block), ...callsOf(source, file, block, refusing)])
    .filter(({ kind, what }) => kind !== 'returns' || (!TELLING.test(file) && decides(what)))
  const known = new Set(found.map(({ from, to, becomes }) => `${from} ${to} ${becomes}`))
  for (const compared of TELLING.test(file) ? [] : comparisonsIn(source, blocks)) {
    const { from, to, becomes } = compared
    if (!known.has(`${from} ${to} ${becomes}`)) found.push(compared)
  }
  /** @type {Map<string, number>} */
  const times = new Map()
  return found
    .sort((one, other) => one.from - other.from || one.to - other.to)
    .map(({ block, what, ...guard }) => {
      const around = functionOf(block)
      const name = `${file} ${around.name}: ${guard.kind} ${what}`
      const time = (times.get(name) ?? 0) + 1
      times.set(name, time)
      const digest = createHash('sha256')
        .update(source.slice(around.from, around.to))
        .digest('hex')
        .slice(0, 16)
      return { ...guard, name: time === 1 ? name : `${name} (${time})`, file, digest }
    })
}

/** @param {string} what */
function decides(what) {
  const condition = what.replace(/^if /, '')
  return condition === 'else' || (DECIDES.test(condition) && !NOTED.test(condition))
}

/** Branches that refuse, turn aside or return: one guard for each condition of an `or`. @param {string} source @param {Block} block @returns {Found[]} */
function bitesOf(source, block) {
  const text = wordsOf(source, block.tokens)
  const kind = kindOf(text, block)
  if (kind === undefined) return []
  const code = kind === 'refuses' ? codeOf(text) : ''
  if (block.kind === 'branch') {
    return splitAt(block.condition, 'or').map((condition) => {
      const { from, to } = spanOf(condition)
      const asked = source.slice(from, to)
      return {
        block,
        kind,
        what: [code, 'if', plain(asked)].filter(Boolean).join(' '),
        from,
        to,
        becomes: `false and (${asked})`,
        marks: ['BITE(', ')'],
      }
    })
  }
  const { from, to } = block.kind === 'else' ? block : lastStatement(block)
  const what = [code, block.kind === 'else' ? 'else' : 'at last'].filter(Boolean).join(' ')
  return [{ block, kind, what, from, to, becomes: ' ', marks: [' BITE(true) ', ''] }]
}

/** The code of the last refusal in a text, as far as it stands there. @param {string} text */
function codeOf(text) {
  const refusal = text.slice(
    Math.max(0, ...['refuse(', 'refused(', "return '"].map((word) => text.lastIndexOf(word))),
  )
  return CODE.exec(refusal)?.[1] ?? ''
}

/** @param {string} text @param {Block} block @returns {Kind | undefined} */
function kindOf(text, { kind, tokens }) {
  if (kind === 'function') {
    return /\b(?:hf\.refuse|item_refused|refused)\([^()]*'[A-Z_]{4,}'/.test(text) ? 'refuses' : undefined
  }
  if (kind !== 'branch' && kind !== 'else') return undefined
  if (REFUSES.test(text)) return 'refuses'
  if (ASIDE.test(text)) return 'turns aside'
  return tokens.some((token) => token.text === 'return') ? 'returns' : undefined
}

/** The refusal with which a function ends. @param {Block} block */
function lastStatement({ tokens }) {
  const at = tokens.findLastIndex(({ text }) => /^(?:refuse|item_refused|refused)$/.test(text))
  let first = at
  while (first > 0 && /^(?:hf|\.|return|nil|,)$/.test(tokens[first - 1]?.text ?? '')) first -= 1
  return { from: tokens[first]?.from ?? 0, to: closing(tokens, at + 1) }
}

/** Where the bracket at a place closes. @param {Token[]} tokens @param {number} at */
function closing(tokens, at) {
  let depth = 0
  for (const { text, to } of tokens.slice(at)) {
    if ('({['.includes(text)) depth += 1
    if (')}]'.includes(text)) depth -= 1
    if (depth === 0) return to
  }
  throw new Error('a bracket without its end')
}

/** Calls that stand alone, of functions that refuse. @param {string} source @param {string} file @param {Block} block @param {ReadonlySet<string>} refusing @returns {Found[]} */
function callsOf(source, file, block, refusing) {
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
function refusingFunctions(sources) {
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

/** Comparisons as if both sides were the same, or a bound were never, or always, reached. @param {string} source @param {Block[]} blocks @returns {Found[]} */
function comparisonsIn(source, blocks) {
  const tokens = tokensOf(source)
  /** @type {Found[]} */
  const found = []
  for (const [at, { text: operator, from: place }] of tokens.entries()) {
    if (!/^(?:[=~<>]=|[<>])$/.test(operator) || tokens[at + 1]?.text === 'nil') continue
    const { from, to } = comparisonAt(source, tokens, at)
    const said = source.slice(from, to)
    const block = blocks.findLast((each) => each.from <= place && place < each.to)
    if (block === undefined || functionOf(block).kind === 'file') continue
    const ways =
      operator.length === 2 && /[=~]=/.test(operator) && IDENTITY.test(said) ? [operator === '=='] : []
    if (/[<>]/.test(operator) && BOUND.test(said)) ways.push(false)
    if (/[<>]/.test(operator) && /\b(?:epoch|incarnation)\b/.test(said)) ways.push(true)
    for (const way of ways) {
      found.push({
        block,
        kind: 'compares',
        what: `${plain(said)}, taken for ${way}`,
        from,
        to,
        becomes: way ? `(true or (${said}))` : `false and (${said})`,
        marks: way ? ['not BITE(not (', '))'] : ['BITE(', ')'],
      })
    }
  }
  return found
}

/** @param {string} source @param {Token[]} tokens @param {number} at of the operator */
function comparisonAt(source, tokens, at) {
  /** @param {number} place */
  const breaks = (place) => source.slice(tokens[place - 1]?.to, tokens[place]?.from).includes('\n')
  let [first, last, depth] = [at, at, 0]
  for (let place = at - 1; place >= 0; place -= 1) {
    const text = tokens[place]?.text ?? ''
    if (')}]'.includes(text)) depth += 1
    if (depth === 0 && (ENDS.has(text) || breaks(place + 1))) break
    if ('({['.includes(text)) depth -= 1
    first = place
  }
  depth = 0
  for (let place = at + 1; place < tokens.length; place += 1) {
    const text = tokens[place]?.text ?? ''
    if (depth === 0 && (ENDS.has(text) ? !'({['.includes(text) : ')}]'.includes(text))) break
    if (depth === 0 && breaks(place)) break
    if ('({['.includes(text)) depth += 1
    if (')}]'.includes(text)) depth -= 1
    last = place
  }
  return spanOf(tokens.slice(first, last + 1))
}

/** Words as they stand in the source, blocks between them left out. @param {string} source @param {Token[]} tokens */
function wordsOf(source, tokens) {
  return tokens
    .map(({ text, from }, at) => {
      const isNext = source.slice(tokens[at - 1]?.to ?? 0, from) === ''
      return isNext ? text : ` ${text}`
    })
    .join('')
}

/** @param {string} text */
function plain(text) {
  return text.replaceAll(/\s+/g, ' ')
}
