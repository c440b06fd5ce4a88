import { describe, expect, it } from 'vitest'
import { eachRecord } from '../support/each-record.js'
import type { OpenRecord } from '../support/record.js'

let record: OpenRecord

eachRecord(async (made) => {
  record = made
  await record.join('a', 'n1')
})

const long = (length: number) => 'x'.repeat(length)
const integers = ['-1', '0.5', 'one', '9007199254740992']

/** What is refused in the place of an argument of this kind. */
const bad = {
  id: ['', 'ä', 'a\tb', long(256)],
  optionalId: ['ä', long(256)],
  word: ['', 'a b', long(256)],
  host: ['', 'A', '-a', 'a-', 'a/b', long(64)],
  hash: ['', long(64), 'A'.repeat(64), 'a'.repeat(63)],
  digest: ['x', 'A'.repeat(64)],
  text: ['', long(1025)],
  integer: ['', ...integers],
  positive: ['', '0', ...integers],
  optionalInteger: integers,
  delivery: ['', 'x', '1-1'],
  scope: ['', 'hub:x', 'host:A', 'conversation:', `session:${long(256)}`, 'node:n1'],
  choice: ['', 'other'],
  recipient: ['', 'host:A', `host:${long(64)}`, 'host:-a', 'session:', `session:${long(256)}`, 'node:n1'],
  free: [],
} as const

type Kind = keyof typeof bad
/** An argument that would do, and its kind. */
type Argument = readonly [good: string, kind: Kind]

const host: Argument = ['a', 'host']
const node: readonly Argument[] = [host, ['n1', 'id'], ['1', 'positive']]
const delivery: Argument = ['1764430000000-00000000.1', 'delivery']
const epoch: Argument = ['1', 'integer']
const actor: Argument = ['kim', 'text']
const reason: Argument = ['because', 'text']
const none: Argument = ['', 'free']
const flag: Argument = ['0', 'integer']
const digest = 'a'.repeat(64)
const message: readonly Argument[] = [
  ['k', 'id'],
  ['fingerprint', 'id'],
  ['c1', 'id'],
  ['me', 'id'],
  ['', 'optionalId'],
  ['', 'optionalId'],
  ['digest', 'id'],
  ['', 'optionalInteger'],
  ['', 'optionalInteger'],
  ['', 'optionalId'],
  ['payload', 'free'],
  ['host:a', 'recipient'],
]
const fence: readonly Argument[] = [['hub', 'scope'], reason, actor, ['', 'optionalInteger']]
const effect: Argument = ['e1', 'id']
const hash: Argument = [digest, 'hash']
const grant: Argument = ['g', 'word']

const calls: Readonly<Record<string, readonly Argument[]>> = {
  hf_accept: message,
  hf_ack: [...node, delivery, epoch],
  hf_add_principal: [
    ['p', 'id'],
    ['node', 'choice'],
    ['a', 'host'],
    none,
    flag,
    ['', 'digest'],
    [digest, 'digest'],
    actor,
  ],
  hf_attest: [
    ['hub', 'id'],
    ['0-0', 'free'],
    ['always', 'choice'],
  ],
  hf_begin: [...node, delivery, epoch, ['g', 'id'], flag],
  hf_block: fence,
  hf_busy_hosts: [host],
  hf_cancel: [delivery, actor, reason],
  hf_claim: [...node, ['1', 'positive'], ['1', 'positive'], flag],
  hf_claim_effect: [effect, ['type', 'id'], hash, ['me', 'id'], grant, ['', 'optionalInteger']],
  hf_close_session: [
    ['s', 'id'],
    epoch,
    ['removed', 'text'],
    ['1', 'optionalInteger'],
    flag,
    ['1', 'optionalInteger'],
    actor,
  ],
  hf_configure: [actor, ['heartbeat_ms', 'choice'], ['2000', 'integer']],
  hf_fan_out: [
    ['m', 'id'],
    ['1', 'positive'],
  ],
  hf_heartbeat: [...node, ['0-0', 'free'], flag, flag, flag, flag, flag, flag],
  hf_hold: fence,
  hf_hold_delivery: [delivery, actor, reason],
  hf_init: [['store', 'id'], flag],
  hf_join: [...node, ['instance', 'id'], none, ['0-0', 'free']],
  hf_leave: node,
  hf_lift: [['pause', 'choice'], ['hub', 'scope'], actor],
  hf_mirror: [...node, delivery, epoch],
  hf_move: [['s', 'id'], actor],
  hf_note_lost: [
    ['hub', 'id'],
    ['1764430000000-00000000', 'choice'],
  ],
  hf_note_sweep: [['claims', 'word'], flag, flag, flag, flag, none, none, ['hub', 'free'], ['[]', 'free']],
  hf_open_session: [
    ['s', 'id'],
    host,
    ['/srv', 'text'],
    ['', 'optionalInteger'],
    ['', 'optionalId'],
    actor,
    flag,
  ],
  hf_pause: fence,
  hf_prune: [['1', 'positive']],
  hf_reconcile: [flag, flag, delivery],
  hf_reconcile_lists: [['effects', 'choice'], flag, ['e1', 'free']],
  hf_reconcile_messages: [flag, ['m', 'id']],
  hf_recount: [
    ['0-0', 'id'],
    ['queued', 'choice'],
    ['0', 'integer'],
  ],
  hf_refuse: [...node, delivery, epoch, ['failed', 'choice'], ['no_room', 'id']],
  hf_rehome: [['s', 'id'], host, actor, reason],
  hf_reject: [delivery, actor, reason],
  hf_release: [delivery, actor, reason],
  hf_report: [
    ...node,
    ['1764430000000-00000000.1', 'delivery'],
    ['g', 'id'],
    ['k', 'word'],
    ['terminal', 'choice'],
    none,
    ['code', 'id'],
    none,
    flag,
  ],
  hf_resolve_attempt: [
    ['1764430000000-00000000.1/1', 'delivery'],
    ['terminal', 'choice'],
    ['seen', 'text'],
    actor,
    flag,
    none,
  ],
  hf_resolve_delivery: [delivery, ['failed', 'choice'], ['seen', 'text'], actor],
  hf_resolve_effect: [effect, ['terminal', 'choice'], ['seen', 'text'], actor, flag, none],
  hf_retire: [host, actor, reason],
  hf_revoke_principal: [['p', 'id'], actor, reason],
  hf_settle_effect: [effect, ['me', 'id'], grant, epoch, ['terminal', 'choice'], none, ['code', 'id'], none],
  hf_sweep_claims: [host],
  hf_sweep_nodes: [host],
  hf_sweep_parked: [host],
  hf_sweep_reports: [host],
  hf_sweep_stale: [host],
  hf_take: [...node, delivery, epoch, ['', 'optionalId']],
  hf_take_over_effect: [
    effect,
    hash,
    ['me', 'id'],
    grant,
    ['probe', 'free'],
    epoch,
    ['1', 'integer'],
    ['', 'optionalInteger'],
  ],
  hf_why: [delivery],
}

