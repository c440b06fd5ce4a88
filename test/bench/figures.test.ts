import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import {
  checkExactlyOnce,
  inFlight,
  paced,
  quantilesOf,
  spreadOf,
  topCommands,
} from '../../bench/figures.mjs'
import { functionTimes } from '../../bench/handoff/inspector.mjs'
import { placeTimes } from '../../bench/handoff/profile.mjs'
import { cpuUsOf } from '../../bench/program.mjs'

test('a spread has the median of its rounds, also of an even number', () => {
  expect(spreadOf([3, 1, 2])).toEqual({ median: 2, min: 1, max: 3, rounds: [3, 1, 2] })
  expect(spreadOf([4, 1, 2, 3], 1)).toEqual({ median: 2.5, min: 1, max: 4, rounds: [4, 1, 2, 3] })
  expect(spreadOf([1.26], 1)).toEqual({ median: 1.3, min: 1.3, max: 1.3, rounds: [1.3] })
})

test('quantiles are of the values, in whatever order they came', () => {
  const values = Array.from({ length: 100 }, (_, n) => 100 - n)
  expect(quantilesOf(values)).toEqual({ p50: 51, p90: 91, p99: 100, max: 100 })
})

test('jobs run at most so many at a time, each once', async () => {
  let [running, most] = [0, 0]
  const ran: number[] = []
  await inFlight(10, 3, async (n) => {
    running += 1
    most = Math.max(most, running)
    await sleep(1)
    running -= 1
    ran.push(n)
  })
  expect(most).toBe(3)
  expect(ran.sort((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
  await expect(inFlight(2, 2, () => Promise.reject(new Error('no')))).rejects.toThrow('no')
})

test('paced jobs begin at their rate, whether earlier ones have ended or not', async () => {
  const startedAt = performance.now()
  const begun: number[] = []
  await paced(20, 1000, async () => {
    begun.push(performance.now() - startedAt)
    await sleep(30)
  })
  expect(begun).toHaveLength(20)
  begun.forEach((at, n) => {
    expect(at).toBeGreaterThanOrEqual(n - 1)
  })
  expect(performance.now() - startedAt).toBeLessThan(20 * 30)
})

test('what was executed never, twice or unasked is found', () => {
  const once = new Map([
    ['m-1', 1],
    ['m-2', 1],
  ])
  expect(() => checkExactlyOnce(['m-1', 'm-2'], once)).not.toThrow()
  expect(() => checkExactlyOnce(['m-1', 'm-2', 'm-3'], once)).toThrow('1 never (m-3)')
  expect(() => checkExactlyOnce(['m-1'], new Map([['m-1', 2]]))).toThrow('1 twice (m-1)')
  expect(() => checkExactlyOnce(['m-1'], once)).toThrow('1 unasked (m-2)')
})

test('commands are in the order of the time they took', () => {
  const info = 'cmdstat_get:calls=2,usec=3,x=1\r\ncmdstat_fcall:calls=4,usec=10,x=1\r\n'
  expect(topCommands(info, 1)).toEqual([{ command: 'fcall', calls: 4, usec: 10, usecPerCall: 2.5 }])
})

test('noted calls are summed up by function', () => {
  const times = functionTimes(
    [
      [3, 0, 30, ['FCALL', 'hf_claim', '1']],
      [2, 0, 50, ['XADD', 'work']],
      [1, 0, 10, ['FCALL', 'hf_claim', '1']],
      [0, 0, 60, ['fcall_ro', 'hf_why', '1']],
    ],
    20,
  )
  expect(times).toEqual([
    { name: 'hf_why', calls: 1, usPerCall: 60, usPerMessage: 3 },
    { name: 'hf_claim', calls: 2, usPerCall: 20, usPerMessage: 2 },
  ])
})

test('a profile is summed up by where the code is from, without the time it waited', () => {
  const frames = [
    ['(root)', '', [2, 3, 4, 5, 8, 9]],
    ['(idle)', '', []],
    ['a', 'file:///x/node_modules/ioredis/built/a.js', []],
    ['b', 'file:///x/node_modules/@scope/name/node_modules/zod/b.js', []],
    ['c', 'file:///x/dist/node/loop.js', [6]],
    ['run', 'file:///x/node_modules/libsql/index.js', [7]],
    ['a native function', '', []],
    ['writev', '', []],
    ['dispatch', '', []],
  ] as const
  const nodes = frames.map(([functionName, url, children], at) => ({
    id: at + 1,
    callFrame: { functionName, url, scriptId: '0', lineNumber: 0, columnNumber: 0 },
    children: [...children],
  }))
  const samples = [2, 3, 4, 5, 7, 8, 5, 9]
  const profile = { nodes, samples, timeDeltas: [90, 20, 10, 30, 20, 10, 10, 5], startTime: 0, endTime: 195 }
  expect(
    placeTimes(profile, 10).map(({ place, share, usPerMessage }) => [place, share, usPerMessage]),
  ).toEqual([
    ['src/node', 0.4, 4],
    ['ioredis', 0.2, 2],
    ['libsql', 0.2, 2],
    ['zod', 0.1, 1],
    ['node', 0.1, 1],
  ])
})

test('processor time of a process is told where there is /proc, and only grows', () => {
  const before = cpuUsOf(process.pid)
  if (process.platform !== 'linux') return expect(before).toBeUndefined()
  for (const until = performance.now() + 20; performance.now() < until; );
  expect(cpuUsOf(process.pid)).toBeGreaterThan((before ?? 0) + 1000)
})
