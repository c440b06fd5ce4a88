import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import Database from 'libsql'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Outcome } from '../../src/contract/outcomes.js'
import { type Copy, type Mirror, type MirrorOptions, openMirror } from '../../src/node/mirror.js'

const program = fileURLToPath(new URL('../support/mirror-process.mjs', import.meta.url))
const message = { id: 'm', conversation: 'c42', sender: 'billing', parent: 'p', sha256: 'abc' }
const done: Outcome = { kind: 'result', result: '{"a":1}' }

let folder: string
let file: string
let clock: number
const opened: Mirror[] = []
const children: ChildProcess[] = []

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-mirror-'))
  file = join(folder, 'deep', 'node.db')
  clock = 1_800_000_000_000
})

afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
  for (const mirror of opened.splice(0)) await mirror.close()
  rmSync(folder, { recursive: true, force: true })
})

function open(options: Partial<MirrorOptions> = {}): Mirror {
  const words = { hub: 'hub', host: 'host', node: 'node', lockWaitMs: 0, now: () => clock }
  const mirror = openMirror({ file, ...words, ...options })
  opened.push(mirror)
  return mirror
}

async function reopen(mirror: Mirror): Promise<Mirror> {
  await mirror.close()
  return open()
}

function copyOf(delivery: string, rest: Partial<Copy> = {}): Copy {
  return { delivery, epoch: 3, message, payload: Buffer.from('hello'), ...rest }
}

function report(key: string, grant: string, rest: { outcome?: Outcome; final?: boolean } = {}) {
  return { key, grant, delivery: `${grant}.1`, attempt: 1, outcome: done, final: true, ...rest }
}

function startProcess(mode: string, lockWaitMs = 0, limitKib = 0) {
  const command = `${limitKib === 0 ? '' : `ulimit -f ${limitKib};`} exec "$0" "$@"`
  const words = ['-c', command, process.execPath, program, mode, file, String(lockWaitMs)]
  const child = spawn('bash', words, { stdio: ['pipe', 'pipe', 'inherit'] })
  children.push(child)
  return { child, lines: createInterface({ input: child.stdout })[Symbol.asyncIterator]() }
}

async function firstLine(lines: AsyncIterator<string>): Promise<string> {
  const { done, value } = await lines.next()
  if (done) throw new Error('the process ended without a word: is dist/ built?')
  return value
}

async function restOf(lines: AsyncIterator<string>): Promise<string[]> {
  const all: string[] = []
  for (let next = await lines.next(); next.done !== true; next = await lines.next()) all.push(next.value)
  return all
}

