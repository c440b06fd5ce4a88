// @ts-check
// What test/guards/caught.json tells: which test catches the mutant of each guard, and of which text of its function.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** @typedef {{ file: string, test: string, digest: string }} Caught */

const caughtFile = fileURLToPath(new URL('caught.json', import.meta.url))

/** By the name of the guard. @returns {Map<string, Caught>} */
export function readCaught() {
  if (!existsSync(caughtFile)) return new Map()
  return new Map(Object.entries(JSON.parse(readFileSync(caughtFile, 'utf8'))))
}

/** In the order of the guards. @param {readonly { name: string }[]} guards @param {ReadonlyMap<string, Caught>} caught */
export function writeCaught(guards, caught) {
  const entries = guards.flatMap(({ name }) => {
    const entry = caught.get(name)
    return entry === undefined ? [] : [[name, entry]]
  })
  writeFileSync(caughtFile, `${JSON.stringify(Object.fromEntries(entries), null, 2)}\n`)
}
