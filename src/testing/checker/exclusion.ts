// I2: executions of a delivery do not overlap or repeat. Judged by the marks that executors wrote outside the record:
// what began may have executed, whatever became of its process.
import { recorded, told } from './evidence.js'
import { statusOfOutcome } from './transitions.js'
import type { AttemptStory, Case, FinalDelivery, Line, Run, Violation } from './words.js'

/** One attempt, from every side. */
interface Tried {
  readonly id: string
  readonly delivery: FinalDelivery
  /** Empty where the record does not know it. */
  readonly status: string
  readonly node: string
  readonly runs: readonly Run[]
  readonly story: AttemptStory | undefined
  readonly probes: readonly Line[]
}

export function checkExclusion(file: Case): Violation[] {
  return [
    ...[...file.runsOf].flatMap(([id, runs]) => checkRuns(file, id, runs)),
    ...file.record.deliveries.flatMap((delivery) => checkAttempts(file, delivery)),
  ]
}

function checkRuns(file: Case, id: string, runs: readonly Run[]): Violation[] {
  const delivery = file.deliveries.get(id)
  // What the record lost is told under I8.
  if (delivery === undefined || file.moving) return overlaps(runs)
  return [...overlaps(runs), ...repeats(file, delivery, runs), ...strangers(file, delivery, runs)]
}

function overlaps(runs: readonly Run[]): Violation[] {
  const found: Violation[] = []
  let longest: Run | undefined
  for (const run of runs) {
    if (longest?.end !== undefined && run.begin.t < longest.end.t) {
      const text = `${run.attempt} began on ${run.node} while ${longest.attempt} ran on ${longest.node}`
      const evidence = [told(longest.begin), told(run.begin), told(longest.end)]
      found.push({ invariant: 'I2', id: run.delivery, text, evidence, means: 'twice' })
    }
    if (run.end !== undefined && (longest?.end === undefined || run.end.t > longest.end.t)) longest = run
  }
  return found
}

/** Each run after the first needs proof that the ones before it did nothing, or a replay. */
function repeats(file: Case, delivery: FinalDelivery, runs: readonly Run[]): Violation[] {
  const found: Violation[] = []
  const replays = new Map<string, number>()
  for (const [at, run] of runs.entries()) {
    const before = runs[at - 1]
    if (before === undefined) continue
    if (before.attempt === run.attempt) {
      const replayed = (replays.get(run.attempt) ?? 0) + 1
      replays.set(run.attempt, replayed)
      const granted = storyOf(file, run)?.replays.length ?? 0
      if (run.replay && replayed <= granted) continue
      const text = `${run.attempt} was begun again${run.replay ? ' as a replay that nobody granted' : ''}`
      found.push({
        ...twice(before, run, text),
        evidence: [told(before.begin), told(run.begin), recorded(delivery)],
      })
    } else {
      const why = whyNotProven(triedOf(file, delivery, before))
      if (why === undefined) continue
      const violation = twice(before, run, `${run.attempt} ran after ${before.attempt}: ${why}`)
      found.push({ ...violation, evidence: [...violation.evidence, recorded(delivery)] })
    }
  }
  return found
}

function twice(before: Run, run: Run, text: string): Violation {
  const lines = before.end === undefined ? [before.begin, run.begin] : [before.begin, before.end, run.begin]
  return { invariant: 'I2', id: run.delivery, text, evidence: lines.map(told), means: 'twice' }
}

function storyOf(file: Case, { delivery, attempt }: Run): AttemptStory | undefined {
  return file.stories.get(delivery)?.attempts.find(({ id }) => id === attempt)
}

function triedOf(
  file: Case,
  delivery: FinalDelivery,
  { attempt: id, number }: Pick<Run, 'attempt' | 'number'>,
): Tried {
  const { status = '', node = '' } = delivery.attempts.find((each) => each.number === number) ?? {}
  const runs = (file.runsOf.get(delivery.id) ?? []).filter(({ attempt }) => attempt === id)
  const story = file.stories.get(delivery.id)?.attempts.find((each) => each.id === id)
  return { id, delivery, status, node, runs, story, probes: file.probesOf.get(id) ?? [] }
}

/** Why it is not proven that an attempt did nothing; undefined where it is. */
function whyNotProven(tried: Tried): string | undefined {
  const { status, runs } = tried
  if (status !== 'not_sent') return `that one is ${status || 'not in the record'}`
  if (isResolved(tried)) return undefined
  const did = runs.find((run) => run.outcome !== 'not_sent' && !isDisproven(tried, run))
  if (did === undefined) return undefined
  return did.end === undefined
    ? 'that one began, and nobody knows what it did'
    : `that one ended as ${did.outcome}`
}

function isResolved({ story }: Tried): boolean {
  return story?.settled?.entry.verb === 'resolve_attempt'
}

