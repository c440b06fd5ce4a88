import { type ChildProcess, spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest'
import type { Outcome } from '../../src/contract/outcomes.js'
import type { Attempt, ChildIdentity } from '../../src/node/executor.js'
import { type CommandExecutorOptions, commandExecutor } from '../../src/node/executors/command.js'
import { groupAlive, isAlive, treeAlive } from '../../src/node/process-identity.js'

const directory = mkdtempSync(join(tmpdir(), 'hf-command-'))
const children: ChildIdentity[] = []

afterEach(() => {
  for (const child of children.splice(0)) killGroup(child)
})

afterAll(() => rmSync(directory, { recursive: true }))

function killGroup(child: ChildIdentity): void {
  if (!treeAlive(child)) return
  try {
    process.kill(-child.group, 'SIGKILL')
  } catch {}
}

let files = 0

function freshPath(): string {
  files += 1
  return join(directory, `f${files}`)
}

interface Run {
  readonly payload?: Buffer
  readonly signal?: AbortSignal
  readonly options?: Partial<CommandExecutorOptions>
  childStarted?(child: ChildIdentity): Promise<void>
}

function attemptWith(payload: Buffer, signal = new AbortController().signal): Attempt {
  return {
    id: 'd1/2',
    deliveryId: 'd1',
    number: 2,
    replay: false,
    epoch: 3,
    hub: 'hf',
    host: 'h1',
    node: 'n1',
    target: { host: 'h1', session: 'agent-7' },
    message: { id: 'm1', conversation: 'c42', sender: 'billing', sha256: sha256(payload) },
    payload,
    signal,
  }
}

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}

function run(command: string, { payload = Buffer.alloc(0), signal, options, childStarted }: Run = {}) {
  const executor = commandExecutor({ command, ...options })
  return executor.run(attemptWith(payload, signal), {
    async childStarted(child) {
      children.push(child)
      await childStarted?.(child)
    },
  })
}

function resultOf(outcome: Outcome): Record<string, unknown> {
  if (outcome.kind !== 'result') throw new Error(`no result: ${JSON.stringify(outcome)}`)
  return JSON.parse(outcome.result)
}

function particularsOf(outcome: Outcome): Record<string, unknown> {
  if (outcome.kind === 'result') throw new Error('a result has no particulars')
  return JSON.parse(outcome.errorJson ?? 'null')
}

function lastChild(): ChildIdentity {
  const child = children.at(-1)
  if (child === undefined) throw new Error('no child was started')
  return child
}

describe('what the command is given', () => {
  it.each<[string, Buffer]>([
    ['nothing', Buffer.alloc(0)],
    ['every byte', Buffer.from(Array.from({ length: 256 }, (_, byte) => byte))],
    ['NUL and invalid UTF-8', Buffer.from([0, 0xff, 0xc3, 0x28, 0, 0xed, 0xa0, 0x80])],
    ['3 MiB', randomBytes(3 << 20)],
  ])('the payload byte for byte: %s', async (_, payload) => {
    expect(resultOf(await run('sha256sum', { payload })).stdout).toBe(`${sha256(payload)}  -\n`)
  })

  it.each(['{"id":130775545883395173,"a":[],"f":1.10,"n":null}', '😀\r\n'])(
    'text as it is: %s',
    async (text) => {
      expect(resultOf(await run('cat', { payload: Buffer.from(text) }))).toEqual({
        exitCode: 0,
        stdout: text,
      })
    },
  )

  it('the context, without names of an outer attempt', async () => {
    const env = { PATH: process.env['PATH'], HOLDFAST_PARENT: 'outer', OWN: 'kept' }
    const { stdout } = resultOf(
      await run('env | grep -E "^(HOLDFAST|OWN|holdfast)" | sort', { options: { env } }),
    )
    expect(String(stdout).trim().split('\n')).toEqual([
      'HOLDFAST_ATTEMPT=d1/2',
      'HOLDFAST_ATTEMPT_NUMBER=2',
      'HOLDFAST_CONVERSATION=c42',
      'HOLDFAST_DELIVERY=d1',
      'HOLDFAST_EPOCH=3',
      'HOLDFAST_HOST=h1',
      'HOLDFAST_HUB=hf',
      'HOLDFAST_MESSAGE=m1',
      'HOLDFAST_NODE=n1',
      'HOLDFAST_SENDER=billing',
      'HOLDFAST_SESSION=agent-7',
      `HOLDFAST_SHA256=${sha256(Buffer.alloc(0))}`,
      'OWN=kept',
    ])
  })

  it('the standard descriptors and no other', async () => {
    const { stdout } = resultOf(
      await run('for f in 3 4 5 6 7 8 9; do [ ! -e /proc/$$/fd/$f ] || echo $f; done'),
    )
    expect(stdout).toBe('')
  })

  it('its own shell and quotes', async () => {
    const outcome = await run(`x="a  b"; echo "$BASH_VERSION$x"'$y'`, { options: { shell: '/bin/bash' } })
    expect(resultOf(outcome).stdout).toMatch(/^\d.*a {2}b\$y\n$/)
  })
})

