import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { headerLines } from '../../scripts/protocol/headers.mjs'
import { errorCatalogue, isErrorCode } from '../../src/contract/errors.js'
import { prepareMessage } from '../../src/contract/message.js'
import type { HostSweep, HubSweep } from '../../src/record/sweep-functions.js'
import { type OpenRecord, openRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'

// The Lua library, its typed callers and the error catalogue say the same.

const root = fileURLToPath(new URL('../..', import.meta.url))
const read = (path: string) => readFileSync(join(root, path), 'utf8')

function sources(folder: string, ending: string): { path: string; text: string }[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith(ending))
    .sort()
    .map((name) => ({ path: `${folder}/${name}`, text: read(`${folder}/${name}`) }))
}

const lua = sources('lua', '.lua')
const verbs = lua.filter(({ path }) => path.startsWith('lua/functions/'))
const verbOf = (path: string) => path.replace(/^.*\/|\.lua$/g, '')

/** The parts of a header, each in one line. */
function headerOf(text: string): Map<string, string> {
  return new Map([...headerLines(text)].map(([name, lines]) => [name, lines.join(' ')]))
}

/** The codes, without remarks: `(…)`, and what follows a `;`. */
function errorsOf(text: string): string[] {
  const stated = headerOf(text).get('ERRORS') ?? ''
  return stated
    .replace(/;.*$/, '')
    .replaceAll(/\([^)]*\)/g, ' ')
    .trim()
    .split(/\s+/)
}

const codesIn = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map((found) => found[1] ?? '')

let server: TestServer
let record: OpenRecord

beforeAll(async () => {
  server = await startTestServer()
  record = await openRecord(server)
})
afterAll(async () => {
  await record?.close()
  await server?.stop()
})

