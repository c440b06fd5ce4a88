import type { AttemptView, DeliveryView, MessageView } from '../contract/delivery-views.js'
import { HoldfastError } from '../contract/errors.js'
import { deliveryId, messageId, messageOf } from '../contract/ids.js'
import type { AttemptStatus, OutcomeKind } from '../contract/outcomes.js'
import type { MessageHead } from '../contract/overview.js'
import { isDeliveryState } from '../contract/states.js'
import type { Keys } from '../record/keys.js'
import type { Reader } from '../record/reader.js'
import { present, stateOf } from '../record/replies.js'
import { timelineOf } from './timeline.js'

type Row = ReadonlyMap<string, string>

/** The message with its deliveries as they stand now. @throws MESSAGE_NOT_FOUND, INVALID_ARGUMENT */
export async function readMessage(reader: Reader, keys: Keys, id: string): Promise<MessageView> {
  const row = await reader.hash(keys.message(messageId(id)))
  if (row.size === 0) throw new HoldfastError('MESSAGE_NOT_FOUND', `no message ${id}`)
  const { settled: _, ...head } = messageHead(id, row)
  const made = Number(row.get('made') ?? 0)
  const ids = Array.from({ length: made }, (_, at) => `${id}.${at + 1}`)
  return { ...head, deliveries: await readDeliveries(reader, keys, ids) }
}

/** A message without its deliveries, from its row. */
export function messageHead(id: string, row: Row): MessageHead {
  const recipients = Number(row.get('recipients') ?? 0)
  return {
    id,
    conversation: row.get('conversation') ?? '',
    sender: row.get('sender') ?? '',
    key: row.get('key') ?? '',
    ...present('parent', row.get('parent')),
    ...present('resendOf', row.get('resend_of')),
    ...present('contentType', row.get('content_type')),
    sha256: row.get('sha256') ?? '',
    bytes: Number(row.get('bytes') ?? 0),
    recipients,
    settled: Number(row.get('settled') ?? 0),
    fanOut: Number(row.get('made') ?? 0) < recipients ? 'pending' : 'complete',
    acceptedAt: Number(row.get('accepted_at') ?? 0),
    ...timeOf('settledAt', row, 'settled_at'),
  }
}

/** Rows that are there; ids without a row are left out, and those of a damaged one, which an audit names. */
export async function readDeliveries(
  reader: Reader,
  keys: Keys,
  ids: readonly string[],
): Promise<DeliveryView[]> {
  const rows = await reader.hashes(ids.map((id) => keys.delivery(id)))
  return ids.flatMap((id, at) => {
    const row = rows[at]
    return row !== undefined && isReadable(row) ? [deliveryView(id, row)] : []
  })
}

function isReadable(row: Row): boolean {
  const areNumbers = ['epoch', 'attempts', 'takeovers'].every((name) => /^\d+$/.test(row.get(name) ?? '0'))
  return areNumbers && isDeliveryState(row.get('state') ?? '')
}

/** @throws DELIVERY_NOT_FOUND, INVALID_ARGUMENT */
export async function readDelivery(reader: Reader, keys: Keys, id: string): Promise<DeliveryView> {
  const [found] = await readDeliveries(reader, keys, [deliveryId(id)])
  if (found === undefined) throw new HoldfastError('DELIVERY_NOT_FOUND', `no delivery ${id}`)
  return found
}

function deliveryView(id: string, row: Row): DeliveryView {
  const count = Number(row.get('attempts') ?? 0)
  const attempts = Array.from({ length: count }, (_, at) => attemptView(id, at + 1, row))
  return {
    id,
    message: row.get('message') ?? messageOf(id),
    host: row.get('host') ?? '',
    ...present('session', row.get('session')),
    conversation: row.get('conversation') ?? '',
    state: stateOf(row.get('state') ?? ''),
    epoch: Number(row.get('epoch') ?? 0),
    ...present('owner', row.get('owner')),
    ...timeOf('incarnation', row, 'incarnation'),
    ...present('parkedBy', row.get('parked_by')),
    ...present('reason', reasonOf(row)),
    takeovers: Number(row.get('takeovers') ?? 0),
    ...timeOf('settledAt', row, 'settled_at'),
    attempts,
    timeline: timelineOf(row, attempts),
  }
}

function attemptView(delivery: string, number: number, row: Row): AttemptView {
  const field = (name: string) => row.get(`attempt_${number}_${name}`)
  const late = field('late')
  return {
    id: `${delivery}/${number}`,
    status: (field('status') ?? 'executing') as AttemptStatus,
    node: field('node') ?? '',
    incarnation: Number(field('incarnation') ?? 0),
    begunAt: Number(field('begun_at') ?? 0),
    ...present('settledAt', numberOf(field('settled_at'))),
    ...present('outcome', field('outcome') as OutcomeKind | undefined),
    ...present('result', field('result')),
    ...present('errorCode', field('error_code') ?? field('unknown_reason')),
    ...present('errorJson', field('error_json') ?? (field('unknown_json') || undefined)),
    ...present('unknownAt', numberOf(field('unknown_at'))),
    ...present('unknownReason', field('unknown_reason')),
    ...present('unknownReports', numberOf(field('unknown_reports'))),
    ...present('endedAt', numberOf(field('ended_at'))),
    ...present('replayedAt', numberOf(field('replayed_at'))),
    ...present('sessionEpoch', numberOf(field('session_epoch'))),
    ...present('lateReports', numberOf(late)),
    ...present('resolvedBy', field('resolved_by')),
    ...present('evidence', field('evidence')),
  }
}

function reasonOf(row: Row): string | undefined {
  switch (row.get('state')) {
    case 'held':
      return [row.get('held_reason'), row.get('held_fence')].filter(Boolean).join(' ')
    case 'failed':
      return [row.get('failed_code'), row.get('failed_detail')].filter(Boolean).join(' ')
    case 'unknown':
      return row.get('unknown_reason')
    default:
      return undefined
  }
}

function timeOf<Name extends string>(name: Name, row: Row, field: string): { [key in Name]?: number } {
  return present(name, numberOf(row.get(field)))
}

function numberOf(value: string | undefined): number | undefined {
  return value === undefined || value === '' ? undefined : Number(value)
}
