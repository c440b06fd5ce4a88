// @ts-check
// I8: what was acknowledged is there, whatever was killed or cut since: accepts, begins, outcomes, fences, acts.
import { recorded, told } from './evidence.mjs'

/** @typedef {import('./words.mjs').Act} Act */
/** @typedef {import('./words.mjs').Case} Case */
/** @typedef {import('./words.mjs').Violation} Violation */

/** @param {Case} file @returns {Violation[]} */
export function checkDurability(file) {
  return [...checkAccepts(file), ...checkBegins(file), ...checkReports(file), ...checkActs(file)]
}

/** @param {Case} file @returns {Violation[]} */
function checkAccepts({ accepts, messages, readAt }) {
  /** @type {Map<string, Violation>} */
  const lost = new Map()
  for (const { type, id = '', answer } of accepts) {
    if (type !== 'ok' || messages.has(id) || lost.has(id) || (answer?.t ?? 0) > readAt) continue
    const text = 'acknowledged, but the record has no such message'
    lost.set(id, { invariant: 'I8', id, text, evidence: [told(answer)], means: 'lost' })
  }
  return [...lost.values()]
}

/** Who ran was told that it may: the record knows of it. @param {Case} file @returns {Violation[]} */
function checkBegins({ runsOf, deliveries, readAt }) {
  return [...runsOf].flatMap(([id, runs]) => {
    const delivery = deliveries.get(id)
    const lost = runs.find(
      ({ number, begin }) => begin.t <= readAt && !delivery?.attempts.some((each) => each.number === number),
    )
    if (lost === undefined) return []
    const evidence = [told(lost.begin), ...(delivery === undefined ? [] : [recorded(delivery)])]
    const text = `${lost.attempt} ran, but the record does not know it`
    return [{ invariant: 'I8', id, text, evidence, means: /** @type {const} */ ('lost') }]
  })
}

const settling = ['result', 'terminal', 'not_sent']

/** A node that reported an outcome goes on when it is answered. @param {Case} file @returns {Violation[]} */
function checkReports({ reportsOf, deliveries, readAt }) {
  return [...reportsOf].flatMap(([id, reports]) => {
    const [name = '', number] = id.split('/')
    const delivery = deliveries.get(name)
    const attempt = delivery?.attempts.find((each) => each.number === Number(number))
    const settled = reports.find(({ t, data }) => t <= readAt && settling.includes(data.outcome))
    if (settled === undefined || (attempt !== undefined && attempt.status !== 'executing')) return []
    const evidence = [told(settled), ...(delivery === undefined ? [] : [recorded(delivery)])]
    const text = `${id} was reported as ${settled.data.outcome} and answered, but the record does not know it`
    return [{ invariant: 'I8', id: name, text, evidence, means: /** @type {const} */ ('lost') }]
  })
}

/** Every answered act names its entry of the log. @param {Case} file @returns {Violation[]} */
function checkActs({ acts, entries }) {
  const known = new Map(entries.map((entry) => [entry.id, entry]))
  return acts.flatMap((act) => {
    if (act.type !== 'ok' || act.logId === undefined || known.get(act.logId)?.verb === verbOf(act)) return []
    const id = `${act.act} ${act.fence ?? act.id}`
    return [
      {
        invariant: 'I8',
        id,
        text: 'acknowledged, but the log does not have it',
        evidence: [told(act.answer)],
      },
    ]
  })
}

/** @param {Act} act */
function verbOf({ act, fence }) {
  if (act === 'set') return fence?.split(':')[0]
  return act === 'resolve' ? 'resolve_attempt' : act
}
