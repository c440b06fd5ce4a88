import type { EffectOutcome, EffectRequest, Effects } from '../../src/client/effects.js'
import { notSent, type Outcome, type ProbeAnswer, terminal } from '../../src/contract/outcomes.js'
import {
  commandExecutor,
  createNode,
  type HoldfastNode,
  type NodeOptions,
  type ProbeFunction,
} from '../../src/node/index.js'

// What must not compile (contract section 4, rule 8). Nothing here is ever run: `npm run typecheck` is the test, for
// an error that is expected and does not come is one itself.

const request: EffectRequest = { id: 'e', type: 'charge', payload: 1 }

/** An ambiguous failure is thrown: there is no way to return it. */
export async function ambiguous(effects: Effects, outcome: Outcome, random: boolean): Promise<void> {
  // @ts-expect-error an error
  await effects.run(request, () => new Error('cut'))
  // @ts-expect-error an error among values
  await effects.run(request, async () => (random ? new TypeError('cut') : { paid: 5 }))
  // @ts-expect-error an unknown outcome
  await effects.run(request, () => ({ kind: 'outcome_unknown' }) as const)
  // @ts-expect-error an unknown outcome with a code
  await effects.run(request, () => ({ kind: 'outcome_unknown', errorCode: 'timeout' }) as const)
  // @ts-expect-error a not_sent that notSent() did not make
  await effects.run(request, () => ({ kind: 'not_sent' }) as const)
  // @ts-expect-error a terminal that terminal() did not make
  await effects.run(request, async () => ({ kind: 'terminal', errorCode: 'declined' }) as const)
  // @ts-expect-error what a probe says when it cannot tell
  await effects.run(request, () => ({ kind: 'unknown' }) as const)
  // @ts-expect-error an outcome that may be unknown
  await effects.run(request, () => outcome)

  await effects.run(request, () => notSent('busy'))
  await effects.run(request, async () => terminal('declined'))
  await effects.run(request, () => (random ? notSent('busy') : { paid: 5 }))
  await effects.run(request, () => ({ kind: 'invoice', number: 7 }))
  await effects.run(request, () => undefined)
  // Nothing is known of it, so nothing is said against it: what a target answered, as JSON.parse types it.
  await effects.run(request, async (effect) => JSON.parse(`"${effect.id}"`))
}

/** The value is there in one arm of four, and without what the SDK has taken out of it. */
export async function fourArms(effects: Effects, random: boolean): Promise<number | string> {
  const outcome = await effects.run(request, () => (random ? notSent('busy') : { paid: 5 }))
  // @ts-expect-error nobody knows yet that there is a value
  outcome.value
  // @ts-expect-error nor that there is an error
  outcome.errorCode
  switch (outcome.kind) {
    case 'result':
      return outcome.value.paid
    case 'terminal':
    case 'not_sent':
      return outcome.errorCode
    case 'outcome_unknown':
      return outcome.executor
    default:
      return outcome satisfies never
  }
}

// @ts-expect-error whoever leaves an arm out has no answer for it
export function threeArms(outcome: EffectOutcome): string {
  switch (outcome.kind) {
    case 'result':
      return 'done'
    case 'terminal':
      return 'never'
    case 'not_sent':
      return 'again'
  }
}

/** A probe says one of four things; `terminal` is made by terminal(). */
export const probes: Record<string, ProbeFunction> = {
  result: () => ({ kind: 'result', value: 1 }),
  terminal: async () => terminal('declined'),
  notExecuted: () => ({ kind: 'not_executed' }),
  unknown: () => ({ kind: 'unknown' }),
  // @ts-expect-error not_sent is no answer: what is asserted is that it has not executed and will not
  notSent: () => notSent('busy'),
  // @ts-expect-error nor is a terminal of one's own
  ownTerminal: () => ({ kind: 'terminal', errorCode: 'declined' }),
  // @ts-expect-error nor an error
  error: () => new Error('cut'),
  // @ts-expect-error nor nothing
  nothing: () => undefined,
}

/** The same for effects and for nodes. */
export const probing: ProbeAnswer = { kind: 'not_executed' }
export const asked: Pick<EffectRequest, 'probe'> & Pick<NodeOptions, 'probe'> = { probe: () => probing }

/** A node has a record, and somebody who handles its deliveries; one of each. */
export function nodes(probe: ProbeFunction): readonly HoldfastNode[] {
  const basics = { host: 'a', mirror: 'a.db', probe }
  const redis = 'redis://127.0.0.1:6379'
  const http = { url: 'http://127.0.0.1:8080' }
  const execute = () => 'done'
  const executor = commandExecutor({ command: 'true' })
  return [
    createNode({ ...basics, redis, execute }),
    createNode({ ...basics, redis, executor }),
    createNode({ ...basics, http, execute }),
    createNode({ ...basics, http, executor, execute: undefined, redis: undefined }),
    // @ts-expect-error nobody handles what it claims
    createNode({ ...basics, redis }),
    // @ts-expect-error there is no record
    createNode({ ...basics, execute }),
    // @ts-expect-error one handles it, not two
    createNode({ ...basics, redis, execute, executor }),
    // @ts-expect-error nor are there two ways to the record
    createNode({ ...basics, redis, http, execute }),
    // @ts-expect-error no option is called so
    createNode({ ...basics, redis, execute, concurency: 2 }),
    // @ts-expect-error nor is text a flag
    createNode({ ...basics, redis, execute, idempotent: 'no' }),
  ]
}
