import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, it } from 'vitest'
import { check, DamagedHistory } from '../../src/testing/checker/index.js'
import { host, killed } from './stage.js'
import { createWorld, type Told, textOf } from './world.js'

describe('a history in a folder', () => {
  const dir = mkdtempSync(join(tmpdir(), 'holdfast-checker-'))
  afterAll(() => rmSync(dir, { recursive: true, force: true }))
  let folders = 0

  function written(told: Told, bend: (texts: Map<string, string>) => void = () => undefined): string {
    folders += 1
    const folder = join(dir, String(folders))
    mkdirSync(folder)
    const texts = new Map([...told.files].map(([file, lines]) => [file, textOf(lines)]))
    texts.set('final.json', JSON.stringify(told.final))
    bend(texts)
    for (const [file, text] of texts) writeFileSync(join(folder, file), text)
    return folder
  }

  const program = fileURLToPath(new URL('../../torture/check.mjs', import.meta.url))
  const run = (folder: string) => spawnSync(process.execPath, [program, folder], { encoding: 'utf8' })

  it('is judged by the command line: 0, 1 with the ids, 2 where nothing can be judged', () => {
    const green = run(written(killed()))
    expect({ status: green.status, last: green.stdout.trim().split('\n').at(-1) }).toEqual({
      status: 0,
      last: 'acknowledged 2, lost 0, executed twice 0, unknown 1 (all explained)',
    })
    const told = killed()
    const gone = told.final.deliveries.pop()
    const red = run(written(told))
    expect(red.status).toBe(1)
    expect(red.stdout).toContain(`I1 ${gone?.id}`)
    const damaged = run(written(killed(), (texts) => texts.delete('final.json')))
    expect({ status: damaged.status, stderr: damaged.stderr }).toEqual({
      status: 2,
      stderr: expect.stringContaining('final.json'),
    })
  })

  it('may end in a half line where a process was killed', () => {
    const folder = written(killed(), (texts) => {
      for (const [file, text] of texts)
        if (file.startsWith('node-')) texts.set(file, `${text}{"t":"12","role":"no`)
    })
    expect(check(folder).violations).toEqual([])
  })

  const damages: Record<string, (texts: Map<string, string>) => void> = {
    'a half line in the middle': (texts) => {
      const text = texts.get('producer-p1-1.jsonl') ?? ''
      texts.set('producer-p1-1.jsonl', text.replace('}\n', '\n'))
    },
    'a conductor that was cut off': (texts) => {
      texts.set('conductor-run-3.jsonl', (texts.get('conductor-run-3.jsonl') ?? '').slice(0, -9))
    },
    'no conductor': (texts) => texts.delete('conductor-run-3.jsonl'),
    'no producers': (texts) => texts.delete('producer-p1-1.jsonl'),
    'an answer without its request': (texts) => {
      const text = texts.get('producer-p1-1.jsonl') ?? ''
      texts.set('producer-p1-1.jsonl', text.slice(text.indexOf('\n') + 1))
    },
    'an end mark without its begin': (texts) => {
      for (const [file, text] of texts) {
        if (file.startsWith('marks-')) texts.set(file, text.slice(text.indexOf('\n') + 1))
      }
    },
    'lines of another process': (texts) => {
      texts.set('producer-p2-9.jsonl', texts.get('producer-p1-1.jsonl') ?? '')
    },
    'a file of no role': (texts) => texts.set('somebody-1.jsonl', ''),
    'a record that lacks its log': (texts) => {
      texts.set(
        'final.json',
        JSON.stringify({ ...JSON.parse(texts.get('final.json') ?? ''), log: undefined }),
      )
    },
    'a record that is cut short': (texts) =>
      texts.set('final.json', (texts.get('final.json') ?? '').slice(0, -9)),
  }

  it.each(Object.entries(damages))('is not judged: %s', (_, damage) => {
    expect(() => check(written(killed(), (texts) => void damage(texts)))).toThrow(DamagedHistory)
  })

  it('is not judged where there is none', () => {
    expect(() => check(join(dir, 'nowhere'))).toThrow(DamagedHistory)
  })

  it('of 200,000 lines is judged within seconds', () => {
    const made = createWorld()
    const n1 = made.join('n1', 'h1')
    for (let at = 0; at < 23_000; at += 1) {
      made.accept(`k${at}`, 'ok', host, `c${at % 50}`)
    }
    for (const id of made.ids()) {
      made.claim(n1, id)
      made.run(n1, id, 'result')
    }
    made.heal()
    const folder = written(made.told())
    // Of the processor, for a busy machine is none of its doing.
    const before = process.cpuUsage()
    const { lines, violations } = check(folder)
    const { user, system } = process.cpuUsage(before)
    expect(violations).toEqual([])
    expect(lines).toBeGreaterThan(200_000)
    expect((user + system) / 1e6).toBeLessThan(10)
  }, 120_000)
})
