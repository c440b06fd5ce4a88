import { z } from 'zod'
import { name, objectWith, option, optionsOf, whole } from '../contract/options.js'
import type { EffectRequest, EffectsOptions } from './effects.js'

// What `createEffects` and `run` take, as it must be.

const most = Number.MAX_SAFE_INTEGER
export const hubForm = objectWith('a hub, or a client of one', [
  'claimEffect',
  'takeOverEffect',
  'settleEffect',
])
export const optionsForm = optionsOf<EffectsOptions>({
  executor: name.id,
  recoveryAgeMs: whole(0, most).optional(),
  deadlineMs: whole(0, most).optional(),
  clock: objectWith('a clock, which has monotonic and wall', ['monotonic', 'wall']).optional(),
})
export const requestForm = optionsOf<EffectRequest>({
  id: name.id,
  type: name.id,
  payload: z.custom((value) => value !== undefined),
  leaveOut: z.array(z.string()).optional(),
  probe: option.function.optional(),
  idempotent: option.flag,
  timeLimitMs: whole(1, most).optional(),
})
