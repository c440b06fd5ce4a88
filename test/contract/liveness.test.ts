import { expect, it } from 'vitest'
import { livenessOf } from '../../src/contract/liveness.js'

it('a node is silent from stale_after_ms on, to the millisecond, unless it left', () => {
  expect(livenessOf({ state: 'live', heartbeatAgeMs: 9999 }, 10_000)).toBe('live')
  expect(livenessOf({ state: 'live', heartbeatAgeMs: 10_000 }, 10_000)).toBe('silent')
  expect(livenessOf({ state: 'left', heartbeatAgeMs: 0 }, 10_000)).toBe('left')
})
