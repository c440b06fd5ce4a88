import type {
  EffectCalls,
  EffectClaimed,
  EffectRecord,
  EffectRefused,
  EffectSettled,
  EffectStatus,
} from '../contract/effects.js'
import { isErrorCode } from '../contract/errors.js'
import type { Resolution } from '../contract/hub.js'
import type { Outcome, OutcomeKind } from '../contract/outcomes.js'
import type { CallFunction } from './call-function.js'
import type { Argument } from './connections.js'
import { type Fields, number, optionalText, present, text } from './replies.js'

export interface EffectFunctions extends EffectCalls {
  resolveEffect(id: string, resolution: Resolution, actor: string): Promise<EffectSettled>
}

/** Typed callers of the functions on effects. */
export function effectFunctionsOf(call: CallFunction): EffectFunctions {
  return {
    claimEffect: async (id, { type, payloadHash, executor, grant, timeLimitMs }) => {
      const reply = await call('claim_effect', [id, type, payloadHash, executor, grant, timeLimitMs ?? ''])
      return text(reply, 'kind') === 'claimed' ? claimedOf(reply) : recordOf(reply)
    },
    takeOverEffect: async (id, { payloadHash, executor, grant, basis, epoch, startedAt, timeLimitMs }) => {
      const args = [id, payloadHash, executor, grant, basis, epoch, startedAt, timeLimitMs ?? '']
      const reply = await call('take_over_effect', args)
      return text(reply, 'kind') === 'claimed' ? claimedOf(reply) : refusedOf(reply)
    },
    settleEffect: async (id, { executor, grant, epoch, outcome }) => {
      const reply = await call('settle_effect', [id, executor, grant, epoch, ...outcomeArguments(outcome)])
      return text(reply, 'kind') === 'settled' ? settledOf(reply) : refusedOf(reply)
    },
    resolveEffect: async (id, { as, evidence, force, result }, actor) =>
      settledOf(
        await call('resolve_effect', [id, as, evidence, actor, force === true ? 1 : 0, result ?? '']),
      ),
  }
}

function outcomeArguments(outcome: Outcome): Argument[] {
  if (outcome.kind === 'result') return ['result', outcome.result, '', '']
  return [outcome.kind, '', outcome.errorCode, outcome.errorJson ?? '']
}

function claimedOf(reply: Fields): EffectClaimed {
  return { kind: 'claimed', epoch: number(reply, 'epoch'), startedAt: number(reply, 'started_at') }
}

function recordOf(reply: Fields): EffectRecord {
  const epoch = number(reply, 'epoch')
  const kind = text(reply, 'kind')
  if (kind === 'result') return { kind, result: resultOf(reply), epoch }
  if (kind === 'terminal') {
    const errorCode = optionalText(reply, 'error_code') ?? 'terminal'
    return { kind, errorCode, ...present('errorJson', optionalText(reply, 'error_json')), epoch }
  }
  return { kind: 'outcome_unknown', epoch, ...openOf(reply) }
}

/** JSON text. What retention took away is said to be gone: no value stands in for it. */
function resultOf(reply: Fields): string {
  const prunedAt = Number(optionalText(reply, 'bodies_pruned_at') ?? Number.NaN)
  if (Number.isNaN(prunedAt)) return optionalText(reply, 'result') ?? 'null'
  const date = new Date(prunedAt).toISOString()
  return JSON.stringify({ omitted: `the result was pruned at ${date}, after retention_ms` })
}

function openOf(reply: Fields) {
  return {
    startedAt: number(reply, 'started_at'),
    executor: optionalText(reply, 'executor') ?? '',
    ageMs: number(reply, 'age_ms'),
  }
}

function refusedOf(reply: Fields): EffectRefused {
  const code = text(reply, 'code')
  return {
    kind: 'refused',
    code: isErrorCode(code) ? code : 'INTERNAL',
    detail: optionalText(reply, 'detail') ?? '',
    status: text(reply, 'status') as EffectStatus,
    epoch: number(reply, 'epoch'),
    ...openOf(reply),
  }
}

function settledOf(reply: Fields): EffectSettled {
  return {
    kind: 'settled',
    outcome: text(reply, 'outcome') as OutcomeKind,
    status: text(reply, 'status') as EffectStatus,
    epoch: number(reply, 'epoch'),
  }
}