describe('how it ends', () => {
  it.each<[number, string]>([
    [1, 'outcome_unknown'],
    [65, 'terminal'],
    [75, 'not_sent'],
    [126, 'outcome_unknown'],
    [255, 'outcome_unknown'],
  ])('exit %i is %s', async (exitCode, kind) => {
    const outcome = await run(`echo out; echo why >&2; exit ${exitCode}`)
    expect(outcome).toMatchObject({ kind, errorCode: `exit_${exitCode}` })
    expect(particularsOf(outcome)).toEqual({ exitCode, stderr: 'why\n', stdout: 'out\n' })
  })

  it('a signal is an unknown outcome', async () => {
    const outcome = await run('kill -KILL $$')
    expect(outcome).toMatchObject({ kind: 'outcome_unknown', errorCode: 'signal_SIGKILL' })
    expect(particularsOf(outcome)).toMatchObject({ signal: 'SIGKILL' })
  })

  it('a command that is not found may have run in part', async () => {
    expect(await run('hf-no-such-program')).toMatchObject({ kind: 'outcome_unknown', errorCode: 'exit_127' })
  })

  it('a command that never reads 1 MiB has a result', async () => {
    expect(resultOf(await run('true', { payload: Buffer.alloc(1 << 20) }))).toEqual({
      exitCode: 0,
      stdout: '',
    })
  })

  it.each<[string, string, Partial<CommandExecutorOptions>]>([
    ['the shell is missing', 'true', { shell: '/nonexistent/sh' }],
    ['the command is too long for the system', `true ${'x'.repeat(1 << 20)}`, {}],
    ['the command cannot be passed', 'true \0', {}],
  ])('nothing ran when %s', async (_, command, options) => {
    const outcome = await run(command, { options })
    expect(outcome).toMatchObject({ kind: 'not_sent', errorCode: 'spawn_failed' })
    expect(particularsOf(outcome)).toHaveProperty('message')
    expect(children).toEqual([])
  })
})

describe('its output', () => {
  it('is base64 when it is not UTF-8', async () => {
    expect(resultOf(await run("printf '\\377\\000x'"))).toEqual({ exitCode: 0, stdoutBase64: '/wB4' })
  })

  it.each<[number, string]>([
    [8, '€€'],
    [9, '€€€'],
    [10, '€€€'],
    [2, ''],
  ])('is cut at %i bytes between characters', async (maxOutputBytes, stdout) => {
    expect(resultOf(await run('printf €€€€', { options: { maxOutputBytes } }))).toEqual({
      exitCode: 0,
      stdout,
      truncated: true,
      stdoutBytes: 12,
    })
  })

  it('is whole at the limit', async () => {
    const options = { maxOutputBytes: 12 }
    expect(resultOf(await run('printf €€€€', { options }))).toEqual({ exitCode: 0, stdout: '€€€€' })
  })

  it('never blocks the command, and fits a result whatever it holds', async () => {
    const command = 'head -c 20000000 /dev/zero; head -c 3000000 /dev/zero >&2'
    const outcome = await run(command)
    expect(resultOf(outcome)).toMatchObject({ exitCode: 0, truncated: true, stdoutBytes: 20_000_000 })
    const bytes = outcome.kind === 'result' ? Buffer.byteLength(outcome.result) : 0
    expect(bytes).toBeLessThanOrEqual(262_144)
    expect(bytes).toBeGreaterThan(200_000)
  })

  it('has its last part in the particulars, from a whole character on', async () => {
    const outcome = await run('for i in $(seq 3000); do printf € >&2; printf 😀; done; exit 1')
    expect(particularsOf(outcome)).toEqual({
      exitCode: 1,
      stderr: '€'.repeat(1365),
      stdout: '😀'.repeat(256),
    })
  })
})

