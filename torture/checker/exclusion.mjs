// @ts-check
// I2: executions of a delivery do not overlap or repeat. Judged by the marks that executors wrote outside the record:
// what began may have executed, whatever became of its process.
import { recorded, told } from './evidence.mjs'
import { statusOfOutcome } from './transitions.mjs'

/** @typedef {import('./words.mjs').AttemptStory} AttemptStory */
/** @typedef {import('./words.mjs').Case} Case */
/** @typedef {import('./words.mjs').FinalDelivery} FinalDelivery */
/** @typedef {import('./words.mjs').Line} Line */
/** @typedef {import('./words.mjs').Run} Run */
/** @typedef {import('./words.mjs').Violation} Violation */

/** One attempt, from every side. `status` is empty where the record does not know it.
 * @typedef {{ id: string, delivery: FinalDelivery, status: string, node: string, runs: Run[], story: AttemptStory | undefined, probes: Line[] }} Tried
 */

/** @param {Case} file @returns {Violation[]} */
export function checkExclusion(file) {
  return [
    ...[...file.runsOf].flatMap(([id, runs]) => checkRuns(file, id, runs)),
    ...file.record.deliveries.flatMap((delivery) => checkAttempts(file, delivery)),
  ]
}

/** @param {Case} file @param {string} id @param {Run[]} runs @returns {Violation[]} */
function checkRuns(file, id, runs) {
  const delivery = file.deliveries.get(id)
  // What the record lost is told under I8.
  if (delivery === undefined || file.moving) return overlaps(runs)
  return [...overlaps(runs), ...repeats(file, delivery, runs), ...strangers(file, delivery, runs)]
}

