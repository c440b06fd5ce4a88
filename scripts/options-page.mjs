// @ts-check
// Writes docs/options.md from the option interfaces of src and their docstrings. A test compares the page with these.
//
// What stands in a docstring before "when absent" is the default: `Milliseconds that it may take; 30,000 when absent.`
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { cell, table } from './errors-page.mjs'

/** @typedef {{ readonly name: string, readonly type: string, readonly default: string, readonly meaning: string }} Option */
/** @typedef {{ readonly call: string, readonly from: string, readonly file: string }} Call */
/** @typedef {ts.InterfaceDeclaration | ts.TypeAliasDeclaration} Declaration */

const source = new URL('../src/', import.meta.url)
export const pageFile = fileURLToPath(new URL('../docs/options.md', import.meta.url))

/** The calls of the page: what each is imported from, and where it stands. @type {readonly Call[]} */
export const calls = [
  { call: 'openHub', from: 'holdfast', file: 'hub/open-hub.ts' },
  { call: 'openHubSet', from: 'holdfast', file: 'hub/open-hub-set.ts' },
  { call: 'initRecord', from: 'holdfast', file: 'hub/open-hub.ts' },
  { call: 'createNode', from: 'holdfast', file: 'node/create-node.ts' },
  { call: 'startEmbedded', from: 'holdfast', file: 'record/embedded.ts' },
  { call: 'createEffects', from: 'holdfast', file: 'client/effects.ts' },
  { call: 'effects.run', from: 'holdfast', file: 'client/effects.ts' },
  { call: 'openClient', from: 'holdfast/client', file: 'client/open-client.ts' },
  { call: 'commandExecutor', from: 'holdfast/node', file: 'node/executors/command.ts' },
  { call: 'forwardExecutor', from: 'holdfast/node', file: 'node/executors/forward.ts' },
  { call: 'commandProbe', from: 'holdfast/node', file: 'node/probes/command.ts' },
  { call: 'httpProbe', from: 'holdfast/node', file: 'node/probes/http.ts' },
  { call: 'createSupervisor', from: 'holdfast/node', file: 'node/supervisor.ts' },
  { call: 'startSweeps', from: 'holdfast/sweeps', file: 'sweeps/index.ts' },
  { call: 'holdfast', from: 'holdfast/fastify', file: 'fastify.ts' },
  { call: 'openTestRecord', from: 'holdfast/testing', file: 'testing/record.ts' },
  { call: 'crashTest', from: 'holdfast/testing', file: 'testing/crash-test.ts' },
]

/** Types that the tables name, and that have members of their own. */
const named = [
  { name: 'RedisAddress', file: 'contract/redis-address.ts' },
  { name: 'RedisTls', file: 'contract/redis-address.ts' },
  { name: 'HubAddress', file: 'client/calls.ts' },
  { name: 'ExchangerTls', file: 'client/exchange.ts' },
  { name: 'HoldfastCaller', file: 'http/embedded-identities.ts' },
  { name: 'Limits', file: 'http/limits.ts' },
]

const head = `# Options

<!-- Written by scripts/options-page.mjs from the docstrings of src: change them there. -->

What each call of the package takes. A name that ends in \`Ms\` is in milliseconds. The flags of the command line are in [cli.md](cli.md); what is set in the record, for every process at once, is listed by \`holdfast config get\` (\`PUT /v1/config\`, [http.md](http.md)).

`

/** The page as it should be. */
export function optionsPage() {
  const index = calls.map(({ call, from }) => [`[\`${call}\`](#${anchorOf(call)})`, `\`${from}\``])
  const sections = calls.map((call) => `## ${call.call}\n\n${aboutOf(call)}\n\n${tableOf(optionsOf(call))}`)
  const types = named.map(({ name, file }) => {
    const declaration = declarationOf(name, file)
    const rows = membersOf(declaration, file)
    return `### ${name}\n\n${docOf(declaration)}\n${rows.length === 0 ? '' : `\n${tableOf(rows)}`}`
  })
  return `${head}${table([['call', 'from'], ...index])}\n${sections.join('\n')}\n## Types named above\n\n${types.join('\n')}`
}

