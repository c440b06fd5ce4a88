import { spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'vitest'
import { isErrorCode } from '../../src/contract/errors.js'
import { findProgram } from '../../src/record/server-process.js'
import { patternOf } from './blocks.js'

// What the tests of docs/redis-cli.md share: its recipes, and a shell that runs them.

export interface Recipe {
  readonly section: string
  readonly line: number
  readonly script: string
  /** The lines that must come in this order, others between them; `…` is anything. */
  readonly expected: readonly string[]
}

/** What happens before the recipe that holds the text: it brings the record into the state it is about. */
export interface Stage {
  readonly before: string
  readonly act: () => Promise<void>
}

/** Runs recipes with the `redis-cli`, `redis-check-aof` and `holdfast` of this machine. */
export interface RecipeShell {
  /** What stands for ids, by name. `PORT` is that of the server. */
  readonly variables: Record<string, string>
  /** The recipe must end as the page says, and print what it shows. */
  run(recipe: Recipe): void
  close(): void
}

/** Sections about servers that were lost, each run by a test of its own on servers of its own. */
export const sectionsOfLosses = [
  'After a lost AOF tail',
  'After everything was lost',
  'After a full disk',
  'After a failover',
] as const

const page = readFileSync(fileURLToPath(new URL('../../docs/redis-cli.md', import.meta.url)), 'utf8')
const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))

export const allRecipes = recipesOf(page)

/** Those of some sections. Fails where one has none. */
export function recipesOfSections(...sections: (typeof sectionsOfLosses)[number][]): Recipe[] {
  for (const section of sections) {
    expect(
      allRecipes.some((recipe) => recipe.section === section),
      `recipes of ${section}`,
    ).toBe(true)
  }
  return allRecipes.filter(({ section }) => sections.some((each) => each === section))
}

export function openShell(variables: Record<string, string>): RecipeShell {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-recipes-'))
  const program = (name: string, line: string) => {
    writeFileSync(join(folder, name), `#!/bin/sh\n${line}\n`)
    chmodSync(join(folder, name), 0o755)
  }
  program('redis-cli', `exec '${redisCli()}' -e -p "$PORT" "$@"`)
  program('redis-check-aof', `exec '${found('redis-check-aof', 'valkey-check-aof')}' "$@"`)
  program(
    'holdfast',
    `HOLDFAST_REDIS="redis://127.0.0.1:$PORT" HOLDFAST_HUB=hf exec '${process.execPath}' '${main}' "$@"`,
  )
  return {
    variables,
    run: ({ script, expected }) => {
      const ended = spawnSync('sh', ['-euc', `exec 2>&1\n${script}`], {
        encoding: 'utf8',
        env: { ...process.env, ...variables, PATH: `${folder}${delimiter}${process.env['PATH']}` },
        timeout: 50_000, // several commands, on a machine that is busy
      })
      const output = ended.stdout.replaceAll('\r', '') // INFO ends its lines with one
      const refused = isErrorCode(expected[0]?.split(' ')[0] ?? '')
      expect(ended.status, output).toBe(refused ? 1 : 0)
      expect(firstMissing(output.split('\n'), expected), output).toBeUndefined()
    },
    close: () => rmSync(folder, { recursive: true, force: true }),
  }
}

/** The `redis-cli` of this machine. @throws Error where there is none */
export function redisCli(): string {
  return found('redis-cli', 'valkey-cli')
}

function found(...names: string[]): string {
  for (const name of names) {
    const path = findProgram(name)
    if (path !== undefined) return path
  }
  throw new Error(`none of ${names.join(', ')} is here: run node scripts/ensure-server.mjs`)
}

/** What comes before the recipe, then the recipe. */
export async function runStaged(shell: RecipeShell, stages: readonly Stage[], recipe: Recipe): Promise<void> {
  for (const { before, act } of stages) if (recipe.script.includes(before)) await act()
  shell.run(recipe)
}

/** Each stage stands before one of these recipes. */
export function expectStaged(stages: readonly Stage[], recipes: readonly Recipe[]): void {
  for (const { before } of stages) {
    expect(
      recipes.filter(({ script }) => script.includes(before)),
      before,
    ).toHaveLength(1)
  }
}

/** The expected line that does not come after the ones before it. */
function firstMissing(lines: readonly string[], expected: readonly string[]): string | undefined {
  let at = 0
  for (const line of expected) {
    const place = lines.slice(at).findIndex((each) => patternOf(line).test(each))
    if (place < 0) return line
    at += place + 1
  }
  return undefined
}

/** The `sh` blocks of a page; a `text` block right after one is what it prints. */
export function recipesOf(text: string): Recipe[] {
  const found: Recipe[] = []
  const blocks = text.matchAll(/^##+ (.+)$|^```sh\n([\s\S]*?)^```\n(?:\n```text\n([\s\S]*?)^```\n)?/gm)
  let section = 'the start'
  for (const { index, 1: heading, 2: script, 3: output = '' } of blocks) {
    if (heading !== undefined) section = heading
    if (script === undefined) continue
    const line = text.slice(0, index).split('\n').length
    found.push({ section, line, script, expected: output.split('\n').filter(Boolean) })
  }
  return found
}