/** A probe, asked by a later process when nothing of the run could still act, said that its effect had not happened. */
function isDisproven({ probes }: Tried, { begin, end, outcome }: Run): boolean {
  const happened = end !== undefined && (outcome !== 'outcome_unknown' || end.data.effect === true)
  if (happened) return false
  const asked = probes.find(
    ({ t, pid, data }) => data.answer === 'not_executed' && t > begin.t && pid !== begin.pid,
  )
  return asked !== undefined && (end === undefined || end.t < asked.t)
}

/** Runs under a grant that the record gave to somebody else. */
function strangers(file: Case, delivery: FinalDelivery, runs: readonly Run[]): Violation[] {
  return runs.flatMap((run) => {
    const { node, status } = triedOf(file, delivery, run)
    if (status === '' || isNode(node, run.node)) return []
    const text = `${run.attempt} ran on ${run.node}, but the record gave it to ${node}`
    return [{ invariant: 'I2', id: delivery.id, text, evidence: [told(run.begin), recorded(delivery)] }]
  })
}

/** The record names a node with its host. */
export function isNode(recordedName: string, name: string): boolean {
  return recordedName === name || recordedName.endsWith(`/${name}`)
}

/** A node that lost its mirror goes on as `a1~2`. */
export function slotOf(name: string): string {
  return name.replace(/~\d+$/, '')
}

/** What the record says of each attempt, against its marks. */
function checkAttempts(file: Case, delivery: FinalDelivery): Violation[] {
  if (file.moving) return []
  return [
    ...checkNeverRun(file, delivery),
    ...delivery.attempts.flatMap(({ number }) => {
      const tried = triedOf(file, delivery, { attempt: `${delivery.id}/${number}`, number })
      if (isResolved(tried)) return []
      if (tried.status === 'not_sent') return checkNotSent(tried)
      if (tried.status === 'done' || tried.status === 'terminal') return checkFinished(file, tried)
      return []
    }),
  ]
}

function checkNotSent(tried: Tried): Violation[] {
  const why = whyNotProven(tried)
  if (why === undefined) return []
  const { id, delivery, runs } = tried
  const evidence = [
    ...runs.flatMap(({ begin, end }) => [told(begin), ...(end ? [told(end)] : [])]),
    recorded(delivery),
  ]
  return [{ invariant: 'I2', id: delivery.id, text: `${id} is settled as not_sent, but ${why}`, evidence }]
}

function checkFinished(file: Case, tried: Tried): Violation[] {
  const { id, delivery, status, runs, story } = tried
  // One that was killed before its first mark, and begun again, has marks of the replay alone.
  const isReplay = runs.length > 0 && (story?.replays.length ?? 0) > 0
  if (!isReplay && runs.every(({ replay }) => replay)) {
    const evidence = [told(undefined), recorded(delivery)]
    return [{ invariant: 'I2', id: delivery.id, text: `${id} is ${status}, but it never began`, evidence }]
  }
  const digest = file.messages.get(delivery.message)?.sha256
  const other = runs.find((run) => run.digest !== digest)
  if (digest !== undefined && other !== undefined) {
    const text = `${id} ran with a payload of digest ${other.digest}, accepted was ${digest}`
    return [{ invariant: 'I2', id: delivery.id, text, evidence: [told(other.begin), recorded(delivery)] }]
  }
  if (runs.some((run) => endsAs(run, status)) || isProbed(tried, status)) return []
  const text = `${id} is ${status}, but no run of it ended so`
  const evidence = [...runs.map(({ begin, end }) => told(end ?? begin)), recorded(delivery)]
  return [{ invariant: 'I2', id: delivery.id, text, evidence }]
}

/** Whoever was asked knew how it ended, where the run itself could not say so any more. */
function isProbed({ probes }: Tried, status: string): boolean {
  return probes.some(({ data }) => statusOfOutcome[data.answer ?? ''] === status)
}

/** A handler that threw after its effect did it all the same: a probe says so. */
function endsAs({ end, outcome = '' }: Run, status: string): boolean {
  if (end === undefined) return false
  if (outcome === 'outcome_unknown') return status === 'done' && end.data.effect === true
  return statusOfOutcome[outcome] === status
}

/** A delivery that failed never ran. */
function checkNeverRun(file: Case, delivery: FinalDelivery): Violation[] {
  if (delivery.state !== 'failed') return []
  const runs = file.runsOf.get(delivery.id) ?? []
  const ran = runs.find((run) => whyNotProven(triedOf(file, delivery, run)) !== undefined)
  if (ran === undefined) return []
  const text = `it failed, but ${ran.attempt} ran`
  return [{ invariant: 'I2', id: delivery.id, text, evidence: [told(ran.begin), recorded(delivery)] }]
}
