import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { answerLines } from '../../src/cli/completion-answer.js'
import { makeProgram } from '../../src/cli/program.js'
import { type OpenRecord, openRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { startTerminal } from '../support/terminal.js'
import { makeFolder, type Running, runCli, servedUrl, startCli } from './run-cli.js'

// What a shell is told when Tab is pressed: by the protocol that the shells of tab speak, and in a real bash.

const mainFile = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
const folder = makeFolder()
const { path: cwd } = folder
let server: TestServer
let record: OpenRecord
let serving: Running | undefined
let url: string
let heldId: string
let queuedId: string

beforeAll(async () => {
  server = await startTestServer()
  record = await openRecord(server, { name: 'hf' })
  const accepted = await record.accept({ to: [{ host: 'build-1' }], conversation: 'c42' })
  queuedId = accepted.deliveries[0]?.id ?? ''
  const other = await record.accept({ to: [{ host: 'build-2' }], conversation: '$(touch ran)' })
  heldId = other.deliveries[0]?.id ?? ''
  await record.functions.holdDelivery(heldId, 'kim', 'by hand')
  await record.functions.pause('host:build-1', 'drain', 'kim')
  await record.functions.hold('conversation:c42', 'asked', 'kim')
  for (const session of ['agent-7', '`touch<ran`']) {
    await record.functions.openSession(session, { host: 'build-1', scope: '/srv' }, 'kim')
  }
  serving = startCli(['serve', '--redis', server.url, '--listen', '127.0.0.1:0'], { cwd })
  url = await servedUrl(serving)
})
afterAll(async () => {
  serving?.child.kill('SIGTERM')
  await serving?.ended
  await record?.close()
  await server?.stop()
  folder.remove()
})

/** What is offered where the last word is, and the number that says what the shell does beside it. */
async function offered(...words: string[]): Promise<{ values: string[]; directive: number; text: string }> {
  const lines = await answerLines(await makeProgram(), words)
  const text = lines.join('\n')
  const directive = Number(lines.pop()?.slice(1))
  return { values: lines.map((line) => line.split('\t')[0] ?? ''), directive, text }
}

const values = async (...words: string[]) => (await offered(...words)).values

describe('what is the same everywhere', () => {
  test('verbs and nouns, with what they mean', async () => {
    expect(await values('del')).toEqual(['delivery'])
    expect(await values('--hub', 'hf', 'fence', '')).toEqual(
      expect.arrayContaining(['ls', 'pause', 'hold', 'block', 'lift']),
    )
    expect((await offered('host', 'd')).text).toMatch(/^drain\tpause a host/)
    expect(await values('completion', '')).toEqual(['bash', 'zsh', 'fish', 'powershell'])
    expect(await values('')).not.toContain('complete')
  })

  test('flags of the verb and those that are common, not twice', async () => {
    const flags = await values('delivery', 'ls', '--limit', '5', '--')
    expect(flags).toEqual(expect.arrayContaining(['--host', '--state', '--redis', '--url', '--json']))
    expect(flags).not.toContain('--limit')
    expect(await values('send', '--to', 'host:h', '--t')).toContain('--to')
    expect(await values('sweep', 'ls', '')).toContain('--json')
  })

  test('values that the command line knows, also behind =', async () => {
    expect(await values('delivery', 'ls', '--state', 'h')).toEqual(['held'])
    expect(await values('delivery', 'ls', '--state=h')).toEqual(['held'])
    expect(await values('--redis=redis://127.0.0.1:1', 'session', 'close', 's', '--reason', 're')).toEqual([
      'removed',
      'reload',
      'restart',
    ])
    expect(await values('sweep', 'run', 'a')).toEqual(['all', 'audit'])
    expect(await values('attempt', 'resolve', 'x', '--as', '')).toEqual(['result', 'terminal', 'not_sent'])
    expect(await values('delivery', 'resolve', 'x', '--as', '')).toEqual(['queued', 'failed'])
  })

  test('files and folders are the business of the shell', async () => {
    expect(await offered('send', '--payload', '')).toMatchObject({ values: [], directive: 0 })
    expect(await offered('session', 'open', 's', '--scope', '')).toMatchObject({ values: [], directive: 16 })
    expect(await offered('host', 'drain', 'zz')).toMatchObject({ values: [], directive: 4 })
  })
})

describe.each(['on the record', 'through a hub'] as const)('names %s', (way) => {
  const at = () => (way === 'on the record' ? ['--redis', server.url] : ['--url', url])
  const names = (...words: string[]) => values(...at(), ...words)

  test('hosts, sessions, recipients and scopes', async () => {
    expect(await names('host', 'drain', '')).toEqual(['build-1', 'build-2'])
    expect(await names('delivery', 'ls', '--host', 'build-2')).toEqual(['build-2'])
    expect(await names('session', 'show', '')).toEqual(['agent-7'])
    expect(await names('send', '--to', 'session:')).toEqual(['session:agent-7'])
    expect(await names('fence', 'pause', '')).toEqual([
      'hub',
      'host:build-1',
      'host:build-2',
      'session:agent-7',
      'conversation:c42',
    ])
  })

  test('fences that stand, by their kind', async () => {
    expect(await names('fence', 'lift', '')).toEqual(['hold', 'pause'])
    expect(await names('fence', 'lift', 'pause', '')).toEqual(['host:build-1'])
    expect(await names('fence', 'lift', 'hold', 'conv')).toEqual(['conversation:c42'])
  })

  test('deliveries: held ones where a hold is decided, else all that live', async () => {
    expect(await names('delivery', 'release', '')).toEqual([heldId])
    expect((await names('delivery', 'why', '')).sort()).toEqual([queuedId, heldId].sort())
    expect(await names('message', 'show', queuedId.slice(0, -2))).toContain(queuedId.split('.')[0])
  })

  test('settings with their values, and hubs', async () => {
    expect(await names('config', 'set', 'max_takeo')).toEqual(['max_takeovers'])
    expect(await names('config', 'set', 'max_takeovers', '')).toEqual(['5'])
    expect(await names('tail', '--verb', 'hold')).toEqual(['hold', 'hold_delivery'])
    if (way === 'on the record') expect(await names('delivery', 'ls', '--hub', '')).toEqual(['hf'])
  })
})

describe('a hub that does not answer', () => {
  test('nothing is offered, nothing is said, and no one waits long', async () => {
    expect(await values('--redis', 'redis://127.0.0.1:1', 'host', 'drain', '')).toEqual([])
    expect(await values('--url', 'http://127.0.0.1:1', 'host', 'drain', '')).toEqual([])
    expect(await values('--url', 'no url', 'host', 'drain', '')).toEqual([])
    server.freeze()
    const before = performance.now()
    const words = ['complete', '--', '--redis', server.url, 'host', 'drain', '']
    const found = await runCli(words, { cwd }).finally(() => server.thaw())
    expect(found).toMatchObject({ code: 0, stdout: ':4\n', stderr: '' })
    expect(performance.now() - before).toBeLessThan(9000) // a second, and the start of the process
  })

  test('an embedded server is asked where one runs, and not started where none does', async () => {
    const own = makeFolder()
    const ask = async () =>
      (await runCli(['complete', '--', 'host', 'drain', ''], { cwd: own.path })).stdout.split('\n')
    expect(await ask()).toEqual([':4', ''])
    expect(existsSync(join(own.path, '.holdfast'))).toBe(false)
    expect((await runCli(['init'], { cwd: own.path })).code).toBe(0)
    expect(await ask()).toEqual([':4', ''])
    expect(existsSync(join(own.path, '.holdfast', 'server.json'))).toBe(false)
    const dev = startCli(['dev', '--host', 'here', '--exec', 'true'], { cwd: own.path })
    try {
      await dev.said('holdfast send --conversation demo')
      expect(await ask()).toEqual(['here\t', ':4', ''])
    } finally {
      dev.child.kill('SIGTERM')
      await dev.ended
      own.remove()
    }
  })
})

test('the scripts of the other shells ask in the same words', async () => {
  const scriptOf = (shell: string) => runCli(['completion', shell], { cwd })
  const [unheardOf, ...known] = await Promise.all(['csh', 'zsh', 'fish', 'powershell'].map(scriptOf))
  for (const { stdout, code } of known) {
    expect(code).toBe(0)
    expect(stdout).toMatch(/holdfast complete '?--'?/)
  }
  expect(unheardOf?.code).toBe(2)
})

test('in a bash: verbs, names with colons, values behind =, and nothing of the line is run', async () => {
  const rc = join(cwd, 'rc')
  const program = `holdfast() { '${process.execPath}' '${mainFile}' "$@"; }`
  writeFileSync(
    rc,
    `PS1='ready> '\n${program}\nexport HOLDFAST_REDIS=${server.url}\nsource <(holdfast completion bash)\nsource <(holdfast completion bash)\n`,
  )
  const bash = await startTerminal(['bash', '--rcfile', rc, '--noprofile', '-i'], { cwd, columns: 200 })
  const clear = '\u0015'
  try {
    await bash.shows('ready> ')
    bash.type('holdfast delivery rel\t')
    await bash.shows('holdfast delivery release ')
    bash.type(`\t`)
    await bash.shows(`holdfast delivery release ${heldId} `)
    bash.type(`${clear}holdfast fence lift pause ho\t`)
    await bash.shows('holdfast fence lift pause host:build-1 ')
    bash.type(`${clear}holdfast fence lift hold conversation:\t`)
    await bash.shows('holdfast fence lift hold conversation:c42 ')
    bash.type(`${clear}holdfast delivery ls --state=h\t`)
    await bash.shows('holdfast delivery ls --state=held ')
    bash.type(`${clear}holdfast delivery show "$(touch ran)" --js\t`)
    await bash.shows('"$(touch ran)" --json ')
    expect(existsSync(join(cwd, 'ran'))).toBe(false)
    bash.type(`${clear}exit\n`)
    await bash.ended()
  } finally {
    bash.stop()
  }
})
