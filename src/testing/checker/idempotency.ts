// I6: one message for a key, one outcome for an attempt, one effect for an act.
import { grouped, logged, recorded, told } from './evidence.js'
import { statusOfOutcome } from './transitions.js'
import type { Accept, Case, FinalDelivery, FinalMessage, Violation } from './words.js'

export function checkIdempotency(file: Case): Violation[] {
  const messagesOf = grouped(file.record.messages, ({ key }) => key)
  return [
    ...[...file.acceptsOf].flatMap(([key, accepts]) => checkKey(key, accepts)),
    ...[...messagesOf].flatMap(([key, messages]) => checkMessages(file, key, messages)),
    ...file.record.deliveries.flatMap((delivery) => checkReports(file, delivery)),
    ...checkActs(file),
  ]
}

function checkKey(key: string, accepts: readonly Accept[]): Violation[] {
  const found: Violation[] = []
  const wrong = (text: string, shown: readonly (Accept | undefined)[]) => {
    const evidence = shown.flatMap((each) => (each?.answer === undefined ? [] : [told(each.answer)]))
    found.push({ invariant: 'I6', id: key, text, evidence })
  }
  const [first, ...others] = accepts.filter(({ type, changed }) => type === 'ok' && !changed)
  const other = others.find(({ id }) => id !== first?.id)
  if (other !== undefined) wrong(`one key, two messages: ${first?.id} and ${other.id}`, [first, other])
  const changed = accepts.find((each) => each.type === 'ok' && each.changed)
  if (changed !== undefined) wrong('other content was accepted under a key in use', [first, changed])
  const refused = accepts.find(
    ({ code, changed: isChanged }) => code === 'IDEMPOTENCY_MISMATCH' && !isChanged,
  )
  if (refused !== undefined) wrong('the same content was refused as other content', [first, refused])
  return found
}

function checkMessages(file: Case, key: string, messages: readonly FinalMessage[]): Violation[] {
  const shown = messages.map((message) => `record ${JSON.stringify(message)}`)
  if (messages.length > 1) {
    return [{ invariant: 'I6', id: key, text: `${messages.length} messages of one key`, evidence: shown }]
  }
  const accepts = file.acceptsOf.get(key) ?? []
  const asked = accepts.filter(({ changed }) => !changed)
  if (asked.length === 0) {
    return [{ invariant: 'I6', id: key, text: 'a message that nobody asked for', evidence: shown }]
  }
  if (asked.every(({ type }) => type === 'fail')) {
    const evidence = [...asked.map(({ answer }) => told(answer)), ...shown]
    return [{ invariant: 'I6', id: key, text: 'refused, but it is in the record', evidence }]
  }
  const [message] = messages
  if (asked.some(({ digest }) => digest === message?.sha256)) return []
  const evidence = [told(asked[0]?.invoke), ...shown]
  return [{ invariant: 'I6', id: key, text: 'its content is not what was asked for', evidence }]
}

/** What a node says twice is answered as the first time. Of an attempt that ran once, and that nobody else spoke of, there is nothing that could come too late. */
function checkReports({ stories, runsOf, probesOf }: Case, delivery: FinalDelivery): Violation[] {
  const { id, attempts } = delivery
  const last = attempts.at(-1)
  if (last === undefined || !last.lateReports || (last.status !== 'done' && last.status !== 'terminal'))
    return []
  const story = stories.get(id)?.attempts.find(({ number }) => number === last.number)
  if (story === undefined || story.unknown.length > 0 || story.settled?.entry.verb !== 'report') return []
  const [run, ...others] = (runsOf.get(id) ?? []).filter(({ number }) => number === last.number)
  if (others.length > 0 || statusOfOutcome[run?.outcome ?? ''] !== last.status || probesOf.has(story.id))
    return []
  const text = `its outcome was reported again, and taken for another: ${last.lateReports} late reports`
  return [
    {
      invariant: 'I6',
      id,
      text,
      evidence: [told(run?.end), logged(story.settled.entry, id), recorded(delivery)],
    },
  ]
}

/** An act is made at most as often as it was asked for. */
function checkActs({ acts, entries }: Case): Violation[] {
  const asked = grouped(
    acts.filter(({ type }) => type !== 'fail'),
    ({ act, fence, id }) => `${act} ${fence ?? id}`,
  )
  const made = grouped(entries, ({ verb, more, moves }) => {
    if (verb === 'pause' || verb === 'hold' || verb === 'block') return `set ${verb}:${more.get('scope')}`
    if (verb === 'lift') return `lift ${more.get('fence')}`
    return verb === 'release' ? `release ${moves[0]?.id}` : ''
  })
  return [...made].flatMap(([what, found]) => {
    const requests = asked.get(what) ?? []
    if (what === '' || found.length <= requests.length) return []
    const text = `asked for ${requests.length} times, made ${found.length} times`
    const evidence = [...requests.map(({ invoke }) => told(invoke)), ...found.map((entry) => logged(entry))]
    return [{ invariant: 'I6', id: what, text, evidence }]
  })
}