describe.each(verbs)('$path', ({ path, text }) => {
  it('states keys, arguments, reply, errors and states changed', () => {
    const header = headerOf(text)
    expect(text).toMatch(new RegExp(`^-- hf_${verbOf(path)}: \\S`))
    for (const name of ['KEYS', 'ARGV', 'REPLY', 'ERRORS', 'STATES']) {
      expect(header.get(name) ?? '', name).not.toBe('')
    }
    expect(header.get('KEYS')).toBe('1 tag')
  })

  it('names errors of the catalogue only, and every one that it raises itself', () => {
    const errors = errorsOf(text)
    expect(errors.filter((code) => !isErrorCode(code))).toEqual([])
    expect(new Set(errors).size).toBe(errors.length)
    for (const code of codesIn(text, /hf\.refuse\(\s*'([A-Z_]+)'/g)) expect(errors).toContain(code)
  })

  it('registers one function of its name', () => {
    expect(codesIn(text, /hf\.register\(\s*'(\w+)'/g)).toEqual([`hf_${verbOf(path)}`])
  })
})

describe.each(verbs.filter(({ text }) => text.includes('hf.on_items(')))(
  'the items of $path',
  ({ path, text }) => {
    const stated = headerOf(text).get('ITEMS') ?? ''
    const codes = new Set(codesIn(stated, /\b([A-Z][A-Z_]{3,})\b/g))

    it('are refused with codes of the catalogue', () => {
      expect([...codes].filter((code) => !isErrorCode(code))).toEqual([])
    })

    it('are refused with the codes of their library part, and no other', () => {
      const parts = { take: ['take', 'begin'] }[verbOf(path)] ?? [verbOf(path)]
      const source = parts.map((part) => read(`lua/lib/${part}.lua`)).join('\n')
      const words = codesIn(source.replace(/hf\.resolve_attempt[\s\S]*/, ''), /'([A-Z][A-Z_]{3,})'/g)
      const raised = new Set<string>(words.filter((word) => isErrorCode(word)))
      if (source.includes('hf.check_owner('))
        for (const code of ['NOT_OWNER', 'STALE_EPOCH']) raised.add(code)
      // A take begins with what its handoff left, and replays nothing.
      if (verbOf(path) === 'take') raised.delete('TOO_MANY_CRASHES')
      expect([...codes].toSorted()).toEqual([...raised].toSorted())
    })
  },
)

it('accept, accept_batch, fan_out and take name the errors that their library part refuses with', () => {
  const ofVerb = (verb: string) => errorsOf(read(`lua/functions/${verb}.lua`))
  expect(ofVerb('accept')).toContain('MESSAGE_NOT_FOUND')
  expect(ofVerb('accept_batch')).toEqual(['STORE_UNKNOWN', 'INVALID_ARGUMENT', 'RECORD_DAMAGED'])
  expect(ofVerb('fan_out')).toContain('NO_ROUTE')
  expect(ofVerb('take')).toEqual([...ofVerb('mirror'), 'NOT_ATTESTED'])
  expect(ofVerb('take')).toEqual(ofVerb('begin'))
})

/** Methods that stand for several functions of one shape, told apart by their first argument: `sweep_<name>`. */
const shared: Readonly<Record<string, readonly string[]>> = {
  sweepHost: ['claims', 'nodes', 'parked', 'reports', 'stale'] satisfies HostSweep[],
  sweepHub: ['deadlines', 'effects', 'held', 'rehome'] satisfies HubSweep[],
}

it('the typed callers have a method for every function, and no other', () => {
  const called = Object.keys(record.functions).flatMap((name) => {
    const names = shared[name]
    if (names !== undefined) return names.map((each) => `sweep_${each}`)
    return [name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)]
  })
  expect(called.toSorted()).toEqual(verbs.map(({ path }) => verbOf(path)).toSorted())
})

it('a shared method calls the function that it is told', async () => {
  for (const name of shared['sweepHost'] ?? []) {
    const slice = await record.functions.sweepHost(name as HostSweep, 'nobody-there', '')
    expect(slice, name).toEqual({ found: 0, repaired: 0, left: 0, cursor: '', notes: [] })
  }
  for (const name of shared['sweepHub'] ?? []) {
    const slice = await record.functions.sweepHub(name as HubSweep, '')
    expect(slice, name).toEqual({ found: 0, repaired: 0, left: 0, cursor: '', notes: [] })
  }
})

it('every code raised in Lua is in the catalogue', () => {
  const raised = lua.flatMap(({ path, text }) =>
    codesIn(
      text,
      /(?:hf\.refuse\(|item_refused\([^)\n]*?|refused\([^)\n]*?|return )\s*'([A-Z][A-Z_]{3,})'/g,
    ).map((code) => `${code} in ${path}`),
  )
  expect(raised.length).toBeGreaterThan(30)
  expect(raised.filter((each) => !isErrorCode(each.split(' ')[0] ?? ''))).toEqual([])
})

it('every code of the catalogue is raised somewhere', () => {
  const inLua = lua.flatMap(({ text }) => codesIn(text, /'([A-Z][A-Z_]{3,})'/g))
  const inSource = sources('src', '.ts')
    .filter(({ path }) => path !== 'src/contract/errors.ts')
    .flatMap(({ text }) => [
      ...codesIn(text, /HoldfastError\(\s*'([A-Z_]+)'/g),
      ...codesIn(text, /\bproblem\(\s*'([A-Z_]+)'/g),
      ...codesIn(text, /\[\s*'([A-Z_]+)', '/g),
      ...codesIn(text, /\bfailure\(\s*'([A-Z_]+)'/g),
    ])
  const raised = new Set([...inLua, ...inSource])
  expect(Object.keys(errorCatalogue).filter((code) => !raised.has(code))).toEqual([])
})

describe('registration flags', () => {
  async function flags(): Promise<Record<string, string[]>> {
    const [library] = (await record.send('FUNCTION', 'LIST', 'LIBRARYNAME', 'holdfast')) as unknown[][]
    const functions = library?.[library.indexOf('functions') + 1] as [
      string,
      string,
      string,
      string,
      string,
      string[],
    ][]
    return Object.fromEntries(functions.map((each) => [each[1], each[5]]))
  }

  it('are chosen for every function', async () => {
    const found = await flags()
    for (const reader of ['hf_why', 'hf_version', 'hf_tally', 'hf_busy_hosts'])
      expect(found[reader], reader).toContain('no-writes')
    const makers = ['hf_init', 'hf_accept', 'hf_accept_batch', 'hf_fan_out']
    for (const maker of makers) expect(found[maker], maker).toEqual([])
    const steps = ['claim', 'mirror', 'ack', 'take', 'refuse', 'begin', 'report']
    const draining = ['join', 'heartbeat', 'leave', ...steps]
    const sweeping = Object.values(shared).flatMap((names) => names.map((name) => `sweep_${name}`))
    const mending = [
      'reconcile',
      'reconcile_lists',
      'reconcile_messages',
      'recount',
      'note_sweep',
      'note_lost',
    ]
    for (const verb of [...draining, ...sweeping, ...mending, 'pause', 'block', 'lift']) {
      expect(found[`hf_${verb}`], verb).toEqual(['allow-oom'])
    }
    expect(Object.keys(found).length).toBe(verbs.length + 1)
  })

  it('let a full store empty, and refuse what would fill it', async () => {
    await record.acceptMany(4)
    const used = /used_memory:(\d+)/.exec(String(await record.send('INFO', 'memory')))?.[1] ?? '0'
    await record.send('CONFIG', 'SET', 'maxmemory', Math.floor(Number(used) / 2))
    try {
      await record.refused('STORE_UNAVAILABLE', () => record.accept())
      const batch = ['k1', 'k2'].map((key) =>
        prepareMessage({ key, conversation: 'c', sender: 's', to: [{ host: 'a' }], payload: 'p' }),
      )
      await record.refused('STORE_UNAVAILABLE', () => record.functions.acceptBatch(batch))
      const node = await record.join('a', 'n1')
      const [first] = (await record.claim(node, 1)).deliveries
      if (first === undefined) throw new Error('nothing was handed out')
      const taken = await record.functions.take(node, [{ id: first.id, epoch: first.epoch, grant: 'g' }])
      expect(taken.begun).toMatchObject([{ ok: true, attempt: 1 }])
      const delivered = await record.deliverAll(node)
      expect(delivered).toHaveLength(3)
      for (const each of delivered) {
        const open = await record.begin(node, each)
        const outcome = { kind: 'result', result: '1' } as const
        const item = { id: open.attempt, grant: open.grant, key: open.attempt, outcome }
        expect(await record.functions.report(node, [item])).toMatchObject([{ ok: true }])
      }
      await record.functions.pause('hub', 'full', 'kim')
      await record.functions.lift('pause', 'hub', 'kim')
      await record.functions.leave(node)
    } finally {
      await record.send('CONFIG', 'SET', 'maxmemory', 0)
    }
    await record.checkInvariants()
  })

  it('let why run read-only', async () => {
    const [id = ''] = await record.acceptMany(1)
    expect(await record.send('FCALL_RO', 'hf_why', 1, record.keys.tag, id)).toContain('queued')
    await expect(record.send('FCALL_RO', 'hf_pause', 1, record.keys.tag, 'hub', 'r', 'a')).rejects.toThrow()
  })
})

describe('why', () => {
  it('refuses what is no id and what is not there', async () => {
    await record.refused('INVALID_ARGUMENT', () => record.functions.why('x'))
    await record.refused('DELIVERY_NOT_FOUND', () => record.functions.why('1764430000000-000000.1'))
  })

  it('says stranded, queued, executing and overdue', async () => {
    const why = async (id: string) => (await record.functions.why(id)).reason
    const { deliveries } = await record.accept({ to: [{ host: 'lonely' }] })
    const id = deliveries[0]?.id ?? ''
    expect(await why(id)).toBe('stranded')
    const node = await record.join('lonely', 'n1')
    expect(await why(id)).toBe('queued')
    const [delivered] = await record.deliverAll(node)
    expect(await why(id)).toBe('delivered')
    await record.begin(node, delivered ?? { id: '', epoch: 0 })
    expect(await why(id)).toBe('executing')
    await record.send('HSET', record.keys.delivery(id), 'attempt_1_begun_at', 1)
    expect(await why(id)).toBe('overdue')
    await record.functions.leave(node)
  })
})