describe('copies', () => {
  test('come back as they were stored, also from another open', async () => {
    const mirror = open()
    await mirror.storeCopies([copyOf('m.1', { session: 'agent-7' }), copyOf('m.2')])
    const first = {
      ...copyOf('m.1'),
      session: 'agent-7',
      incarnation: 1,
      tries: 0,
      notBeforeMs: 0,
      storedAtMs: clock,
    }
    expect(mirror.copy('m.1')).toEqual(first)
    const again = await reopen(mirror)
    expect(again.copy('m.1')).toEqual(first)
    expect(again.copy('m.2')).not.toHaveProperty('session')
    expect(again.copy('m.3')).toBeUndefined()
  })

  test.each([
    ['empty', Buffer.alloc(0)],
    ['of NULs', Buffer.from([0, 0, 255, 0, 1, 0])],
    ['no UTF-8', Buffer.from([0xc3, 0x28, 0xed, 0xa0, 0x80])],
    ['of 1 MiB', Buffer.from(Array.from({ length: 1024 * 1024 }, (_, n) => (n * 7) % 256))],
    ['a slice of a larger buffer', Buffer.from('0123456789').subarray(3, 6)],
  ])('keep a payload %s byte for byte', async (_, payload) => {
    const mirror = open()
    await mirror.storeCopies([copyOf('m.1', { payload })])
    const kept = (await reopen(mirror)).copy('m.1')?.payload
    expect(Buffer.isBuffer(kept)).toBe(true)
    expect(kept?.equals(payload)).toBe(true)
  })

  test('stored again take the new words and keep tries and the put-off', async () => {
    const mirror = open()
    await mirror.storeCopies([copyOf('m.1', { session: 'one' })])
    await mirror.putOff('m.1', 4, clock + 5000)
    await mirror.putOff('nobody', 1, 1)
    const again = await reopen(mirror)
    clock += 10
    await again.storeCopies([copyOf('m.1', { epoch: 5_000_000_001, payload: Buffer.from('new') })])
    expect(again.copy('m.1')).toEqual({
      ...copyOf('m.1', { epoch: 5_000_000_001, payload: Buffer.from('new') }),
      incarnation: 2,
      tries: 4,
      notBeforeMs: clock - 10 + 5000,
      storedAtMs: clock,
    })
  })

  test('are dropped by name', async () => {
    const mirror = open()
    await mirror.storeCopies([copyOf('m.1'), copyOf('m.2')])
    await mirror.dropCopies(['m.1', 'unknown'])
    expect([mirror.copy('m.1'), mirror.copy('m.2')?.delivery]).toEqual([undefined, 'm.2'])
  })

  test('of one epoch are dropped, never those that a later one has stored anew', async () => {
    const mirror = open()
    await mirror.storeCopies([copyOf('m.1', { epoch: 3 })])
    await mirror.dropCopy('m.1', 2)
    expect(mirror.copy('m.1')?.epoch).toBe(3)
    const stored = mirror.storeCopies([copyOf('m.1', { epoch: 4 })])
    const dropped = mirror.dropCopy('m.1', 3)
    await Promise.all([stored, dropped])
    expect(mirror.copy('m.1')?.epoch).toBe(4)
    await mirror.dropCopy('m.1', 4)
    expect(mirror.copy('m.1')).toBeUndefined()
  })

  test('of earlier incarnations are dropped unless a grant refers to them', async () => {
    const first = open()
    await first.storeCopies(['m.1', 'm.2', 'm.3'].map((delivery) => copyOf(delivery)))
    await first.mintGrant({ grant: 'g', delivery: 'm.2', epoch: 3 })
    const second = await reopen(first)
    await second.storeCopies([copyOf('m.3')])
    expect(await second.dropCopiesBefore(second.incarnation)).toBe(1)
    expect(['m.1', 'm.2', 'm.3'].map((id) => second.copy(id)?.incarnation)).toEqual([undefined, 1, 2])
  })
})