const call = (name: string, args: readonly string[]) => record.store.fcall(name, record.keys.tag, [...args])
const goodOf = (name: string) => (calls[name] ?? []).map(([good]) => good)

describe.each(Object.keys(calls))('%s', (name) => {
  const cases = (calls[name] ?? []).flatMap(([, kind], at) => bad[kind].map((value) => ({ at, kind, value })))

  it('refuses each argument that is not of its kind, and changes nothing', async () => {
    for (const { at, value } of cases) {
      const args = goodOf(name).with(at, value)
      const refusal = await record
        .refused('INVALID_ARGUMENT', () => call(name, args))
        .catch((error: Error) => {
          throw new Error(`argument ${at + 1} as ${JSON.stringify(value)}: ${error.message}`, {
            cause: error,
          })
        })
      expect(refusal).not.toBe('')
    }
  })

  // Without a limit hf_prune has one of its own.
  if (name !== 'hf_prune') {
    it('refuses a call without arguments', async () => {
      await record.refused('INVALID_ARGUMENT', () => call(name, []))
    })
  }
})

it('a digest that is left out is refused like any other', async () => {
  await record.refused('INVALID_ARGUMENT', () => call('hf_claim_effect', ['e1', 'type']))
})

const many = (count: number, value: string) => Array.from({ length: count }, () => value)
const aDelivery = '1764430000000-00000000.1'

it.each([
  ['hf_ack', ['a', 'n1', '1', ...many(2002, '1')]],
  ['hf_ack', ['a', 'n1', '1', '1', '1', '1']],
  ['hf_accept', goodOf('hf_accept').slice(0, 10)],
  ['hf_accept_batch', []],
  ['hf_accept_batch', ['2', ...goodOf('hf_accept')]],
  ['hf_accept_batch', many(101, '0').flatMap((none) => [none, ...goodOf('hf_accept').slice(0, 11)])],
  ['hf_busy_hosts', many(1001, 'a')],
  ['hf_configure', ['kim', 'heartbeat_ms']],
  ['hf_configure', ['kim', 'heartbeat_ms', '2000', 'stale_after_ms']],
  ['hf_note_lost', ['hub']],
  ['hf_note_lost', ['hub', ...many(101, '1764430000000-00000000')]],
  ['hf_reconcile', ['0', '0', ...many(501, aDelivery)]],
  ['hf_reconcile_lists', ['effects', '0', ...many(501, 'e1')]],
  ['hf_reconcile_messages', ['0', ...many(501, 'm')]],
])('%s refuses a list of a wrong length (%#)', async (name, args) => {
  await record.refused('INVALID_ARGUMENT', () => call(name, args))
})

it('refuses keys that are not one tag', async () => {
  for (const keys of [[], ['{t}', '{t}'], ['t'], ['{T}'], ['{t}x']]) {
    const answer = record.send('FCALL', 'hf_tally', keys.length, ...keys)
    await expect(answer).rejects.toThrow(/exactly one key is passed/)
  }
})

it.each(['-1', '0.5', 'one', ''])('hf_accept_batch refuses %j as the number of recipients', async (count) => {
  await record.refused('INVALID_ARGUMENT', () => call('hf_accept_batch', [count, ...goodOf('hf_accept')]))
})

it('refuses a record whose identity lacks its id or its generation, or is of another schema', async () => {
  const { identity } = record.keys
  const id = String(await record.send('HGET', identity, 'store_id'))
  await record.send('HDEL', identity, 'store_id')
  await record.refused('STORE_UNKNOWN', () => record.functions.tally())
  await record.send('HSET', identity, 'store_id', id)
  await record.send('HDEL', identity, 'generation')
  await record.refused('STORE_UNKNOWN', () => record.functions.tally())
  await record.send('HSET', identity, 'generation', 0, 'schema', 2)
  await record.refused('STORE_UNKNOWN', () => record.functions.tally())
  await record.send('HSET', identity, 'schema', 1)
  await record.functions.tally()
})
