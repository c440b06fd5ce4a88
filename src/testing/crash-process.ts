// A node process of a crash test: runs the user's handler, marks each of its runs, and kills itself at the named point.
// Its one argument is JSON, see CrashProcess. It ends with whoever started it.
import { createHash } from 'node:crypto'
import { subscribe } from 'node:diagnostics_channel'
import { isReturnedError, isTypedOutcome, type ProbeAnswer } from '../contract/outcomes.js'
import { type CrashPointReached, crashPointChannel } from '../node/crash-point.js'
import { createNode } from '../node/create-node.js'
import type { Attempt } from '../node/executor.js'
import type { CrashHandler, CrashProcess, Said } from './crash-words.js'
import { openHistory } from './history.js'

const options = JSON.parse(process.argv[2] ?? '{}') as CrashProcess
const { redis, hub, host, mirror, killAt } = options
const history = openHistory(options.history, 'node', host)
const marks = openHistory(options.history, 'marks', host)

function say(said: Said): void {
  process.send?.(said)
}

/** Told of every point; at the named one nothing more happens. */
function reach(point: string): void {
  history.write({ kind: 'point', point })
  if (point !== killAt) return
  history.write({ kind: 'end', how: 'killed at a point', point })
  process.kill(process.pid, 'SIGKILL')
}

/** On disk before the handler goes on. */
function mark(type: 'begin' | 'end', attempt: Attempt, more: object = {}): void {
  const { id, deliveryId: delivery, number, epoch, replay } = attempt
  const digest = createHash('sha256').update(attempt.payload).digest('hex')
  marks.write({
    kind: 'mark',
    type,
    delivery,
    attempt: id,
    number,
    epoch,
    replay,
    digest,
    node: host,
    ...more,
  })
  marks.sync()
}

async function marked(attempt: Attempt, execute: CrashHandler['execute']): Promise<unknown> {
  mark('begin', attempt)
  try {
    const value = await execute(attempt)
    if (isReturnedError(value)) throw value
    const late = attempt.signal.aborted ? { late: true } : {}
    mark('end', attempt, { outcome: isTypedOutcome(value) ? value.kind : 'result', ...late })
    return value
  } catch (error) {
    mark('end', attempt, { outcome: 'outcome_unknown' })
    throw error
  }
}

async function asked(attempt: Attempt, probe: NonNullable<CrashHandler['probe']>): Promise<ProbeAnswer> {
  const note = (answer: string) => history.write({ kind: 'probe', attempt: attempt.id, answer })
  try {
    const answer = await probe(attempt)
    note(answer.kind)
    return answer
  } catch (error) {
    note('unknown') // what it throws is no answer
    throw error
  }
}

async function start(): Promise<void> {
  const handler = (await import(options.handler)) as Partial<CrashHandler>
  const { execute, probe } = handler
  if (typeof execute !== 'function') throw new Error(`${options.handler} exports no function "execute"`)
  const node = createNode({
    ...(handler.options ?? {}),
    redis,
    hub,
    host,
    mirror,
    idempotent: handler.idempotent === true,
    execute: (attempt) => marked(attempt, execute),
    ...(probe === undefined ? {} : { probe: (attempt: Attempt) => asked(attempt, probe) }),
    onPoint: reach,
  })
  process.on('SIGTERM', () => void node.stop())
  void node.closed.then((end) => {
    history.write({ kind: 'end', how: end.kind })
    process.exit(end.kind === 'failed' ? 1 : 0)
  })
  await node.start()
  say({ up: true, probe: probe !== undefined, idempotent: handler.idempotent === true })
}

process.on('disconnect', () => process.exit(0))
subscribe(crashPointChannel, (message) => reach(`handler.${(message as CrashPointReached).name}`))
await start().catch((error: unknown) => {
  console.error(error)
  process.exit(1)
})