describe('grants', () => {
  const child = {
    pid: 4_194_300,
    group: 4_194_300,
    startTime: '9007199254740993',
    bootId: 'b-o-o-t',
    namespace: 'pid:[1]',
  }

  test('gather their start mark, children and end', async () => {
    const mirror = open()
    await mirror.mintGrant({ grant: 'g1', delivery: 'g1.1', epoch: 7 })
    await mirror.mintGrant({ grant: 'g2', delivery: 'g2.1', epoch: 8 })
    clock += 1
    await mirror.markStarted('g1', 2)
    await mirror.recordChild('g1', child)
    await mirror.recordChild('g1', { ...child, pid: 5 })
    clock += 1
    const unknown: Outcome = { kind: 'outcome_unknown', errorCode: 'slow' }
    await mirror.recordReport(report('r1', 'g1', { outcome: unknown }))
    const again = await reopen(mirror)
    expect(again.recovery()).toEqual({
      grants: [
        {
          ...{ grant: 'g1', delivery: 'g1.1', epoch: 7, incarnation: 1, attempt: 2 },
          ...{ mintedAtMs: clock - 2, startedAtMs: clock - 1, endedAtMs: clock, unknown },
          children: [child, { ...child, pid: 5 }],
        },
        { grant: 'g2', delivery: 'g2.1', epoch: 8, incarnation: 1, mintedAtMs: clock - 2, children: [] },
      ],
      reports: [{ ...report('r1', 'g1', { outcome: unknown }), createdAtMs: clock }],
    })
  })

  test('are one at a time per delivery until settled or dropped', async () => {
    const mirror = open()
    const first = { grant: 'g1', delivery: 'g1.1', epoch: 1 }
    await mirror.mintGrant(first)
    await mirror.mintGrant(first)
    const second = { grant: 'g2', delivery: 'g1.1', epoch: 2 }
    await expect(mirror.mintGrant(second)).rejects.toMatchObject({ code: 'GRANT_OPEN' })
    await expect(mirror.mintGrant({ ...first, delivery: 'x.1' })).rejects.toMatchObject({
      code: 'GRANT_OPEN',
    })
    await mirror.recordReport(report('r1', 'g1'))
    await expect(mirror.mintGrant(second)).rejects.toMatchObject({ code: 'GRANT_OPEN' })
    await mirror.reportAnswered('r1', { settled: true })
    await mirror.mintGrant(second)
    await mirror.recordChild('g2', child)
    await mirror.dropGrant('g2')
    await mirror.mintGrant({ grant: 'g3', delivery: 'g1.1', epoch: 2 })
    expect(mirror.recovery().grants.map((grant) => [grant.grant, grant.children])).toEqual([['g3', []]])
    expect(['g1', 'g2', 'g3'].map(mirror.holdsGrant)).toEqual([false, false, true])
  })

  test('are started anew by a later process, under the epoch that it was given', async () => {
    const mirror = open()
    await mirror.mintGrant({ grant: 'g1', delivery: 'g1.1', epoch: 7 })
    await mirror.markStarted('g1', 2)
    await mirror.recordReport(report('r1', 'g1'))
    const again = await reopen(mirror)
    clock += 5
    await again.markRestarted('g1', 2, 9)
    expect(again.recovery().grants).toEqual([
      {
        ...{ grant: 'g1', delivery: 'g1.1', epoch: 9, incarnation: 2, attempt: 2 },
        ...{ mintedAtMs: clock - 5, startedAtMs: clock, children: [] },
      },
    ])
  })

  test('keep the last word of an outcome that nobody knows, until they are started anew', async () => {
    const mirror = open()
    await mirror.mintGrant({ grant: 'g1', delivery: 'g1.1', epoch: 1 })
    const outcome = { kind: 'outcome_unknown', errorCode: 'TypeError', errorJson: '{"n":1.10}' } as const
    for (const errorCode of ['timed_out', outcome.errorCode]) {
      const unknown = { ...report(errorCode, 'g1'), outcome: { ...outcome, errorCode } }
      await mirror.recordReport(unknown)
      await mirror.reportAnswered(errorCode, { settled: false })
    }
    const again = await reopen(mirror)
    expect(again.recovery()).toMatchObject({ reports: [], grants: [{ grant: 'g1', unknown: outcome }] })
    await again.markRestarted('g1', 1, 2)
    expect(again.recovery().grants[0]).not.toHaveProperty('unknown')
  })

  test('refuse a start mark and a child when they are not there', async () => {
    const mirror = open()
    await expect(mirror.markStarted('nobody', 1)).rejects.toMatchObject({ code: 'WRONG_STATE' })
    await expect(mirror.markRestarted('nobody', 1, 1)).rejects.toMatchObject({ code: 'WRONG_STATE' })
    await expect(mirror.recordChild('nobody', child)).rejects.toMatchObject({ code: 'WRONG_STATE' })
    expect(mirror.recovery().grants).toEqual([])
  })
})

