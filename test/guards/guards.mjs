// @ts-check
// The guards of lua/: every place where a call, an item or a delivery is refused or turned aside by a condition. Of each
// there is a mutant: the library in which it does not bite.
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { callsOf, refusingFunctions } from './calls.mjs'
import { comparisonsIn } from './comparisons.mjs'
import { blocksOf, closing, functionOf, plain, spanOf, splitAt, wordsOf } from './lua.mjs'

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