/** What a call takes, what it inherits first. @param {Call} call @returns {Option[]} */
export function optionsOf(call) {
  const { declaration, place } = takenBy(call)
  return membersOf(declaration, place)
}

/** The declaration of what a call takes, and its file. @param {Pick<Call, 'call' | 'file'>} call */
function takenBy({ call, file }) {
  const parameter = functionOf({ call, file }).parameters.find(({ type }) =>
    /^\w+(?:Options|Request)$/.test(type?.getText() ?? ''),
  )
  if (parameter?.type === undefined) throw new Error(`${call} of ${file} takes no options`)
  const name = parameter.type.getText()
  const place = placeOf(name, file)
  return { declaration: declarationOf(name, place), place }
}

/** What it does, and what the docstring of its options says of them all. @param {Call} call */
function aboutOf(call) {
  const [about = ''] = docOf(functionOf(call)).split('\n\n')
  if (about === '') throw new Error(`${call.call} of ${call.file} has no docstring`)
  const [, more = ''] = /^Options of [^ ]+\. (.*)/.exec(docOf(takenBy(call).declaration)) ?? []
  return `${about.replace(/ \(contract sections? [^)]*\)/, '')}${more === '' ? '' : ` ${more}`}`
}

/** @param {Pick<Call, 'call' | 'file'>} call @returns {ts.FunctionDeclaration | ts.MethodSignature} */
function functionOf({ call, file }) {
  const [, method] = call.split('.')
  const found =
    method === undefined
      ? statementsOf(file)
          .filter(ts.isFunctionDeclaration)
          .find(({ name }) => name?.text === call)
      : statementsOf(file)
          .filter(ts.isInterfaceDeclaration)
          .flatMap(({ members }) => members.filter(ts.isMethodSignature))
          .find(({ name }) => name.getText() === method)
  if (found === undefined) throw new Error(`${file} has no ${call}`)
  return found
}

/** @type {Map<string, ts.SourceFile>} */
const read = new Map()

/** @param {string} file @returns {ts.NodeArray<ts.Statement>} */
function statementsOf(file) {
  const known = read.get(file)
  if (known !== undefined) return known.statements
  const text = readFileSync(new URL(file, source), 'utf8')
  const parsed = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true)
  read.set(file, parsed)
  return parsed.statements
}

/** The file in which a name of a file is declared. @param {string} name @param {string} file @returns {string} */
function placeOf(name, file) {
  for (const statement of statementsOf(file).filter(ts.isImportDeclaration)) {
    const bound = statement.importClause?.namedBindings
    if (bound === undefined || !ts.isNamedImports(bound)) continue
    if (!bound.elements.some((each) => each.name.text === name)) continue
    const { text } = /** @type {ts.StringLiteral} */ (statement.moduleSpecifier)
    const url = new URL(text.replace(/\.js$/, '.ts'), new URL(file, source))
    return url.href.slice(source.href.length)
  }
  return file
}

/** @param {string} name @param {string} file @returns {Declaration} */
function declarationOf(name, file) {
  const found = statementsOf(file).find(
    (each) => (ts.isInterfaceDeclaration(each) || ts.isTypeAliasDeclaration(each)) && each.name.text === name,
  )
  if (found === undefined) throw new Error(`${file} has no ${name}`)
  return /** @type {Declaration} */ (found)
}

/** @param {Declaration} declaration @param {string} file @returns {Option[]} */
function membersOf(declaration, file) {
  if (ts.isTypeAliasDeclaration(declaration)) return membersOfType(declaration.type, file)
  const bases = (declaration.heritageClauses ?? []).flatMap(({ types }) => types)
  const inherited = bases.flatMap((base) => inheritedOf(base, file))
  // A member that has to be absent says which of several types is not meant.
  const own = declaration.members
    .filter(ts.isPropertySignature)
    .filter(({ type }) => type?.kind !== ts.SyntaxKind.UndefinedKeyword)
  return [...inherited, ...own.map(optionOf)]
}

