import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const lua = fileURLToPath(new URL('../../lua', import.meta.url))

/** A function of the library's sources, with the file it stands in and that file's own functions. */
interface Block {
  readonly text: string
  readonly file: string
  readonly locals: readonly string[]
}

/** What functions of the library may come to: words that look like commands, and patterns of keys. */
export interface Reach {
  readonly words: ReadonlySet<string>
  readonly keys: ReadonlySet<string>
}

/** Follows the sources from these functions (without `hf_`) to everything that they call. */
export function reachOf(functions: readonly string[]): Reach {
  const blocks = blocksOf()
  const patterns = keyPatterns()
  const words = new Set<string>()
  const keys = new Set<string>()
  const seen = new Set<string>()
  const todo: Block[] = functions.map((name) => {
    return { text: codeOf(join('functions', `${name}.lua`)), file: '', locals: [] }
  })
  for (let block = todo.pop(); block !== undefined; block = todo.pop()) {
    for (const word of wordsIn(block.text)) words.add(word)
    for (const [, name = ''] of block.text.matchAll(/\bhf\.key\.(\w+)/g)) {
      keys.add(patterns.get(name) ?? `no key ${name}`)
    }
    for (const name of calledIn(block)) {
      const called = blocks.get(name)
      if (called === undefined || seen.has(name)) continue
      seen.add(name)
      todo.push(called)
    }
  }
  return { words, keys }
}

/** Words in capitals within quotes, as rights name them; most are commands. */
export function wordsIn(text: string): Set<string> {
  const found = new Set<string>()
  for (const [, word = '', sub = ''] of text.matchAll(/'([A-Z]{3,})'(?:, '([A-Z]+)')?/g)) {
    const name = word.toLowerCase()
    found.add(name === 'xinfo' || name === 'xgroup' ? `${name}|${sub.toLowerCase()}` : name)
  }
  return found
}

/** The whole library, without comments. */
export function wholeLibrary(): string {
  return ['lib', 'functions'].flatMap((folder) => filesIn(folder).map(codeOf)).join('\n')
}

function blocksOf(): Map<string, Block> {
  const blocks = new Map<string, Block>()
  for (const file of filesIn('lib')) {
    const code = codeOf(file)
    const locals = [...code.matchAll(/^local function (\w+)/gm)].map(([, name = '']) => name)
    const functions = code.matchAll(/^(local )?function ([\w.]+)\((?:.*\bend$|[\s\S]*?^end$)/gm)
    for (const [text, local, name = ''] of functions) {
      blocks.set(local === undefined ? name : `${file} ${name}`, { text, file, locals })
    }
  }
  return blocks
}

function calledIn({ text, file, locals }: Block): string[] {
  const shared = [...text.matchAll(/\bhf\.(\w+)/g)].map(([name]) => name)
  const own = locals.filter((name) => new RegExp(`\\b${name}\\b`).test(text))
  return [...shared, ...own.map((name) => `${file} ${name}`)]
}

/** The pattern of each key of lua/lib/keys.lua, for the hub `hf`. */
function keyPatterns(): Map<string, string> {
  const lines = codeOf(join('lib', 'keys.lua')).matchAll(
    /^function hf\.key\.(\w+)\(.*?\) return tag \.\. '([^']+)'(.*) end$/gm,
  )
  return new Map(
    [...lines].map(([, name = '', text = '', more = '']) => [name, `{hf}${text}${more === '' ? '' : '*'}`]),
  )
}

function filesIn(folder: string): string[] {
  return readdirSync(join(lua, folder)).map((name) => join(folder, name))
}

function codeOf(file: string): string {
  return readFileSync(join(lua, file), 'utf8').replace(/--.*$/gm, '')
}
