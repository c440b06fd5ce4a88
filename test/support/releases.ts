import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

/** The package as another release of it: a copy of what was built, with a library of another version. */
export interface OtherRelease {
  readonly version: number
  readonly openHub: typeof import('../../src/index.js').openHub
  readonly createNode: typeof import('../../src/node/index.js').createNode
  /** Its functions, for a hub or a node of any release that is to bring these. */
  readonly luaDir: string
}

const root = fileURLToPath(new URL('../..', import.meta.url))
const made: string[] = []

/** `change` may do anything to its functions, in the folder that it is given. */
export async function otherRelease(
  version: number,
  change: (luaDir: string) => void = () => undefined,
): Promise<OtherRelease> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-release-'))
  made.push(folder)
  for (const part of ['dist', 'lua', 'package.json']) {
    cpSync(join(root, part), join(folder, part), { recursive: true })
  }
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  const file = join(folder, 'dist', 'record', 'library.js')
  const source = readFileSync(file, 'utf8')
  const raised = source.replace(/(?<=export const libraryVersion = )\d+/, String(version))
  if (raised === source) throw new Error(`${file} states no other version: is dist/ built?`)
  writeFileSync(file, raised)
  const luaDir = join(folder, 'lua')
  change(luaDir)
  const part = (path: string) => import(/* @vite-ignore */ pathToFileURL(join(folder, 'dist', path)).href)
  const { openHub } = await part('index.js')
  const { createNode } = await part('node/index.js')
  return { version, openHub, createNode, luaDir }
}

/** For afterAll. */
export function removeReleases(): void {
  for (const folder of made.splice(0)) rmSync(folder, { recursive: true, force: true })
}