describe('reports', () => {
  test.each<Outcome>([
    { kind: 'result', result: '"\\u0000 \u2028 \ud83d\ude00 \ud800 1e999 130775545883395173 "' },
    { kind: 'result', result: '{"b":1,  "a":[]}' },
    { kind: 'terminal', errorCode: 'target_session_missing' },
    { kind: 'not_sent', errorCode: 'prompt contention', errorJson: '{"x":null}' },
    { kind: 'outcome_unknown', errorCode: 'timeout', errorJson: '[]' },
  ])('keep the outcome %j', async (outcome) => {
    const mirror = open()
    await mirror.recordReport({ key: 'r', grant: 'g', delivery: 'd.1', outcome, final: false })
    const kept = (await reopen(mirror)).recovery().reports
    expect(kept).toEqual([
      { key: 'r', grant: 'g', delivery: 'd.1', outcome, final: false, createdAtMs: clock },
    ])
  })

  test('are in the order they were made, whatever the clock does', async () => {
    const mirror = open()
    for (const key of ['z', 'a', 'm']) {
      await mirror.recordReport(report(key, `g-${key}`))
      clock -= 1000
    }
    await mirror.reportAnswered('m', { settled: true })
    await mirror.recordReport(report('b', 'g-b'))
    expect(mirror.recovery().reports.map(({ key }) => key)).toEqual(['z', 'a', 'b'])
  })

  test('repeat as no-ops; other content under the key is refused', async () => {
    const mirror = open()
    await mirror.recordReport(report('r', 'g'))
    clock += 1
    await mirror.recordReport(report('r', 'g'))
    const other = report('r', 'g', { outcome: { kind: 'result', result: '2' } })
    await expect(mirror.recordReport(other)).rejects.toMatchObject({ code: 'IDEMPOTENCY_MISMATCH' })
    const unended = report('r', 'g', { final: false })
    await expect(mirror.recordReport(unended)).rejects.toMatchObject({ code: 'IDEMPOTENCY_MISMATCH' })
    expect(mirror.recovery().reports).toEqual([{ ...report('r', 'g'), createdAtMs: clock - 1 }])
  })

  test('end their grant only when final, and take it with them only when settled', async () => {
    const mirror = open()
    await mirror.storeCopies([copyOf('g.1')])
    await mirror.mintGrant({ grant: 'g', delivery: 'g.1', epoch: 1 })
    const unknown: Outcome = { kind: 'outcome_unknown', errorCode: 'slow' }
    await mirror.recordReport(report('r1', 'g', { outcome: unknown, final: false }))
    expect(mirror.recovery().grants[0]).not.toHaveProperty('endedAtMs')
    await mirror.reportAnswered('r1', { settled: false })
    await mirror.recordReport(report('r2', 'g', { outcome: unknown }))
    expect(mirror.recovery().grants[0]?.endedAtMs).toBe(clock)
    await mirror.reportAnswered('r2', { settled: true })
    await mirror.reportAnswered('r2', { settled: true })
    expect(mirror.recovery()).toEqual({ reports: [], grants: [] })
    expect(mirror.copy('g.1')?.delivery).toBe('g.1')
  })
})