describe('an abort', () => {
  /** Aborts once the command has said on its file that it is ready. */
  async function aborted(command: string, reason?: unknown, options?: Partial<CommandExecutorOptions>) {
    const [ready, controller] = [freshPath(), new AbortController()]
    const script = `ready() { echo ready > ${ready}; }; ${command}`
    const outcome = run(script, { signal: controller.signal, ...(options && { options }) })
    await vi.waitFor(() => expect(readFileSync(ready, 'utf8')).toBe('ready\n'), {
      timeout: 10_000,
      interval: 10,
    })
    controller.abort(reason)
    return outcome
  }

  const timeout = new DOMException('over', 'TimeoutError')

  it('ends the whole group', async () => {
    const outcome = await aborted('sleep 60 & ready; sleep 61', timeout)
    expect(outcome).toMatchObject({ kind: 'outcome_unknown', errorCode: 'timed_out' })
    expect(particularsOf(outcome)).toMatchObject({ signal: 'SIGTERM' })
    expect(treeAlive(lastChild())).toBe(false)
  })

  it('is named by its reason', async () => {
    expect(await aborted('ready; sleep 60')).toMatchObject({ kind: 'outcome_unknown', errorCode: 'aborted' })
  })

  it.each<[number, string, string]>([
    [0, 'result', ''],
    [65, 'terminal', 'exit_65'],
    [75, 'not_sent', 'exit_75'],
    [3, 'outcome_unknown', 'timed_out'],
  ])('answered with exit %i is %s', async (exitCode, kind, errorCode) => {
    // No long sleep: a shell loses a signal to a child that it has forked but that is no sleep yet.
    const command = `trap 'exit ${exitCode}' TERM; ready; while :; do sleep 0.1; done`
    const outcome = await aborted(command, timeout)
    expect(outcome).toMatchObject({ kind, ...(errorCode !== '' && { errorCode }) })
  })

  it('kills what does not heed it', async () => {
    const outcome = await aborted("trap '' TERM; ready; while :; do sleep 1; done", timeout, {
      killGraceMs: 200,
    })
    expect(outcome).toMatchObject({ kind: 'outcome_unknown', errorCode: 'timed_out' })
    expect(particularsOf(outcome)).toMatchObject({ signal: 'SIGKILL' })
    expect(treeAlive(lastChild())).toBe(false)
  })

  it('kills a grandchild that does not heed it after its parent did', async () => {
    const command = `trap 'exit 75' TERM; (trap '' TERM; ready; while :; do sleep 1; done) & wait`
    const outcome = await aborted(command, timeout, { killGraceMs: 200 })
    expect(outcome).toMatchObject({ kind: 'not_sent', errorCode: 'exit_75' })
    expect(treeAlive(lastChild())).toBe(false)
  })

  it('before the start runs nothing', async () => {
    const outcome = await run('true', { signal: AbortSignal.abort(timeout) })
    expect(outcome).toEqual({ kind: 'not_sent', errorCode: 'timed_out' })
    expect(children).toEqual([])
  })
})

describe('a grandchild that outlives the command', () => {
  it('holds the attempt up for a second at most, and is seen', async () => {
    const begun = performance.now()
    expect(resultOf(await run('echo done; sleep 60 &'))).toEqual({ exitCode: 0, stdout: 'done\n' })
    expect(performance.now() - begun).toBeLessThan(3000)
    const child = lastChild()
    expect([isAlive(child), groupAlive(child)]).toEqual([false, true])
    killGroup(child)
    await vi.waitFor(() => expect(treeAlive(child)).toBe(false))
  })
})