/** Of several types together, and of those of which one is meant. @param {ts.TypeNode} type @param {string} file @returns {Option[]} */
function membersOfType(type, file) {
  if (ts.isParenthesizedTypeNode(type)) return membersOfType(type.type, file)
  if (ts.isIntersectionTypeNode(type)) return type.types.flatMap((each) => membersOfType(each, file))
  if (ts.isTypeReferenceNode(type)) {
    const name = type.getText()
    const place = placeOf(name, file)
    return membersOf(declarationOf(name, place), place)
  }
  if (!ts.isUnionTypeNode(type) || !type.types.every(ts.isTypeReferenceNode)) return []
  const forms = type.types.map((each) => membersOfType(each, file))
  const names = forms.flat().map(({ name }) => `\`${name}\``)
  return forms.flat().map((each) => ({ ...each, default: `one of ${names.join(' and ')} is required` }))
}

/** Those of `Base`, or of `Omit<Base, 'some'>`. @param {ts.ExpressionWithTypeArguments} base @param {string} file */
function inheritedOf(base, file) {
  const text = base.getText()
  const [, name = '', left = ''] = /^(?:Omit<)?(\w+)(?:, ([^>]+)>)?$/.exec(text) ?? []
  if (name === '') throw new Error(`${file}: what ${text} has is not read`)
  const place = placeOf(name, file)
  return membersOf(declarationOf(name, place), place).filter((each) => !left.includes(`'${each.name}'`))
}

/** @param {ts.PropertySignature} member @returns {Option} */
function optionOf(member) {
  const name = member.name.getText()
  const type = typeOf(member)
  const { meaning, absent } = parted(docOf(member))
  if (meaning === '') throw new Error(`no docstring says what ${name} means`)
  if (member.questionToken === undefined && absent === undefined)
    return { name, type, default: 'required', meaning }
  if (absent === undefined && type === 'number')
    throw new Error(`no docstring says what ${name} is when absent`)
  return { name, type, default: absent ?? (type === 'boolean' ? '`false`' : 'none'), meaning }
}

const clause = /(^|[.;:] )([^.;:]+?),? when absent(?=[.;]|$)/

/** A docstring without its default, and the default. @param {string} doc */
function parted(doc) {
  const found = clause.exec(doc)
  if (found === null) return { meaning: doc, absent: undefined }
  const [whole, before = '', absent = ''] = found
  const first = doc.slice(0, found.index)
  const rest = doc.slice(found.index + whole.length).replace(/^[.;]\s*/, '')
  const ends = before.startsWith('.') || !/^[a-z]/.test(rest) ? '.' : ';'
  const meaning = first === '' ? rest : `${first}${ends}${rest === '' ? '' : ` ${rest}`}`
  return { meaning, absent: `${absent.slice(0, 1).toLowerCase()}${absent.slice(1)}` }
}

const printer = ts.createPrinter({ removeComments: true })

/** @param {ts.PropertySignature} member */
function typeOf({ type, name }) {
  if (type === undefined) throw new Error(`${name.getText()} has no type`)
  const written = printer.printNode(ts.EmitHint.Unspecified, type, type.getSourceFile())
  const flat = written
    .replaceAll(/\breadonly /g, '')
    .replaceAll(/;?\s+/g, (blank) => (blank.includes(';') ? '; ' : ' '))
  const bare = flat.replaceAll(/ \| undefined\b(?=$|;| \})/g, '').replaceAll('; }', ' }')
  return bare.replaceAll(/(?<=\[) | (?=\])/g, '').replace(/^\((.*)\)$/, '$1')
}

/** The text of a docstring without its tags, each paragraph and each item in one line. @param {ts.Node} node */
function docOf(node) {
  const [doc] = ts.getJSDocCommentsAndTags(node).filter(ts.isJSDoc)
  const text = ts.getTextOfJSDocComment(doc?.comment) ?? ''
  return text
    .replaceAll(/\{@link ([\w.]+)\}/g, '`$1`')
    .replaceAll(/(?<!\n)\n *(?!\n|- )/g, ' ')
    .trim()
}

/** @param {readonly Option[]} options */
function tableOf(options) {
  const rows = options.map((each) => [`\`${each.name}\``, `\`${each.type}\``, each.default, each.meaning])
  return table([['option', 'type', 'when absent', 'what'], ...rows.map((row) => row.map(cell))])
}

/** @param {string} heading */
function anchorOf(heading) {
  return heading.toLowerCase().replaceAll('.', '')
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(pageFile, optionsPage())
