// I5: epochs only grow, states move only as the contract says, what is settled stays. The log and the record, which are
// written by the same calls, have to tell the same; the marks bear the epochs under which they ran.
import { logged, recorded, told } from './evidence.js'
import type { AttemptStory, Case, DeliveryStory, FinalDelivery, Run, Violation } from './words.js'

/** From here on an epoch tells of a generation: history was lost, and epochs jumped. */
const generationOfEpochs = 1_000_000

export function checkMonotony(file: Case): Violation[] {
  const told = [...file.stories.values()].flatMap(({ violations }) => violations)
  const ran = [...file.runsOf].flatMap(([id, runs]) => checkEpochs(file, id, runs))
  if (file.moving) return [...told, ...ran]
  return [
    ...told,
    ...ran,
    ...[...file.stories.values()].flatMap((story) => checkThere(file, story)),
    ...file.record.deliveries.flatMap((delivery) => checkFinal(file, delivery)),
  ]
}

/** What the log tells of is in the record. */
function checkThere(file: Case, { id, steps }: DeliveryStory): Violation[] {
  const last = steps.at(-1)
  if (file.deliveries.has(id) || last === undefined) return []
  const text = 'the log tells of it, but the record does not know it'
  return [{ invariant: 'I8', id, text, evidence: [logged(last.entry, id)], means: 'lost' }]
}

function checkFinal(file: Case, delivery: FinalDelivery): Violation[] {
  const { id, state, epoch, attempts } = delivery
  const story = file.stories.get(id)
  const last = story?.steps.at(-1)?.entry
  const wrong = (text: string): Violation => {
    const evidence = [...(last === undefined ? [] : [logged(last, id)]), recorded(delivery)]
    return { invariant: 'I5', id, text, evidence }
  }
  const found: Violation[] = []
  const expected = story?.state ?? 'queued'
  if (state !== expected) found.push(wrong(`it is ${state}, but the log left it ${expected}`))
  const raised = story?.epoch ?? 0
  if (epoch < generationOfEpochs ? epoch !== raised : epoch < raised) {
    found.push(wrong(`its epoch is ${epoch}, but it was raised ${raised} times`))
  }
  const told = story?.attempts ?? []
  if (attempts.length !== told.length) {
    found.push(wrong(`it has ${attempts.length} attempts, but the log tells of ${told.length}`))
  }
  for (const attempt of attempts) {
    const known = told.find(({ number }) => number === attempt.number)
    const status = known?.settled?.status ?? 'executing'
    if (known === undefined || status === attempt.status) continue
    const text = `${known.id} is ${attempt.status}, but the log left it ${status}`
    found.push({
      ...wrong(text),
      evidence: [logged(known.settled?.entry ?? known.begun, id), recorded(delivery)],
    })
  }
  return found
}

function checkEpochs(file: Case, id: string, runs: readonly Run[]): Violation[] {
  const story = file.stories.get(id)
  const found: Violation[] = []
  let highest: Run | undefined
  for (const run of runs) {
    if (highest !== undefined && run.epoch < highest.epoch) {
      const text = `${run.attempt} ran under epoch ${run.epoch} after ${highest.attempt} under ${highest.epoch}`
      found.push({ invariant: 'I5', id, text, evidence: [told(highest.begin), told(run.begin)] })
    }
    if (highest === undefined || run.epoch > highest.epoch) highest = run
    const attempt = story?.attempts.find((each) => each.id === run.attempt)
    if (attempt !== undefined && run.epoch < generationOfEpochs) found.push(...checkEpoch(attempt, run))
  }
  return found
}

/** The epoch under which a run was begun is the one that the delivery had then. */
function checkEpoch(attempt: AttemptStory, run: Run): Violation[] {
  const grants = run.replay ? attempt.replays : [{ entry: attempt.begun, epoch: attempt.epoch }]
  if (grants.length === 0 || grants.some(({ epoch }) => epoch === run.epoch)) return []
  const had = grants.map(({ epoch }) => epoch).join(', ')
  const text = `${run.attempt} ran under epoch ${run.epoch}, but it was begun under ${had}`
  const evidence = [...grants.map(({ entry }) => logged(entry, run.delivery)), told(run.begin)]
  return [{ invariant: 'I5', id: run.delivery, text, evidence }]
}
