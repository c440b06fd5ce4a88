// @ts-check
// A build that is broken on purpose: a copy of the package in a folder of its own.
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** @typedef {import('./list.mjs').Mutant} Mutant */

const own = fileURLToPath(new URL('../..', import.meta.url))
const copied = ['dist', 'lua', 'torture', 'package.json']

/**
 * The files of the mutant with their faults in them, by name.
 * @param {Mutant} mutant @returns {Map<string, string>}
 * @throws Error where a text is not found exactly once: the package changed, and the mutant must follow
 */
export function brokenFiles({ name, edits, load = [] }) {
  /** @type {Map<string, string>} */
  const files = new Map()
  for (const { file, text, becomes } of [...load, ...edits]) {
    const pieces = (files.get(file) ?? readFileSync(join(own, file), 'utf8')).split(text)
    if (pieces.length !== 2) {
      const first = text.trim().split('\n')[0]
      throw new Error(`mutant "${name}": "${first}" stands ${pieces.length - 1} times in ${file}`)
    }
    files.set(file, pieces.join(becomes))
  }
  return files
}

/**
 * How long runs wait. A broken build may never settle, and shows soon; what has to be green, or stays unknown, gets all
 * the time that it wants, on however busy a machine.
 * @type {{ file: string, pattern: RegExp, broken: string, patient: string }[]}
 */
const waits = [
  { file: 'torture/run.mjs', pattern: /(?<=const restMs = )[\d_]+/, broken: '240_000', patient: '240_000' },
  {
    file: 'torture/run.mjs',
    pattern: /(?<=const writeWithinMs = )[\d_]+/,
    broken: '60_000',
    patient: '60_000',
  },
  {
    file: 'torture/run.mjs',
    pattern: /(?<=const settleWithinMs = )[\d_]+/,
    broken: '15_000',
    patient: '120_000',
  },
  {
    file: 'torture/final.mjs',
    pattern: /(?<=const stillForMs = )[\d_]+/,
    broken: '4_000',
    patient: '15_000',
  },
]

/** @param {string} dir of a build @param {'broken' | 'patient'} pace */
function setPace(dir, pace) {
  for (const { file, pattern, [pace]: wait } of waits) {
    const path = join(dir, file)
    writeFileSync(path, readFileSync(path, 'utf8').replace(pattern, wait))
  }
}

/** @param {Mutant} mutant @returns {{ dir: string, remove: () => void }} */
export function makeBuild(mutant) {
  const broken = brokenFiles(mutant)
  const dir = mkdtempSync(join(tmpdir(), 'holdfast-mutant-'))
  for (const each of copied) cpSync(join(own, each), join(dir, each), { recursive: true })
  symlinkSync(join(own, 'node_modules'), join(dir, 'node_modules'))
  for (const [file, text] of broken) writeFileSync(join(dir, file), text)
  setPace(dir, mutant.by.length === 0 || mutant.by.includes('unknown') ? 'patient' : 'broken')
  return { dir, remove: () => rmSync(dir, { recursive: true, force: true }) }
}
