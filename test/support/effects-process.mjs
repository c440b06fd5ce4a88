// A process that runs effects, for tests that kill or stop it. It runs the built code: npm test builds first. Its
// one argument is JSON, see `EffectsProcessOptions` in child.ts; each line of its input is a `RunEffect`. It tells
// what happens as lines of JSON; the one with `answered` is the answer.
import { randomUUID } from 'node:crypto'
import { appendFileSync, writeSync } from 'node:fs'
import { createInterface } from 'node:readline'

const { createEffects, hashPayload, notSent, openHub } = await import(
  new URL('../../dist/index.js', import.meta.url).href
)

/** @type {import('./child.ts').EffectsProcessOptions} */
const { redis, hub: name, executor, marks } = JSON.parse(process.argv[2] ?? '{}')

/** @param {object} line */
function say(line) {
  writeSync(1, `${JSON.stringify(line)}\n`)
}

const hub = await openHub({ redis, hub: name })

/** Sends this process its signal, before anything else can happen. */
function reach(/** @type {import('./child.ts').RunEffect} */ command, /** @type {string} */ point) {
  if (command.at?.point !== point) return
  say({ hit: point })
  process.kill(process.pid, command.at.signal)
}

/** The calls of the hub; the process learns that an effect is its own before its SDK does. */
function callsOf(/** @type {import('./child.ts').RunEffect} */ command) {
  const owning = (/** @type {{kind: string}} */ answer) => {
    if (answer.kind === 'claimed') reach(command, 'owned')
    return answer
  }
  return {
    ...hub,
    claimEffect: async (/** @type {unknown[]} */ ...call) => owning(await hub.claimEffect(...call)),
    takeOverEffect: async (/** @type {unknown[]} */ ...call) => owning(await hub.takeOverEffect(...call)),
  }
}

// One for all plain runs, as a process has it: its map of flights is one.
const shared = createEffects(hub, { executor, recoveryAgeMs: 0 })

async function run(/** @type {import('./child.ts').RunEffect} */ command) {
  let executed = 0
  const probe = () => {
    reach(command, 'probing')
    return command.probeSays === 'result' ? { kind: 'result', value: 'probed' } : { kind: command.probeSays }
  }
  const { at, recoveryAgeMs = 0 } = command
  const isPlain = at === undefined && recoveryAgeMs === 0
  const effects = isPlain ? shared : createEffects(callsOf(command), { executor, recoveryAgeMs })
  const request = {
    id: command.run,
    type: 'charge',
    payload: command.payload ?? 'payload',
    idempotent: command.idempotent,
    timeLimitMs: command.timeLimitMs,
    ...(command.probeSays && { probe }),
  }
  /** @param {{isFresh(): boolean}} effect */
  const execute = (effect) => {
    if (!effect.isFresh()) return notSent('too late')
    appendFileSync(marks, `${command.run}\n`)
    executed += 1
    reach(command, 'marked')
    if (command.then === 'throw') throw new Error('socket hang up')
    return command.then === 'not_sent' ? notSent('busy') : executor
  }
  try {
    const outcome = await effects.run(request, execute)
    say({ answered: command.run, executed, outcome })
  } catch (error) {
    const { code, message } = /** @type {{code?: string, message: string}} */ (error)
    say({ answered: command.run, executed, threw: code ?? message })
  }
}

/** Compare-and-set as the record does it: nothing but the row as it was seen decides. */
async function takeOver(
  /** @type {import('./child.ts').RunEffect} */ { run: id, payload = 'payload', takeOver: seen },
) {
  const mine = { executor, grant: randomUUID() }
  const basis = { basis: 'idempotent', payloadHash: hashPayload(payload) }
  const answer = await hub.takeOverEffect(id, { ...mine, ...basis, ...seen })
  if (answer.kind !== 'claimed') {
    const { code, epoch, executor: owner } = answer
    say({ answered: id, executed: 0, outcome: { kind: 'outcome_unknown', code, epoch, executor: owner } })
    return
  }
  appendFileSync(marks, `${id}\n`)
  const outcome = { kind: 'result', result: JSON.stringify(executor) }
  await hub.settleEffect(id, { ...mine, epoch: answer.epoch, outcome })
  say({ answered: id, executed: 1, outcome: { kind: 'result', value: executor } })
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const command = JSON.parse(line)
  void (command.takeOver === undefined ? run(command) : takeOver(command))
})
say({ started: true })
