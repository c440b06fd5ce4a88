// @ts-check
// Writes into docs/cli.md, between their marks, the tables of common options and of every command, from what the
// last build declares to commander (run `npm run build` first). What stands outside the marks is written by hand,
// and so are the notes of scripts/cli-notes.mjs. A test compares the page with the command line in src/.
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { notes } from './cli-notes.mjs'
import { cell, table } from './errors-page.mjs'

/** @typedef {import('commander').Command} Command */
/** @typedef {import('commander').Option} Option */

/**
 * The page with its tables written anew; all else stays as it is.
 * @param {string} page
 * @param {Command} program
 * @param {Readonly<Record<string, string>>} variables of the environment, by member of the configuration
 */
export function cliPage(page, program, variables) {
  const known = new Set(commandsOf(program).map((command) => nameOf(command)))
  const strange = Object.keys(notes).filter((name) => !known.has(name))
  if (strange.length > 0)
    throw new Error(`scripts/cli-notes.mjs has notes on no command: ${strange.join(', ')}`)
  const commands = commandsOf(program).map((command) => entryOf(command))
  const withOptions = between(page, 'options', optionTable(program, variables))
  return between(withOptions, 'commands', commands.join('\n'))
}

/** @param {string} page @param {string} name @param {string} text */
function between(page, name, text) {
  const marked = new RegExp(`(<!-- ${name}: [^\\n]* -->\\n)[\\s\\S]*?(<!-- /${name} -->\\n)`)
  if (!marked.test(page)) throw new Error(`the page has no place for ${name}`)
  return page.replace(marked, (_, start, end) => `${start}\n${text}\n${end}`)
}

/** Every command that does something, in the order of the help. @param {Command} command @returns {Command[]} */
function commandsOf(command) {
  const { commands } = command
  if (commands.length === 0) return command.parent === null ? [] : [command]
  const shown = command.createHelp().visibleCommands(command)
  return shown.filter((each) => commands.includes(each)).flatMap(commandsOf)
}

/** The words behind `holdfast`. @param {Command} command @returns {string} */
function nameOf(command) {
  const { parent } = command
  return parent?.parent ? `${nameOf(parent)} ${command.name()}` : command.name()
}

/** @param {Command} command */
function entryOf(command) {
  const name = nameOf(command)
  const note = notes[name] === undefined ? '' : ` ${notes[name]}`
  const words = command.registeredArguments.map((each) => [
    `\`${each.required ? `<${each.name()}>` : `[${each.name()}]`}\``,
    each.description,
  ])
  const flags = shownOptions(command).map((each) => [`\`${each.flags}\``, each.description])
  const rows = [...words, ...flags].map((row) => row.map(plain))
  const head = `### holdfast ${name}\n\n${sentence(command.description())}${note}\n`
  return rows.length === 0 ? head : `${head}\n${table([['argument or flag', 'what'], ...rows])}`
}

/** @param {Command} command @returns {Option[]} */
function shownOptions(command) {
  return command.options.filter((each) => !each.hidden)
}

/** Text of a cell, in which what stands between angle brackets is no tag. @param {string} text */
function plain(text) {
  return cell(text.startsWith('`') ? text : text.replaceAll('<', '\\<'))
}

/** @param {string} text */
function sentence(text) {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}.`
}

/** @param {Command} program @param {Readonly<Record<string, string>>} variables */
function optionTable(program, variables) {
  const rows = shownOptions(program).map((each) => {
    const member = each.attributeName()
    const variable = variables[member]
    const code = (/** @type {string} */ text) => `\`${text}\``
    return [code(each.flags), variable ? code(variable) : '', variable ? code(member) : '', each.description]
  })
  const actor = [
    '`--actor <name>` (acts of an operator)',
    `\`${variables['actor']}\``,
    '`actor`',
    'who (the OS user)',
  ]
  const all = [...rows, actor].map((row) => row.map(plain))
  return table([['flag', 'environment', 'file member', 'what (and what it is when absent)'], ...all])
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const built = (/** @type {string} */ path) => import(new URL(`../dist/cli/${path}`, import.meta.url).href)
  const [{ makeProgram }, { variables }] = await Promise.all([built('program.js'), built('config.js')])
  const file = new URL('../docs/cli.md', import.meta.url)
  writeFileSync(file, cliPage(readFileSync(file, 'utf8'), await makeProgram(), variables))
}