/** @param {Run[]} runs @returns {Violation[]} */
function overlaps(runs) {
  /** @type {Violation[]} */
  const found = []
  /** @type {Run | undefined} */
  let longest
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

/** Each run after the first needs proof that the ones before it did nothing, or a replay. @param {Case} file @param {FinalDelivery} delivery @param {Run[]} runs @returns {Violation[]} */
function repeats(file, delivery, runs) {
  /** @type {Violation[]} */
  const found = []
  /** @type {Map<string, number>} */
  const replays = new Map()
  for (const [at, run] of runs.entries()) {
    const before = runs[at - 1]
    if (before === undefined) continue
    if (before.attempt === run.attempt) {
      const replayed = (replays.get(run.attempt) ?? 0) + 1
      replays.set(run.attempt, replayed)
      const granted = storyOf(file, run)?.replays.length ?? 0
      if (run.replay && replayed <= granted) continue
      const text = `${run.attempt} was begun again${run.replay ? ' as a replay that nobody granted' : ''}`
      found.push({ ...twice(before, run, text), evidence: [told(before.begin), told(run.begin)] })
    } else {
      const why = whyNotProven(triedOf(file, delivery, before))
      if (why !== undefined)
        found.push(twice(before, run, `${run.attempt} ran after ${before.attempt}: ${why}`))
    }
  }
  return found
}

/** @param {Run} before @param {Run} run @param {string} text @returns {Violation} */
function twice(before, run, text) {
  const lines = before.end === undefined ? [before.begin, run.begin] : [before.begin, before.end, run.begin]
  return { invariant: 'I2', id: run.delivery, text, evidence: lines.map(told), means: 'twice' }
}

/** @param {Case} file @param {Run} run */
function storyOf(file, { delivery, attempt }) {
  return file.stories.get(delivery)?.attempts.find(({ id }) => id === attempt)
}

/** @param {Case} file @param {FinalDelivery} delivery @param {{ attempt: string, number: number }} which @returns {Tried} */
function triedOf(file, delivery, { attempt: id, number }) {
  const { status = '', node = '' } = delivery.attempts.find((each) => each.number === number) ?? {}
  const runs = (file.runsOf.get(delivery.id) ?? []).filter(({ attempt }) => attempt === id)
  const story = file.stories.get(delivery.id)?.attempts.find((each) => each.id === id)
  return { id, delivery, status, node, runs, story, probes: file.probesOf.get(id) ?? [] }
}

/** Why it is not proven that an attempt did nothing; undefined where it is. @param {Tried} tried @returns {string | undefined} */
function whyNotProven(tried) {
  const { status, runs } = tried
  if (status !== 'not_sent') return `that one is ${status || 'not in the record'}`
  if (isResolved(tried)) return undefined
  const did = runs.find((run) => run.outcome !== 'not_sent' && !isDisproven(tried, run))
  if (did === undefined) return undefined
  return did.end === undefined
    ? 'that one began, and nobody knows what it did'
    : `that one ended as ${did.outcome}`
}

/** @param {Tried} tried */
function isResolved({ story }) {
  return story?.settled?.entry.verb === 'resolve_attempt'
}

/** A probe, asked by a later process when nothing of the run could still act, said that its effect had not happened. @param {Tried} tried @param {Run} run */
function isDisproven({ probes }, { begin, end, outcome }) {
  const happened = end !== undefined && (outcome !== 'outcome_unknown' || end.data.effect !== false)
  if (happened) return false
  const asked = probes.find(
    ({ t, pid, data }) => data.answer === 'not_executed' && t > begin.t && pid !== begin.pid,
  )
  return asked !== undefined && (end === undefined || end.t < asked.t)
}

/** Runs under a grant that the record gave to somebody else. @param {Case} file @param {FinalDelivery} delivery @param {Run[]} runs @returns {Violation[]} */
function strangers(file, delivery, runs) {
  return runs.flatMap((run) => {
    const { node, status } = triedOf(file, delivery, run)
    if (status === '' || isNode(node, run.node)) return []
    const text = `${run.attempt} ran on ${run.node}, but the record gave it to ${node}`
    return [{ invariant: 'I2', id: delivery.id, text, evidence: [told(run.begin), recorded(delivery)] }]
  })
}

/** The record names a node with its host. @param {string} recordedName @param {string} name */
export function isNode(recordedName, name) {
  return recordedName === name || recordedName.endsWith(`/${name}`)
}

/** A node that lost its mirror goes on as `a1~2`. @param {string} name */
export function slotOf(name) {
  return name.replace(/~\d+$/, '')
}

/** What the record says of each attempt, against its marks. @param {Case} file @param {FinalDelivery} delivery @returns {Violation[]} */
function checkAttempts(file, delivery) {
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

/** @param {Tried} tried @returns {Violation[]} */
function checkNotSent(tried) {
  const why = whyNotProven(tried)
  if (why === undefined) return []
  const { id, delivery, runs } = tried
  const evidence = [
    ...runs.flatMap(({ begin, end }) => [told(begin), ...(end ? [told(end)] : [])]),
    recorded(delivery),
  ]
  return [{ invariant: 'I2', id: delivery.id, text: `${id} is settled as not_sent, but ${why}`, evidence }]
}

/** @param {Case} file @param {Tried} tried @returns {Violation[]} */
function checkFinished(file, { id, delivery, status, runs }) {
  const first = runs.filter(({ replay }) => !replay)
  if (first.length === 0) {
    const evidence = [told(undefined), recorded(delivery)]
    return [{ invariant: 'I2', id: delivery.id, text: `${id} is ${status}, but it never began`, evidence }]
  }
  const digest = file.messages.get(delivery.message)?.sha256
  const other = runs.find((run) => run.digest !== digest)
  if (digest !== undefined && other !== undefined) {
    const text = `${id} ran with a payload of digest ${other.digest}, accepted was ${digest}`
    return [{ invariant: 'I2', id: delivery.id, text, evidence: [told(other.begin), recorded(delivery)] }]
  }
  if (runs.some((run) => endsAs(run, status))) return []
  const text = `${id} is ${status}, but no run of it ended so`
  const evidence = [...runs.map(({ begin, end }) => told(end ?? begin)), recorded(delivery)]
  return [{ invariant: 'I2', id: delivery.id, text, evidence }]
}

/** A handler that threw after its effect did it all the same: a probe says so. @param {Run} run @param {string} status */
function endsAs({ end, outcome = '' }, status) {
  if (end === undefined) return false
  if (outcome === 'outcome_unknown') return status === 'done' && end.data.effect === true
  return statusOfOutcome[outcome] === status
}

/** A delivery that failed never ran. @param {Case} file @param {FinalDelivery} delivery @returns {Violation[]} */
function checkNeverRun(file, delivery) {
  if (delivery.state !== 'failed') return []
  const runs = file.runsOf.get(delivery.id) ?? []
  const ran = runs.find((run) => whyNotProven(triedOf(file, delivery, run)) !== undefined)
  if (ran === undefined) return []
  const text = `it failed, but ${ran.attempt} ran`
  return [{ invariant: 'I2', id: delivery.id, text, evidence: [told(ran.begin), recorded(delivery)] }]
}
