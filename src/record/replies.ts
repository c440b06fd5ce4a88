import { type ErrorCode, isErrorCode } from '../contract/errors.js'
import { type OutcomeKind, outcomeKinds } from '../contract/outcomes.js'
import { type DeliveryState, isDeliveryState } from '../contract/states.js'
import type { ClaimedDelivery, ClaimedHow, StepResult } from '../contract/steps.js'

/** A reply of field-value pairs, by field. Fails on anything else: the server speaks another protocol. */
export type Fields = ReadonlyMap<string, unknown>

/** Reads `[field, value, field, value …]`. */
export function fieldsOf(reply: unknown): Fields {
  if (!Array.isArray(reply) || reply.length % 2 !== 0) throw malformed('field-value pairs', reply)
  const fields = new Map<string, unknown>()
  for (let at = 0; at < reply.length; at += 2) fields.set(textOf(reply[at]), reply[at + 1])
  return fields
}

export function listOf(fields: Fields, name: string): readonly unknown[] {
  const value = fields.get(name)
  if (!Array.isArray(value)) throw malformed(`a list in ${name}`, value)
  return value
}

export function text(fields: Fields, name: string): string {
  return textOf(fields.get(name))
}

/** The text, or undefined where it is missing or empty. */
export function optionalText(fields: Fields, name: string): string | undefined {
  const value = fields.get(name)
  if (value === undefined || value === null) return undefined
  return textOf(value) || undefined
}

export function number(fields: Fields, name: string): number {
  const value = Number(textOf(fields.get(name)))
  if (!Number.isSafeInteger(value)) throw malformed(`a whole number in ${name}`, fields.get(name))
  return value
}

export function textOf(value: unknown): string {
  if (typeof value === 'string') return value
  if (typeof value === 'number') return String(value)
  if (Buffer.isBuffer(value)) return value.toString('utf8')
  throw malformed('text', value)
}

/** Turns one item of a batch reply into its result. */
export function stepResultOf(reply: unknown): StepResult {
  const fields = fieldsOf(reply)
  const id = text(fields, 'id')
  if (number(fields, 'ok') === 1) {
    return {
      id,
      ok: true,
      epoch: number(fields, 'epoch'),
      state: stateOf(text(fields, 'state')),
      ...attemptOf(optionalText(fields, 'attempt')),
      ...present('outcome', outcomeOf(optionalText(fields, 'outcome'))),
      ...(fields.has('replayed') ? { replayed: true } : {}),
    }
  }
  const state = optionalText(fields, 'state')
  return {
    id,
    ok: false,
    code: codeOf(text(fields, 'code')),
    ...(fields.has('epoch') ? { epoch: number(fields, 'epoch') } : {}),
    ...(state === undefined ? {} : { state: stateOf(state) }),
    ...present('owner', optionalText(fields, 'owner')),
    ...present('detail', optionalText(fields, 'detail')),
  }
}

/** Turns one delivery of a claim's reply into its typed form; `reply` holds Buffers. */
export function claimedDeliveryOf(reply: unknown): ClaimedDelivery {
  const fields = fieldsOf(reply)
  const payload = fields.get('payload')
  if (!Buffer.isBuffer(payload)) throw malformed('payload bytes', payload)
  return {
    id: text(fields, 'id'),
    epoch: number(fields, 'epoch'),
    state: stateOf(text(fields, 'state')),
    how: howOf(text(fields, 'how')),
    attempts: number(fields, 'attempts'),
    ...present('session', optionalText(fields, 'session')),
    ...present('sessionEpoch', sessionEpochOf(fields)),
    message: {
      id: text(fields, 'message'),
      conversation: text(fields, 'conversation'),
      sender: optionalText(fields, 'sender') ?? '',
      ...present('parent', optionalText(fields, 'parent')),
      ...present('contentType', optionalText(fields, 'content_type')),
      sha256: optionalText(fields, 'sha256') ?? '',
    },
    payload,
  }
}

function sessionEpochOf(fields: Fields): number | undefined {
  const text = optionalText(fields, 'session_epoch')
  return text === undefined ? undefined : Number(text)
}

/** `{ [name]: value }`, or nothing where there is no value. */
export function present<Name extends string, Value>(
  name: Name,
  value: Value | undefined,
): { [key in Name]?: Value } {
  if (value === undefined) return {}
  return { [name]: value } as { [key in Name]: Value }
}

export function stateOf(word: string): DeliveryState {
  if (isDeliveryState(word)) return word
  throw malformed('a delivery state', word)
}

function attemptOf(value: string | undefined): { attempt?: number } {
  if (value === undefined) return {}
  return { attempt: Number(value.slice(value.lastIndexOf('/') + 1)) }
}

function outcomeOf(word: string | undefined): OutcomeKind | undefined {
  return outcomeKinds.find((kind) => kind === word)
}

function codeOf(word: string): ErrorCode {
  if (isErrorCode(word)) return word
  throw malformed('an error code', word)
}

const hows: readonly string[] = ['new', 'parked', 'resume', 'takeover'] satisfies ClaimedHow[]

function howOf(word: string): ClaimedHow {
  if (hows.includes(word)) return word as ClaimedHow
  throw malformed('how a delivery was claimed', word)
}

function malformed(wanted: string, found: unknown): Error {
  return new Error(`the server answered ${JSON.stringify(found)?.slice(0, 200)} where ${wanted} belongs`)
}