describe('commits', () => {
  test('are shared by what is asked for together, and happen in order', async () => {
    const mirror = open()
    const answered: number[] = []
    const writes = Array.from({ length: 250 }, (_, n) =>
      mirror.putOff('m.1', n, 0).then(() => answered.push(n)),
    )
    await Promise.all(writes)
    expect(mirror.stats()).toMatchObject({ commits: 1, operations: 250 })
    expect(answered).toEqual([...answered].sort((a, b) => a - b))
    const { longestMs, totalMs } = mirror.stats()
    expect(longestMs).toBeGreaterThan(0)
    expect(totalMs).toBeGreaterThanOrEqual(longestMs)
  })

  test('carry the last log entry that was seen, from the next one on; so does close', async () => {
    const mirror = open()
    for (const id of ['1-0', '2-0']) mirror.noteLogId(id)
    expect([mirror.lastLogId(), mirror.stats().commits]).toEqual(['0-0', 0])
    await mirror.markStarted('none', 1).catch(() => undefined)
    expect([mirror.lastLogId(), mirror.stats().commits]).toEqual(['2-0', 1])
    expect(() => mirror.noteLogId('bad\0id')).toThrow(/^INVALID_ARGUMENT/)
    mirror.noteLogId('3-0')
    expect((await reopen(mirror)).lastLogId()).toBe('3-0')
  })

  test('are bounded in operations and in bytes', async () => {
    const mirror = open()
    await Promise.all(Array.from({ length: 2500 }, (_, n) => mirror.putOff('m.1', n, 0)))
    expect(mirror.stats()).toMatchObject({ commits: 3, operations: 2500 })
    const payload = Buffer.alloc(3 * 1024 * 1024)
    await Promise.all([1, 2, 3, 4].map((n) => mirror.storeCopies([copyOf(`m.${n}`, { payload })])))
    expect(mirror.stats().commits).toBe(5)
  })

  test('pass over an operation that refuses itself', async () => {
    const mirror = open()
    const answers = await Promise.allSettled([
      mirror.mintGrant({ grant: 'g1', delivery: 'd.1', epoch: 1 }),
      mirror.mintGrant({ grant: 'g2', delivery: 'd.1', epoch: 1 }),
      mirror.storeCopies([copyOf('d.1')]),
      mirror.recordReport(report('r', 'g1')),
      mirror.recordReport(report('r', 'g2')),
      mirror.storeCopies([copyOf('bad\0name')]),
      mirror.markStarted('g1', Number.NaN),
      mirror.putOff('d.1', 1, 0),
    ])
    const codes = answers.map((answer) => (answer.status === 'fulfilled' ? 'ok' : answer.reason.code))
    const refused = ['IDEMPOTENCY_MISMATCH', 'INVALID_ARGUMENT', 'INVALID_ARGUMENT']
    expect(codes).toEqual(['ok', 'GRANT_OPEN', 'ok', 'ok', ...refused, 'ok'])
    expect(mirror.stats()).toMatchObject({ commits: 1, operations: 6 })
    expect(mirror.recovery().grants.map(({ grant }) => grant)).toEqual(['g1'])
  })

  test('that fail reject every one of theirs, and nothing of them is there', async () => {
    const { lines } = startProcess('fill', 0, 1500)
    const said = await restOf(lines)
    const kept = said.filter((line) => line === 'kept kept').length
    expect(said[0]).toBe('open 1')
    expect(kept).toBeGreaterThan(2)
    expect(said.slice(kept + 1)).toEqual(Array(2).fill('MIRROR_UNUSABLE MIRROR_UNUSABLE'))
    const mirror = open()
    const present = (n: number) => [`a${n}`, `b${n}`].map((id) => mirror.copy(id)?.payload.length)
    for (let n = 0; n < kept; n += 1) expect(present(n)).toEqual([100_000, 100_000])
    expect([present(kept), present(kept + 1)]).toEqual(Array(2).fill([undefined, undefined]))
  })

  test('are finished by close, which refuses what comes after', async () => {
    const mirror = open()
    const write = mirror.storeCopies([copyOf('m.1')])
    await Promise.all([mirror.close(), mirror.close(), write])
    await expect(mirror.dropCopies(['m.1'])).rejects.toMatchObject({ code: 'MIRROR_UNUSABLE' })
    expect(() => mirror.copy('m.1')).toThrow('MIRROR_UNUSABLE')
    expect(existsSync(`${file}-wal`)).toBe(false)
    expect(open().copy('m.1')?.delivery).toBe('m.1')
  })
})

describe('the lock', () => {
  test('refuses a second opener in this process and in another, by the file name', async () => {
    const mirror = open()
    await mirror.storeCopies([copyOf('m.1')])
    expect(() => open()).toThrow(new RegExp(`^MIRROR_LOCKED .*${file}`))
    expect(await firstLine(startProcess('hold', 50).lines)).toMatch(/^refused MIRROR_LOCKED /)
    expect(() => open({ node: 'other' })).toThrow('MIRROR_LOCKED')
    await mirror.storeCopies([copyOf('m.2')])
    expect((await reopen(mirror)).copy('m.2')?.delivery).toBe('m.2')
  })

  test('is got by exactly one of several that open a new file at once', async () => {
    const starters = [1, 2, 3].map(() => startProcess('hold', 200))
    const said = await Promise.all(starters.map(({ lines }) => firstLine(lines)))
    expect(said.filter((line) => line === 'open 1')).toHaveLength(1)
    expect(said.filter((line) => line.startsWith('refused MIRROR_LOCKED'))).toHaveLength(2)
  })

  test('is waited for while its holder dies', async () => {
    const { child, lines } = startProcess('hold')
    expect(await firstLine(lines)).toBe('open 1')
    child.kill('SIGTERM')
    expect(open({ lockWaitMs: 30_000 }).incarnation).toBe(2)
  })

  test('is free at once after SIGKILL, and everything acknowledged is there', async () => {
    const { child, lines } = startProcess('write')
    const said = [await firstLine(lines)]
    while (said.length < 400) said.push(await firstLine(lines))
    child.kill('SIGKILL')
    const [rest] = await Promise.all([restOf(lines), once(child, 'exit')])
    const mirror = open({ lockWaitMs: 0 })
    const grants = new Set(mirror.recovery().grants.map(({ grant }) => grant))
    for (const line of [...said, ...rest].slice(1)) {
      const [what, number] = line.split(' ')
      const n = Number(number)
      if (what === 'grant') expect(grants).toContain(`g${n}`)
      else expect(mirror.copy(`m${n}.1`)?.payload).toEqual(Buffer.alloc(n % 5000, n % 256))
    }
    expect(mirror.incarnation).toBe(2)
  })
})

