// I8: what was acknowledged is there, whatever was killed or cut since: accepts, begins, outcomes, fences, acts.
import { recorded, told } from './evidence.js'
import type { Act, Case, Violation } from './words.js'

export function checkDurability(file: Case): Violation[] {
  return [...checkAccepts(file), ...checkBegins(file), ...checkReports(file), ...checkActs(file)]
}

function checkAccepts({ accepts, messages, readAt }: Case): Violation[] {
  const lost = new Map<string, Violation>()
  for (const { type, id = '', answer } of accepts) {
    if (type !== 'ok' || messages.has(id) || lost.has(id) || (answer?.t ?? 0) > readAt) continue
    const text = 'acknowledged, but the record has no such message'
    lost.set(id, { invariant: 'I8', id, text, evidence: [told(answer)], means: 'lost' })
  }
  return [...lost.values()]
}

/** Who ran was told that it may: the record knows of it. */
function checkBegins({ runsOf, deliveries, readAt }: Case): Violation[] {
  return [...runsOf].flatMap(([id, runs]) => {
    const delivery = deliveries.get(id)
    const lost = runs.find(
      ({ number, begin }) => begin.t <= readAt && !delivery?.attempts.some((each) => each.number === number),
    )
    if (lost === undefined) return []
    const evidence = [told(lost.begin), ...(delivery === undefined ? [] : [recorded(delivery)])]
    const text = `${lost.attempt} ran, but the record does not know it`
    return [{ invariant: 'I8', id, text, evidence, means: 'lost' as const }]
  })
}

const settling = ['result', 'terminal', 'not_sent']

/** A node that reported an outcome goes on when it is answered. */
function checkReports({ reportsOf, deliveries, readAt }: Case): Violation[] {
  return [...reportsOf].flatMap(([id, reports]) => {
    const [name = '', number] = id.split('/')
    const delivery = deliveries.get(name)
    const attempt = delivery?.attempts.find((each) => each.number === Number(number))
    const settled = reports.find(({ t, data }) => t <= readAt && settling.includes(data.outcome ?? ''))
    if (settled === undefined || (attempt !== undefined && attempt.status !== 'executing')) return []
    const evidence = [told(settled), ...(delivery === undefined ? [] : [recorded(delivery)])]
    const text = `${id} was reported as ${settled.data.outcome} and answered, but the record does not know it`
    return [{ invariant: 'I8', id: name, text, evidence, means: 'lost' as const }]
  })
}

/** Every answered act names its entry of the log. */
function checkActs({ acts, entries }: Case): Violation[] {
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

function verbOf({ act, fence }: Act): string | undefined {
  if (act === 'set') return fence?.split(':')[0]
  return act === 'resolve' ? 'resolve_attempt' : act
}
