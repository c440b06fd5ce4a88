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
 * The text of the mutant's file with its fault in it.
 * @param {Mutant} mutant
 * @throws Error where a text is not found exactly once: the package changed, and the mutant must follow
 */
export function brokenText({ name, file, edits }) {
  let source = readFileSync(join(own, file), 'utf8')
  for (const { text, becomes } of edits) {
    const pieces = source.split(text)
    if (pieces.length !== 2) {
      const first = text.trim().split('\n')[0]
      throw new Error(`mutant "${name}": "${first}" stands ${pieces.length - 1} times in ${file}`)
    }
    source = pieces.join(becomes)
  }
  return source
}

/** @param {Mutant} mutant @returns {{ dir: string, remove: () => void }} */
export function makeBuild(mutant) {
  const broken = brokenText(mutant)
  const dir = mkdtempSync(join(tmpdir(), 'holdfast-mutant-'))
  for (const each of copied) cpSync(join(own, each), join(dir, each), { recursive: true })
  symlinkSync(join(own, 'node_modules'), join(dir, 'node_modules'))
  writeFileSync(join(dir, mutant.file), broken)
  return { dir, remove: () => rmSync(dir, { recursive: true, force: true }) }
}