describe('opening', () => {
  test('raises the incarnation every time and mints another instance', async () => {
    const instances = new Set<string>()
    for (let n = 1; n <= 5; n += 1) {
      const mirror = open()
      expect([mirror.incarnation, mirror.file]).toEqual([n, file])
      instances.add(mirror.instance)
      await mirror.close()
    }
    expect(instances.size).toBe(5)
  })

  test.each([{ hub: 'h2' }, { host: 'h2' }, { node: 'n2' }])(
    'as %j is refused, naming both',
    async (other) => {
      await open().close()
      expect(() => open(other)).toThrow(
        /^MIRROR_UNUSABLE .*node node on host host of hub hub, not to .*[hn]2/,
      )
      expect(open().incarnation).toBe(2)
    },
  )

  test('brings the layout of an earlier release up to date', async () => {
    const mirror = open()
    await mirror.mintGrant({ grant: 'g1', delivery: 'g1.1', epoch: 1 })
    await mirror.markStarted('g1', 1)
    await mirror.close()
    const database = new Database(file)
    database.exec("update meta set value = '1' where key = 'schema_version'")
    database.exec('alter table children drop column namespace')
    database.exec('alter table grants drop column unknown')
    database.exec("insert into children values ('g1', 7, 7, '3', 'b-o-o-t')")
    database.close()
    const again = open()
    expect(again.recovery().grants[0]?.children).toEqual([
      { pid: 7, group: 7, startTime: '3', bootId: 'b-o-o-t', namespace: '' },
    ])
  })

  test('refuses another layout', async () => {
    await open().close()
    const database = new Database(file)
    database.exec("update meta set value = '99' where key = 'schema_version'")
    database.close()
    expect(() => open()).toThrow(/^MIRROR_UNUSABLE .*99/)
  })

  test('refuses a file that is no database, and a database that is no mirror', async () => {
    await open().close()
    writeFileSync(file, 'this is no database '.repeat(500))
    expect(() => open()).toThrow(/^MIRROR_UNUSABLE .*not a database/)
    rmSync(file)
    const foreign = new Database(file)
    foreign.exec('create table notes (note text)')
    foreign.close()
    expect(() => open()).toThrow(/^MIRROR_UNUSABLE .*not a Holdfast mirror/)
  })

  test('refuses where it cannot write', () => {
    writeFileSync(join(folder, 'plain'), '')
    for (const place of ['/proc/holdfast/node.db', join(folder, 'plain', 'node.db'), folder]) {
      expect(() => open({ file: place })).toThrow(/^MIRROR_UNUSABLE /)
    }
  })

  test('follows a link, and syncs the log beside the database that it leads to', async () => {
    await open().close()
    const [link, linkedFolder] = [join(folder, 'link.db'), join(folder, 'linked')]
    symlinkSync(file, link)
    symlinkSync(join(folder, 'deep'), linkedFolder)
    // A log of the same name beside the link is not the one to sync: it may not even be a file.
    mkdirSync(`${link}-wal`)
    for (const place of [link, join(linkedFolder, 'node.db')]) {
      const mirror = open({ file: place })
      await mirror.storeCopies([copyOf('m.1')])
      await mirror.close()
    }
    expect(open().copy('m.1')).toMatchObject({ delivery: 'm.1' })
  })

  test('refuses a damaged file', async () => {
    const mirror = open()
    await mirror.storeCopies([copyOf('m.1', { payload: Buffer.alloc(50_000) })])
    await mirror.close()
    writeFileSync(file, Buffer.alloc(3000, 0x5a), { flag: 'r+' })
    expect(() => open()).toThrow(/^MIRROR_UNUSABLE /)
  })
})
