import type { Outcome } from '../../src/contract/outcomes.js'
import type { Attempt } from '../../src/node/executor.js'
import { sha256 } from './record.js'

/** Bytes that survive no text conversion. */
export const payload = Buffer.from([0, 255, 10, 13, 0xf0, 0x9f, 0x98, 0x80])

/** An attempt that an earlier process left open, as a probe is asked about it. */
export function openAttempt(parts: Partial<Attempt> = {}): Attempt {
  return {
    id: 'm1.1/2',
    deliveryId: 'm1.1',
    number: 2,
    replay: true,
    epoch: 3,
    hub: 'hf',
    host: 'h1',
    node: 'n1',
    target: { host: 'h1', session: 'agent 7' },
    message: { id: 'm1', conversation: 'c1', sender: 's1', sha256: sha256(payload) },
    payload,
    signal: new AbortController().signal,
    ...parts,
  }
}

/** What a probe's `not_executed` is recorded as. */
export const notExecuted: Outcome = { kind: 'not_sent', errorCode: 'probe_not_executed' }

/** The outcome with its particulars as a value. */
export function parsed(outcome: Outcome): object {
  if (outcome.kind === 'result' || outcome.errorJson === undefined) return outcome
  return { ...outcome, errorJson: JSON.parse(outcome.errorJson) as unknown }
}
