import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { MessageView } from '../../src/contract/delivery-views.js'
import type { Accepted } from '../../src/contract/hub.js'
import { isAlive, serverState } from '../../src/record/server-process.js'
import { until } from '../support/until.js'
import { answerOf, errorOf, makeFolder, type Running, runCli, startCli } from './run-cli.js'

let folder: ReturnType<typeof makeFolder>
let cwd: string
let running: Running | undefined
beforeEach(() => {
  folder = makeFolder()
  cwd = folder.path
})
afterEach(async () => {
  if (running?.child.exitCode === null) running.child.kill('SIGTERM')
  await running?.ended
  running = undefined
  folder.remove()
})

function portOf(said: string): number {
  return Number(/redis-cli -p (\d+)/.exec(said)?.[1])
}

test('before init a data folder is neither found nor made', async () => {
  const ended = await runCli(['delivery', 'ls', '--json'], { cwd })
  expect(ended.code).toBe(1)
  expect(errorOf(ended)).toMatchObject({ code: 'STORE_UNKNOWN' })
  expect(errorOf(ended).next).toContain('holdfast init')
  expect(existsSync(join(cwd, '.holdfast'))).toBe(false)
})

test('commands start the embedded server, stop it, and find the record again', async () => {
  await answerOf(['init', '--data', 'elsewhere'], { cwd })
  const env = { HOLDFAST_DATA: 'elsewhere' }
  const sent = await answerOf<Accepted>(['send', '--conversation', 'c', '--to', 'host:h', 'x'], { cwd, env })
  expect(existsSync(join(cwd, 'elsewhere', 'server.json'))).toBe(false)
  const message = await answerOf<MessageView>(['message', 'show', sent.id], { cwd, env })
  expect(message.deliveries).toHaveLength(1)
  expect(existsSync(join(cwd, '.holdfast'))).toBe(false)
})

test('dev: one command from nothing to a delivery that ran; others attach; a signal ends all of it', async () => {
  running = startCli(['dev', '--host', 'h', '--exec', 'cat'], { cwd })
  const said = await running.said('holdfast send --conversation demo --to host:h')
  const port = portOf(said)
  expect(said).toContain(`redis://127.0.0.1:${port}`)
  expect((await serverState(port)).kind).toBe('ready')

  const sent = await answerOf<Accepted>(['send', '--conversation', 'demo', '--to', 'host:h', 'hello'], {
    cwd,
  })
  const message = await until(async () => {
    const view = await answerOf<MessageView>(['message', 'show', sent.id], { cwd })
    return view.settledAt === undefined ? undefined : view
  })
  const [attempt] = message.deliveries[0]?.attempts ?? []
  expect(attempt).toMatchObject({ status: 'done', outcome: 'result' })
  expect(JSON.parse(attempt?.result ?? '')).toEqual({ exitCode: 0, stdout: 'hello' })
  expect((await serverState(port)).kind).toBe('ready')

  running.child.kill('SIGINT')
  expect(await running.ended).toMatchObject({ code: 0, signal: null, stdout: '' })
  expect((await serverState(port)).kind).toBe('silent')
})

test('dev without a node says where things are, with --json too', async () => {
  running = startCli(['dev', '--json', '--hub', 'h2'], { cwd })
  const said = await running.said('"ready"')
  const line = said.split('\n').find((each) => each.includes('"ready"')) ?? ''
  expect(JSON.parse(line)).toMatchObject({
    hub: 'h2',
    made: true,
    redis: expect.stringContaining('redis://'),
  })
  expect(line).toContain("holdfast send --hub h2 --conversation demo --to host:my-host 'hello'")
  running.child.kill('SIGTERM')
  expect(await running.ended).toMatchObject({ code: 0 })
})

test('an interrupted command takes the server it started with it', async () => {
  await answerOf(['init'], { cwd })
  const note = join(cwd, '.holdfast', 'server.json')
  const notedPid = () => {
    if (!existsSync(note)) return undefined
    return (JSON.parse(readFileSync(note, 'utf8')) as { pid: number }).pid || undefined
  }
  // A command that was over before this process came to look is started again.
  const command = await until(
    async () => {
      const started = startCli(['delivery', 'ls'], { cwd })
      running = started
      let over = false
      void started.ended.then(() => {
        over = true
      })
      const pid = await until(() => notedPid() ?? (over ? 'over' : undefined), { everyMs: 1 })
      return pid === 'over' ? undefined : { ...started, pid }
    },
    { timeoutMs: 30_000 },
  )
  const { pid } = command
  // Frozen, so that the command cannot come to its end before the signal.
  process.kill(pid, 'SIGSTOP')
  command.child.kill('SIGTERM')
  process.kill(pid, 'SIGCONT')
  expect(await command.ended).toMatchObject({ code: null, signal: 'SIGTERM' })
  expect(isAlive(pid)).toBe(false)
  expect(existsSync(note)).toBe(false)
})