describe('the gate', () => {
  it('opens when the child is recorded', async () => {
    const marker = freshPath()
    let ranEarly = true
    const outcome = await run(`echo ran > ${marker}`, {
      async childStarted(child) {
        expect(child.group).toBe(child.pid)
        expect(isAlive(child)).toBe(true)
        await once(spawn('true'), 'exit') // some turns of the loop
        ranEarly = existsSync(marker)
      },
    })
    expect(outcome.kind).toBe('result')
    expect(ranEarly).toBe(false)
    expect(existsSync(marker)).toBe(true)
  })

  it('stays shut when the record fails', async () => {
    const marker = freshPath()
    const outcome = await run(`echo ran > ${marker}`, {
      childStarted: () => Promise.reject(new Error('disk full')),
    })
    expect(outcome).toEqual({
      kind: 'not_sent',
      errorCode: 'not_recorded',
      errorJson: '{"message":"disk full"}',
    })
    expect(treeAlive(lastChild())).toBe(false)
    expect(existsSync(marker)).toBe(false)
  })

  it('stays shut when the abort comes first, even with the record', async () => {
    for (const recorded of [Promise.resolve(), new Promise<void>(() => {})]) {
      const [marker, controller] = [freshPath(), new AbortController()]
      const outcome = await run(`echo ran > ${marker}`, {
        signal: controller.signal,
        childStarted() {
          controller.abort()
          return recorded
        },
      })
      expect(outcome).toEqual({ kind: 'not_sent', errorCode: 'aborted' })
      expect(treeAlive(lastChild())).toBe(false)
      expect(existsSync(marker)).toBe(false)
    }
  })

  it('does not wait for a child that was killed at it', async () => {
    const outcome = await run('true', {
      childStarted(child) {
        process.kill(child.pid, 'SIGKILL')
        return new Promise(() => {})
      },
    })
    expect(outcome).toMatchObject({ kind: 'not_sent', errorCode: 'spawn_failed' })
  })
})

describe('a node that is killed', () => {
  const nodes: ChildProcess[] = []

  afterEach(() => {
    for (const node of nodes.splice(0)) node.kill('SIGKILL')
  })

  /** A node process and the child it has started (test/support/command-node.mjs; needs a build). */
  async function nodeProcess(command: string, gate: 'open' | 'shut') {
    const script = new URL('../support/command-node.mjs', import.meta.url).pathname
    const node = spawn(process.execPath, [script, command, gate], { stdio: ['ignore', 'pipe', 'inherit'] })
    nodes.push(node)
    for await (const line of createInterface(node.stdout)) {
      const child: ChildIdentity = JSON.parse(line)
      children.push(child)
      return { node, child }
    }
    throw new Error('the node process started no child; was the project built?')
  }

  async function killNode(node: ChildProcess): Promise<void> {
    const gone = once(node, 'exit')
    node.kill('SIGKILL')
    await gone
  }

  it('before the record is durable leaves no run of the command', async () => {
    const marker = freshPath()
    const { node, child } = await nodeProcess(`echo ran > ${marker}`, 'shut')
    expect(isAlive(child)).toBe(true)
    await killNode(node)
    await vi.waitFor(() => expect(treeAlive(child)).toBe(false), { timeout: 10_000 })
    expect(existsSync(marker)).toBe(false)
  })

  it('while the command runs leaves a child that its successor sees', async () => {
    const marker = freshPath()
    const { node, child } = await nodeProcess(`echo ran > ${marker}; sleep 60`, 'open')
    await vi.waitFor(() => expect(existsSync(marker)).toBe(true), { timeout: 10_000 })
    await killNode(node)
    expect(treeAlive(child)).toBe(true)
    killGroup(child)
    await vi.waitFor(() => expect(treeAlive(child)).toBe(false))
  })
})
