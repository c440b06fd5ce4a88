import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, sep } from 'node:path'
import ts from 'typescript'

/** Which rooms of `src/` a room may import, beside itself. A folder that is not named here is an error. */
export const rooms: Readonly<Record<string, readonly string[]>> = {
  contract: [],
  set: ['contract'],
  record: ['contract'],
  hub: ['contract', 'record', 'set'],
  sweeps: ['contract', 'record', 'hub'],
  http: ['contract', 'record', 'hub'],
  node: ['contract'],
  client: ['contract', 'set'],
  testing: ['contract', 'record', 'hub', 'sweeps', 'http', 'node'],
  dashboard: ['contract'],
  cli: ['contract', 'set', 'record', 'hub', 'sweeps', 'http', 'node', 'client'],
}

/** The files beside the rooms: public entries. They load no server, no schedule and no command line. */
export const entryMayImport: readonly string[] = ['contract', 'record', 'hub', 'node', 'client']
/** But for the plugin, which is a server within an application. */
export const entries: Readonly<Record<string, readonly string[]>> = {
  'fastify.ts': ['contract', 'http', 'sweeps'],
}

/** Rooms that take types alone from others: what they import would be bundled otherwise. */
export const takeWordsAlone: readonly string[] = ['dashboard']

/** Files that may import one room more than theirs. */
export const exceptions: Readonly<Record<string, readonly string[]>> = {
  'node/transports/redis.ts': ['record'],
  'node/transports/http.ts': ['client'],
  'node/executors/forward.ts': ['client'],
  'node/probes/http.ts': ['client'],
}

/** Packages with one home, and where that is. */
const homes: readonly { readonly package: RegExp; readonly home: string }[] = [
  { package: /^ioredis(\/|$)/, home: 'record/' },
  { package: /^(libsql|better-sqlite3|sqlite|node:sqlite)(\/|$)/, home: 'node/mirror/' },
  { package: /^bullmq(\/|$)/, home: 'sweeps/' },
  { package: /^(fastify(-|\/|$)|@fastify\/)/, home: 'http/' },
]

/** One import that goes against an arrow, in words. */
export interface Violation {
  /** Path below `src`, with `/`. */
  readonly file: string
  readonly imported: string
  readonly why: string
}

/** Every import below `src` that its room may not have; static, dynamic and type-only alike. */
export function violationsIn(src: string): Violation[] {
  return sourcesIn(src).flatMap((file) => {
    const { importedFiles } = ts.preProcessFile(readFileSync(join(src, file), 'utf8'), true, true)
    return importedFiles.flatMap(({ fileName: imported }) => {
      const why = imported.startsWith('.')
        ? whyNotOurs(file, relative(src, join(src, dirname(file), imported)).split(sep))
        : whyNotPackage(file, imported)
      return why === undefined ? [] : [{ file, imported, why }]
    })
  })
}

/** Imports of a room's files from outside of it that bring packages with them: types do not, nor do mere words. */
export function valuesTakenIn(folder: string): string[] {
  return sourcesIn(folder).flatMap((file) => {
    const source = ts.createSourceFile(file, readFileSync(join(folder, file), 'utf8'), ts.ScriptTarget.Latest)
    return source.statements.flatMap((statement) => {
      const isImport = ts.isImportDeclaration(statement)
      if (!isImport && !ts.isExportDeclaration(statement)) return []
      const { moduleSpecifier: from } = statement
      if (from === undefined || !ts.isStringLiteral(from) || !from.text.startsWith('.')) return []
      const isInside = !relative(folder, join(folder, dirname(file), from.text)).startsWith('..')
      const isType = isImport
        ? statement.importClause?.phaseModifier === ts.SyntaxKind.TypeKeyword
        : statement.isTypeOnly
      const isWords = () => isWithoutPackages(join(folder, dirname(file), from.text))
      return isInside || isType || isWords() ? [] : [`${file}: ${statement.getText(source)}`]
    })
  })
}

/** Whether a file of ours, and all that it imports for more than types, loads no package. */
function isWithoutPackages(path: string, met: ReadonlySet<string> = new Set()): boolean {
  const file = path.replace(/\.js$/, '.ts')
  if (met.has(file)) return true
  if (!existsSync(file)) return false
  const source = ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.Latest)
  return source.statements.every((statement) => {
    if (!ts.isImportDeclaration(statement) && !ts.isExportDeclaration(statement)) return true
    const { moduleSpecifier: from } = statement
    if (from === undefined || !ts.isStringLiteral(from)) return true
    const isType = ts.isImportDeclaration(statement)
      ? statement.importClause?.phaseModifier === ts.SyntaxKind.TypeKeyword
      : statement.isTypeOnly
    if (isType) return true
    return (
      from.text.startsWith('.') && isWithoutPackages(join(dirname(file), from.text), new Set([...met, file]))
    )
  })
}

/** Which rooms each room, and each file beside them, really imports; the files of {@link exceptions} left out. */
export function arrowsIn(src: string): Record<string, string[]> {
  const arrows = new Map<string, Set<string>>()
  for (const file of sourcesIn(src)) {
    const from = roomOf(file) ?? file
    const { importedFiles } = ts.preProcessFile(readFileSync(join(src, file), 'utf8'), true, true)
    for (const { fileName: imported } of importedFiles) {
      if (!imported.startsWith('.')) continue
      const [into = '', ...rest] = relative(src, join(src, dirname(file), imported)).split(sep)
      if (into === '..' || rest.length === 0 || into === from || exceptions[file]?.includes(into)) continue
      arrows.set(from, (arrows.get(from) ?? new Set()).add(into))
    }
  }
  return Object.fromEntries([...arrows].map(([from, into]) => [from, [...into].sort()]))
}

/** The rooms that exist below `src`, by name. */
export function roomsIn(src: string): string[] {
  const folders = readdirSync(src, { withFileTypes: true }).filter((entry) => entry.isDirectory())
  return folders.map((folder) => folder.name).sort()
}

function sourcesIn(src: string): string[] {
  const paths = readdirSync(src, { recursive: true, encoding: 'utf8' })
  return paths
    .filter((path) => /\.[cm]?[jt]sx?$/.test(path))
    .map((path) => path.split(sep).join('/'))
    .sort()
}

function whyNotOurs(file: string, target: readonly string[]): string | undefined {
  const room = roomOf(file)
  const [into = '', ...rest] = target
  if (into === '..') return undefined // package.json, lua/: no room
  if (rest.length === 0) return room === undefined ? undefined : 'no room imports the public entry'
  if (room === undefined)
    return (entries[file] ?? entryMayImport).includes(into) ? undefined : `the entry does not import ${into}`
  const mayImport = rooms[room]
  if (mayImport === undefined) return `${room} is no room that import-rules.ts knows`
  if (into === room || mayImport.includes(into) || exceptions[file]?.includes(into)) return undefined
  return `${room} does not import ${into}`
}

function whyNotPackage(file: string, imported: string): string | undefined {
  const found = homes.find((each) => each.package.test(imported))
  if (found === undefined || file.startsWith(found.home)) return undefined
  return `${imported} belongs to src/${found.home}`
}

/** The first folder of a path below `src`; undefined for a file that lies beside the rooms. */
function roomOf(file: string): string | undefined {
  const [room = '', ...rest] = file.split('/')
  return rest.length === 0 ? undefined : room
}
