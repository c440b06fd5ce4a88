import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const root = fileURLToPath(new URL('../../', import.meta.url))
const read = (path: string) => readFileSync(`${root}${path}`, 'utf8')

/** Keys that no function of the library names: BullMQ's, and what an audit set aside. */
const others = [':bull:', ':damaged:']

it('the table of keys in ARCHITECTURE.md names every key that the library does, and no other', () => {
  const section = read('ARCHITECTURE.md').split('## The record')[1]?.split('\n## ')[0] ?? ''
  const firstCells = section.split('\n').flatMap((line) => /^\| (`:[^|]*)\|/.exec(line)?.[1] ?? [])
  const inTable = firstCells.flatMap((cell) =>
    [...cell.matchAll(/`(:\w+:?)[^`]*`/g)].map(([, name]) => name ?? ''),
  )
  const inLibrary = [...read('lua/lib/keys.lua').matchAll(/return tag \.\. '(:\w+:?)'/g)].map(
    ([, name]) => name ?? '',
  )
  expect(inLibrary.length).toBeGreaterThan(40)
  expect(inTable.sort()).toEqual([...inLibrary, ...others].sort())
})
