import type { EffectView } from '../contract/effect-views.js'
import type { EffectStatus } from '../contract/effects.js'
import { HoldfastError } from '../contract/errors.js'
import type { EffectPageOptions, Page } from '../contract/hub.js'
import { printableId } from '../contract/ids.js'
import type { OutcomeKind } from '../contract/outcomes.js'
import type { Keys } from '../record/keys.js'
import type { Reader } from '../record/reader.js'
import { present } from '../record/replies.js'
import { sortedSetPage } from './sorted-sets.js'

/** @throws EFFECT_NOT_FOUND for one never claimed */
export async function readEffect(reader: Reader, keys: Keys, id: string): Promise<EffectView> {
  const [view] = await readEffects(reader, keys, [printableId(id, 'effect')])
  if (view === undefined) throw new HoldfastError('EFFECT_NOT_FOUND', `effect ${id} was never claimed`)
  return view
}

/** Effects by when they were first claimed; or those that are executing, the longest first. */
export async function listEffects(
  reader: Reader,
  keys: Keys,
  page: EffectPageOptions = {},
): Promise<Page<EffectView>> {
  const list = page.executing === true ? keys.executing : keys.effects
  const { members, cursor } = await sortedSetPage(reader, list, page)
  const ids = members.map(({ member }) => member)
  return { entries: await readEffects(reader, keys, ids), ...present('cursor', cursor) }
}

export async function readEffects(reader: Reader, keys: Keys, ids: readonly string[]): Promise<EffectView[]> {
  const rows = await reader.hashes(ids.map((id) => keys.effect(id)))
  return ids.flatMap((id, at) => {
    const row = rows[at]
    return row?.has('status') ? [effectView(id, row)] : []
  })
}

function effectView(id: string, row: ReadonlyMap<string, string>): EffectView {
  const number = (field: string) => (row.has(field) ? Number(row.get(field)) : undefined)
  return {
    id,
    type: row.get('effect_type') ?? '',
    payloadHash: row.get('payload_hash') ?? '',
    status: (row.get('status') ?? 'executing') as EffectStatus,
    executor: row.get('executor') ?? '',
    epoch: number('epoch') ?? 0,
    claimedAt: number('claimed_at') ?? 0,
    startedAt: number('started_at') ?? 0,
    ...present('settledAt', number('settled_at')),
    ...present('outcome', row.get('outcome') as OutcomeKind | undefined),
    ...present('result', row.get('result')),
    ...present('errorCode', row.get('error_code') || undefined),
    ...present('errorJson', row.get('error_json')),
    ...present('unknownAt', number('unknown_at')),
    ...present('unknownReason', row.get('unknown_reason')),
    takeovers: number('takeovers') ?? 0,
    ...present('takenFrom', row.get('taken_from')),
    ...present('basis', row.get('basis') || undefined),
    ...present('lateReports', number('late')),
    ...present('resolvedBy', row.get('resolved_by')),
    ...present('evidence', row.get('evidence')),
    ...present('bodiesPrunedAt', number('bodies_pruned_at')),
  }
}
