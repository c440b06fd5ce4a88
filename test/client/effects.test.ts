import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import {
  createEffects,
  type EffectAttempt,
  type EffectRequest,
  type EffectsOptions,
} from '../../src/client/effects.js'
import type { EffectCalls } from '../../src/contract/effects.js'
import { isHoldfastError } from '../../src/contract/errors.js'
import { notSent, type ProbeAnswer, terminal } from '../../src/contract/outcomes.js'
import { openHub } from '../../src/hub/open-hub.js'
import { startProxy } from '../support/proxy.js'
import { hashOf, makeRecord, type TestRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { until } from '../support/until.js'

let server: TestServer
let record: TestRecord
let names = 0

beforeAll(async () => {
  server = await startTestServer()
})
afterAll(() => server?.stop())
beforeEach(async () => {
  names += 1
  record = await makeRecord(server, `effects${names}`, { recovery_age_ms: 0 })
})
afterEach(() => record.close())

/** Both clocks, moved by hand. */
function handClock() {
  const at = { monotonic: 1000, wall: Date.now() }
  return { at, monotonic: () => at.monotonic, wall: () => at.wall }
}

const effectsOf = (changes: Partial<EffectsOptions> = {}, calls: EffectCalls = record.hub) =>
  createEffects(calls, { executor: 'one', ...changes })

const charge = (changes: Partial<EffectRequest> = {}): EffectRequest => ({
  id: 'order 7/charge',
  type: 'charge',
  payload: { amount: 5 },
  ...changes,
})

const rowOf = async (id = charge().id) => hashOf(await record.send('HGETALL', record.keys.effect(id)))
const unknownList = () => record.send('ZRANGE', record.keys.unknown, 0, -1)
const never = (): never => {
  throw new Error('it was executed')
}

async function caught(call: () => Promise<unknown>): Promise<unknown> {
  try {
    await call()
  } catch (error) {
    return error
  }
  throw new Error('nothing was thrown')
}

/** An effect whose executor is gone: nobody knows what became of it. Its time limit is over. */
async function orphan(id = charge().id): Promise<void> {
  const gone = effectsOf({ executor: 'gone' })
  await caught(() => gone.run(charge({ id, timeLimitMs: 1000 }), () => Promise.reject(new Error('cut'))))
  await ageRow(id)
}

async function ageRow(id = charge().id, byMs = 1_000_000): Promise<void> {
  await record.send('HINCRBY', record.keys.effect(id), 'started_at', -byMs)
}

/** Sees the orphan, lets the recovery age pass on the monotonic clock, and runs it again. */
async function recover(request: EffectRequest, execute: (effect: EffectAttempt) => unknown) {
  const clock = handClock()
  const effects = effectsOf({ executor: 'two', clock, recoveryAgeMs: 500 })
  expect(await effects.run(request, never)).toMatchObject({ kind: 'outcome_unknown', executor: 'gone' })
  clock.at.monotonic += 500
  return await effects.run(request, execute)
}

describe('the four arms', () => {
  it('a result, replayed to whoever asks again', async () => {
    const first = await effectsOf().run(charge(), ({ id, epoch }) => ({ id, epoch }))
    expect(first).toEqual({ kind: 'result', value: { id: 'order 7/charge', epoch: 1 }, replayed: false })
    expect(await effectsOf().run(charge(), never)).toEqual({ ...first, replayed: true })
    expect(await effectsOf({ executor: 'two' }).run(charge(), never)).toEqual({ ...first, replayed: true })
  })

  it('a result of nothing is null', async () => {
    expect(await effectsOf().run(charge(), () => undefined)).toMatchObject({ kind: 'result', value: null })
  })

  const words: readonly [unknown, string][] = [
    ['gesperrt f\u00fcr Kunde', 'gesperrt f?r Kunde'],
    ['two\nlines', 'two?lines'],
    ['', 'error'],
    [undefined, 'error'],
    [new Error('no route'), 'no route'],
    ['x'.repeat(300), 'x'.repeat(255)],
  ]
  it.each(words)('what was proven is recorded, however it is called: %j', async (word, errorCode) => {
    const refused = await effectsOf().run(charge(), () => terminal(word as string))
    expect(refused).toMatchObject({ kind: 'terminal', errorCode })
    expect(await effectsOf().run(charge(), never)).toMatchObject({ kind: 'terminal', errorCode })
    const other = { ...charge(), id: 'order 8/charge' }
    expect(await effectsOf().run(other, () => notSent(word as string))).toMatchObject({
      kind: 'not_sent',
      errorCode,
    })
    expect(await effectsOf().run(other, () => 'sent')).toMatchObject({ kind: 'result', value: 'sent' })
  })

  it('terminal: it is never executed again', async () => {
    const told = { kind: 'terminal', errorCode: 'declined', errorJson: '{"by":"bank"}' }
    const refuse = () => terminal('declined', { by: 'bank' })
    expect(await effectsOf().run(charge(), refuse)).toEqual(told)
    expect(await effectsOf().run(charge(), never)).toEqual(told)
  })

  it('not_sent: the next run executes, under a higher epoch', async () => {
    expect(await effectsOf().run(charge(), () => notSent('busy'))).toMatchObject({
      kind: 'not_sent',
      errorCode: 'busy',
    })
    expect((await rowOf())['status']).toBe('free')
    expect(await effectsOf().run(charge(), ({ epoch }) => epoch)).toMatchObject({ value: 2 })
  })

  it('whatever is thrown is thrown on; the row stays executing, and is listed', async () => {
    const failure = new Error('socket hang up')
    expect(await caught(() => effectsOf().run(charge(), () => Promise.reject(failure)))).toBe(failure)
    expect(await rowOf()).toMatchObject({
      status: 'executing',
      unknown_reason: 'execute_threw',
      unknown_json: '{"message":"socket hang up"}',
    })
    expect(await unknownList()).toEqual(['effect:order 7/charge'])
    expect(await effectsOf().run(charge(), never)).toMatchObject({ kind: 'outcome_unknown', epoch: 1 })
  })

  it('an error that untyped code returns counts as thrown', async () => {
    const failure = new TypeError('socket hang up')
    const returning = () => effectsOf().run(charge(), async () => failure as unknown)
    expect(await caught(returning)).toBe(failure)
    expect(await rowOf()).toMatchObject({ status: 'executing', unknown_reason: 'execute_threw' })
    expect(await unknownList()).toEqual(['effect:order 7/charge'])
  })

  it('looks like an outcome, and is a result: only notSent() and terminal() prove something', async () => {
    const value = JSON.parse('{"kind":"not_sent","errorCode":"x"}') as object
    expect(await effectsOf().run(charge(), () => value)).toEqual({ kind: 'result', value, replayed: false })
  })

  it('a result that JSON cannot state, or too large, is recorded as executed', async () => {
    await record.config('max_result_bytes', 256)
    expect(await effectsOf().run(charge({ id: 'a' }), () => 10n)).toMatchObject({ kind: 'result' })
    const large = 'x'.repeat(300)
    expect(await effectsOf().run(charge({ id: 'b' }), () => large)).toMatchObject({ value: large })
    for (const id of ['a', 'b']) {
      const again = await effectsOf().run(charge({ id }), never)
      expect(again).toMatchObject({ value: { omitted: expect.any(String) }, replayed: true })
    }
  })
})

describe('one id stands for one payload', () => {
  it('refuses another payload or type, and executes nothing', async () => {
    await effectsOf().run(charge(), () => 1)
    for (const changes of [{ payload: { amount: 6 } }, { type: 'refund' }]) {
      const error = await caught(() => effectsOf().run(charge(changes), never))
      expect(isHoldfastError(error, 'PAYLOAD_MISMATCH')).toBe(true)
    }
  })

  it('leaves out what may differ between retries', async () => {
    const request = (at: number) => charge({ payload: { amount: 5, at }, leaveOut: ['/at'] })
    await effectsOf().run(request(1), () => 'paid')
    expect(await effectsOf().run(request(2), never)).toMatchObject({ value: 'paid', replayed: true })
  })

  it('executes once for concurrent runs here; another payload or type is refused at once', async () => {
    const effects = effectsOf()
    let executed = 0
    const execute = async () => {
      executed += 1
      return executed
    }
    const runs = Array.from({ length: 20 }, () => effects.run(charge(), execute))
    for (const changes of [{ payload: 'other' }, { type: 'refund' }]) {
      const error = await caught(() => effects.run(charge(changes), never))
      expect(isHoldfastError(error, 'PAYLOAD_MISMATCH')).toBe(true)
    }
    for (const outcome of await Promise.all(runs)) expect(outcome).toMatchObject({ kind: 'result', value: 1 })
    expect(executed).toBe(1)
  })

  it('refuses a payload that cannot be stated, before anything is claimed', async () => {
    const error = await caught(() => effectsOf().run(charge({ payload: Number.NaN }), never))
    expect(isHoldfastError(error, 'INVALID_ARGUMENT')).toBe(true)
    expect(await rowOf()).toEqual({})
  })
})

describe('recovery', () => {
  it('without a basis it stays unknown for good', async () => {
    await orphan()
    const clock = handClock()
    const effects = effectsOf({ executor: 'two', clock })
    for (let round = 0; round < 3; round += 1) {
      expect(await effects.run(charge(), never)).toMatchObject({ kind: 'outcome_unknown', epoch: 1 })
      clock.at.monotonic += 10_000_000
      clock.at.wall += 10_000_000
    }
  })

  it.each(['probe', 'idempotent'] as const)(
    'with %s only once this process has watched long enough, however old the record says it is',
    async (basis) => {
      await orphan()
      const clock = handClock()
      const effects = effectsOf({ executor: 'two', clock, recoveryAgeMs: 500 })
      const request = charge(
        basis === 'probe' ? { probe: () => ({ kind: 'not_executed' }) } : { idempotent: true },
      )
      for (const stepMs of [0, 499]) {
        clock.at.monotonic += stepMs
        clock.at.wall += 1_000_000
        expect(await effects.run(request, never)).toMatchObject({ kind: 'outcome_unknown', epoch: 1 })
      }
      clock.at.monotonic += 1
      expect(await effects.run(request, ({ epoch }) => epoch)).toMatchObject({ kind: 'result', value: 2 })
      expect(await rowOf()).toMatchObject({ basis, taken_from: 'gone#1', executor: 'two' })
    },
  )

  it('not before the age by the record either', async () => {
    await orphan()
    await record.config('recovery_age_ms', 100_000_000)
    expect(await recover(charge({ idempotent: true }), never)).toMatchObject({
      kind: 'outcome_unknown',
      epoch: 1,
    })
  })

  it('watches anew when the row got a new epoch', async () => {
    await orphan()
    const clock = handClock()
    const effects = effectsOf({ executor: 'three', clock, recoveryAgeMs: 500 })
    const request = charge({ idempotent: true, timeLimitMs: 1000 })
    await effects.run(request, never)
    await caught(() => recover(request, () => Promise.reject(new Error('cut again'))))
    await ageRow()
    clock.at.monotonic += 500
    expect(await effects.run(request, never)).toMatchObject({ kind: 'outcome_unknown', epoch: 2 })
    clock.at.monotonic += 500
    expect(await effects.run(request, ({ epoch }) => epoch)).toMatchObject({ value: 3 })
  })

  it('takes over first, then probes', async () => {
    await orphan()
    const seen: unknown[] = []
    const probe = async ({ id, epoch }: EffectAttempt): Promise<ProbeAnswer> => {
      const row = await rowOf()
      seen.push([id, epoch, row['epoch'], row['executor'], row['status']])
      return { kind: 'result', value: 'paid' }
    }
    await recover(charge({ probe }), never)
    expect(seen).toEqual([['order 7/charge', 2, '2', 'two', 'executing']])
  })

  const answers: readonly [string, ProbeAnswer | Error, object, string][] = [
    ['result', { kind: 'result', value: 7 }, { kind: 'result', value: 7 }, 'done'],
    ['terminal', terminal('declined'), { kind: 'terminal', errorCode: 'declined' }, 'terminal'],
    ['unknown', { kind: 'unknown' }, { kind: 'outcome_unknown', epoch: 2, executor: 'two' }, 'executing'],
    ['an error', new Error('no route'), { kind: 'outcome_unknown', epoch: 2 }, 'executing'],
  ]
  it.each(answers)('a probe that answers %s executes nothing', async (_, answer, outcome, status) => {
    await orphan()
    const probe = () => {
      if (answer instanceof Error) throw answer
      return answer
    }
    expect(await recover(charge({ probe }), never)).toMatchObject(outcome)
    expect((await rowOf())['status']).toBe(status)
    expect(await unknownList()).toEqual(status === 'executing' ? ['effect:order 7/charge'] : [])
  })

  const noAnswers: readonly [string, unknown][] = [
    ['not_sent, which says nothing of the execution', notSent('target unreachable')],
    ['a result without a value', { kind: 'result', errorCode: 'z' }],
    ['a kind that is none', { kind: 'maybe' }],
    ['a terminal of its own making', { kind: 'terminal', errorCode: 'declined' }],
    ['a word', 'paid'],
    ['a number', 7],
    ['nothing', undefined],
  ]
  it.each(noAnswers)('a probe that answers %s proves nothing', async (_, answer) => {
    await orphan()
    const probe = (() => answer) as () => ProbeAnswer
    expect(await recover(charge({ probe }), never)).toMatchObject({ kind: 'outcome_unknown', epoch: 2 })
    expect((await rowOf())['status']).toBe('executing')
    expect(await unknownList()).toEqual(['effect:order 7/charge'])
    expect(await effectsOf().run(charge(), never)).toMatchObject({ kind: 'outcome_unknown' })
  })

  it('execute that ignores its signal is unknown at its limit; what it comes to is recorded then', async () => {
    let end: (value: string) => void = () => undefined
    const deaf = () =>
      new Promise<string>((resolve) => {
        end = resolve
      })
    const request = charge({ timeLimitMs: 200 })
    expect(await effectsOf().run(request, deaf)).toMatchObject({ kind: 'outcome_unknown', epoch: 1 })
    expect(await unknownList()).toEqual(['effect:order 7/charge'])
    expect(await effectsOf().run(request, never)).toMatchObject({ kind: 'outcome_unknown' })
    end('paid')
    await until(async () => (await rowOf())['status'] === 'done', { what: 'the late result' })
    expect(await effectsOf().run(request, never)).toMatchObject({ kind: 'result', value: 'paid' })
  })

  it('a probe that ignores its signal is unknown at its limit', async () => {
    await orphan()
    const request = charge({ timeLimitMs: 200, probe: () => new Promise<ProbeAnswer>(() => undefined) })
    expect(await recover(request, never)).toMatchObject({ kind: 'outcome_unknown', epoch: 2 })
    expect(await unknownList()).toEqual(['effect:order 7/charge'])
  })

  it('a probe that answers not_executed licenses one execution', async () => {
    await orphan()
    let executed = 0
    const request = charge({ probe: () => ({ kind: 'not_executed' }) })
    const outcome = await recover(request, () => {
      executed += 1
      return executed
    })
    expect(outcome).toEqual({ kind: 'result', value: 1, replayed: false })
    expect(await effectsOf().run(request, never)).toMatchObject({ value: 1, replayed: true })
  })

  it('after an idempotent take-over not_sent is unknown still', async () => {
    await orphan()
    const outcome = await recover(charge({ idempotent: true }), () => notSent('busy'))
    expect(outcome).toMatchObject({ kind: 'outcome_unknown', epoch: 2 })
    expect((await rowOf())['status']).toBe('executing')
  })

  it('lets one of two recoverers proceed', async () => {
    await orphan()
    let executed = 0
    const clock = handClock()
    const both = ['two', 'three'].map((executor) => effectsOf({ executor, clock, recoveryAgeMs: 500 }))
    const request = charge({ idempotent: true })
    const all = () =>
      Promise.all(
        both.map((effects) =>
          effects.run(request, () => {
            executed += 1
          }),
        ),
      )
    await all()
    clock.at.monotonic += 500
    const kinds = (await all()).map(({ kind }) => kind)
    expect(kinds).toContain('result')
    expect(executed).toBe(1)
  })
})

describe('time', () => {
  it.each(['monotonic', 'wall'] as const)('gives up a grant grown too old by the %s clock', async (which) => {
    const clock = handClock()
    const calls: EffectCalls = {
      ...record.hub,
      claimEffect: async (id, claim) => {
        const answer = await record.hub.claimEffect(id, claim)
        clock.at[which] += 30_000
        return answer
      },
    }
    const outcome = await effectsOf({ clock }, calls).run(charge(), never)
    expect(outcome).toMatchObject({ kind: 'not_sent', errorCode: 'grant_too_old' })
    expect((await rowOf())['status']).toBe('free')
  })

  it('tells execute whether its grant is fresh', async () => {
    const clock = handClock()
    const outcome = await effectsOf({ clock }).run(charge({ timeLimitMs: 100 }), (effect) => {
      const before = effect.isFresh()
      clock.at.monotonic += 100
      return effect.isFresh() ? [before] : notSent('too late', { before })
    })
    expect(outcome).toMatchObject({ kind: 'not_sent', errorCode: 'too late', errorJson: '{"before":true}' })
  })

  it('aborts the signal when the grant reaches its limit, counted from before the claim', async () => {
    const clock = handClock()
    const calls: EffectCalls = {
      ...record.hub,
      claimEffect: async (id, claim) => {
        const answer = await record.hub.claimEffect(id, claim)
        clock.at.monotonic += 59_950
        return answer
      },
    }
    const error = await caught(() =>
      effectsOf({ clock }, calls).run(charge({ timeLimitMs: 60_000 }), async ({ signal }) => {
        await until(() => signal.aborted, { timeoutMs: 5000 })
        signal.throwIfAborted()
      }),
    )
    expect(error).toMatchObject({ name: 'TimeoutError' })
    expect(await rowOf()).toMatchObject({ status: 'executing', unknown_reason: 'execute_threw' })
  })

  it('takes a very long limit as one', async () => {
    const outcome = await effectsOf().run(charge({ timeLimitMs: 2 ** 40 }), async ({ signal }) => {
      await new Promise((resolve) => setTimeout(resolve, 20))
      return signal.aborted
    })
    expect(outcome).toMatchObject({ value: false })
  })
})

describe('several processes', () => {
  it('execute each of 30 ids once between them', async () => {
    const hub = await openHub({ redis: server.url, hub: record.name })
    const both = [effectsOf({ executor: 'one' }), effectsOf({ executor: 'two' }, hub)]
    const executed = new Map<string, number>()
    const ids = Array.from({ length: 30 }, (_, at) => `id ${at}`)
    const outcomes = await Promise.all(
      ids.flatMap((id) =>
        both.map((effects) =>
          effects.run(charge({ id }), () => {
            executed.set(id, (executed.get(id) ?? 0) + 1)
            return id
          }),
        ),
      ),
    )
    await hub.close()
    expect(executed).toEqual(new Map(ids.map((id) => [id, 1])))
    for (const { kind } of outcomes) expect(['result', 'outcome_unknown']).toContain(kind)
    for (const id of ids) expect(await effectsOf().run(charge({ id }), never)).toMatchObject({ value: id })
  })

  it.each(['hf_claim_effect', 'hf_settle_effect'])(
    'execute once when the reply of %s is lost',
    async (verb) => {
      const proxy = await startProxy(server.port)
      const hub = await openHub({ redis: proxy.url, hub: record.name })
      try {
        let executed = 0
        const cut = proxy.cutAfterReply(verb)
        const outcome = await effectsOf({}, hub).run(charge(), () => {
          executed += 1
          return executed
        })
        await cut
        expect(outcome).toEqual({ kind: 'result', value: 1, replayed: false })
        expect(await rowOf()).toMatchObject({ status: 'done', epoch: '1' })
      } finally {
        await hub.close()
        await proxy.close()
      }
    },
  )
})

/** Never called: the compiler checks it. */
function ambiguousReturns(): void {
  const effects = effectsOf()
  // @ts-expect-error an error is thrown, never returned
  void effects.run(charge(), () => new Error('cut'))
  // @ts-expect-error nor among other values
  void effects.run(charge(), async () => (Math.random() > 0.5 ? new TypeError('cut') : 'paid'))
  // @ts-expect-error an unknown outcome is thrown
  void effects.run(charge(), () => ({ kind: 'outcome_unknown' }) as const)
  // @ts-expect-error not_sent is made by notSent()
  void effects.run(charge(), () => ({ kind: 'not_sent', errorCode: 'x' }) as const)
  // @ts-expect-error terminal is made by terminal()
  void effects.run(charge(), async () => ({ kind: 'terminal', errorCode: 'x' }) as const)
  // @ts-expect-error a probe states one of four kinds
  void effects.run(charge({ probe: () => ({ kind: 'not_sent', errorCode: 'x' }) }), () => 1)
  const typed = effects.run(charge(), () => (Math.random() > 0.5 ? notSent('busy') : { paid: 5 }))
  void typed.then((outcome) => {
    if (outcome.kind === 'result') outcome.value.paid satisfies number
  })
}

it('what is ambiguous does not compile as a return value', () => {
  expect(ambiguousReturns).toBeTypeOf('function')
})

describe('what is no option', () => {
  it.each<[calls: unknown, options: unknown, says: string]>([
    [{}, undefined, 'options: is required; hub: must be a hub, or a client of one, not an object'],
    [undefined, {}, 'executor: is required; hub: is required'],
    [
      Promise.resolve(),
      { executor: 5, dedlineMs: 1, recoveryAgeMs: -1 },
      'executor: must be a string, not 5; recoveryAgeMs: must be a whole number from 0 to 9007199254740991, not -1; unknown member "dedlineMs" (known: executor, recoveryAgeMs, deadlineMs, clock); hub: must be a hub, or a client of one, not a promise',
    ],
  ])('createEffects refuses %#', (calls, options, says) => {
    expect(() => createEffects(calls as EffectCalls, options as EffectsOptions)).toThrow(
      `INVALID_ARGUMENT createEffects: ${says}`,
    )
  })

  it.each<[changes: object | undefined, execute: unknown, says: string]>([
    [undefined, never, 'options: is required'],
    [
      { prob: never },
      never,
      'unknown member "prob" (known: id, type, payload, leaveOut, probe, idempotent, timeLimitMs)',
    ],
    [
      { probe: 'true', idempotent: 'no', timeLimitMs: 0, leaveOut: '/at' },
      'charge',
      'leaveOut: must be a list, not a string; probe: must be a function, not a string; idempotent: must be true or false, not a string; timeLimitMs: must be a whole number from 1 to 9007199254740991, not 0; execute: must be a function, not a string',
    ],
    [
      { id: 'ä', payload: undefined },
      undefined,
      'id: must be 1 to 255 bytes of printable ASCII, not "ä"; payload: is required; execute: is required',
    ],
  ])('run refuses %#, and nothing is claimed', async (changes, execute, says) => {
    const request = changes === undefined ? undefined : { ...charge(), ...changes }
    const before = await record.dump()
    const error = await caught(() => effectsOf().run(request as EffectRequest, execute as () => number))
    expect(isHoldfastError(error, 'INVALID_ARGUMENT') && error.message).toBe(
      `INVALID_ARGUMENT effects.run: ${says}`,
    )
    expect(await record.dump()).toEqual(before)
  })

  it('a request is used as it is: its probe keeps its object', async () => {
    class Target {
      readonly #answer = { kind: 'result', value: 'asked' } as const
      readonly probe = () => this.#answer
    }
    await orphan()
    const effects = effectsOf({ recoveryAgeMs: 0 })
    expect(await effects.run(Object.assign(new Target(), charge()), never)).toMatchObject({ value: 'asked' })
  })
})
