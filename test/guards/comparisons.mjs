// @ts-check
// Guards that are comparisons: of what tells owners, processes and grants apart, and with bounds and times.
import { ENDS, functionOf, plain, spanOf, tokensOf } from './lua.mjs'

/** @typedef {import('./lua.mjs').Token} Token */
/** @typedef {import('./lua.mjs').Block} Block */
/** @typedef {import('./guards.mjs').Found} Found */

/** What two rows, processes or grants are told apart by. */
const IDENTITY =
  /\b(?:owner|epoch|incarnation|grant|executor|started_at|instance|fingerprint|payload_hash|settled_digest|digest_of|report_key|attested|presented|session_epoch|unresolved|basis)\b/
/** What is over, too late or too much. */
const BOUND =
  /\b(?:epoch|incarnation|deliver_by|execute_by|expires_at|until_ms|released_at|heartbeat_at|judge_after|takeovers|redrive_from|age|now|most|largest|LOOKED_AT_MOST|CHILDREN_A_CALL|max_\w+)\b/

/** Comparisons as if both sides were the same, or a bound were never, or always, reached. @param {string} source @param {Block[]} blocks @returns {Found[]} */
export function comparisonsIn(source, blocks) {
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
