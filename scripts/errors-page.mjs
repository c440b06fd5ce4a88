// Writes docs/errors.md from the error catalogue, as the last build has it (run `npm run build` first). A test
// compares the page with the catalogue in src/.
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/**
 * @typedef {object} Entry
 * @property {number} status
 * @property {string} cause
 * @property {string} next
 */

const head = `# Errors

<!-- Written by scripts/errors-page.mjs from src/contract/errors.ts: change it there. -->

A code means the same in the Lua functions, in TypeScript, over HTTP, on the command line and here, and is never reused for anything else. Every error names its code first, then the cause with the present value, then what to do next. The status is the one that HTTP answers.

The command line ends with 3 for a status of 404, with 2 for \`INVALID_ARGUMENT\`, and with 1 for every other code ([cli.md](cli.md)). A Redis function answers \`CODE text\` as an error reply; in the replies of functions that take several items, each refused item carries its \`code\`.
`

/**
 * The page for a catalogue, in the catalogue's order.
 * @param {Readonly<Record<string, Entry>>} catalogue
 */
export function errorsPage(catalogue) {
  const rows = Object.entries(catalogue).map(([code, { status, cause, next }]) => {
    return [`\`${code}\``, String(status), cell(cause), cell(next)]
  })
  return `${head}\n${table([['code', 'status', 'cause', 'what to do'], ...rows])}`
}

/** In columns, as the formatter wants it. @param {readonly string[][]} rows */
export function table(rows) {
  const widths = rows[0]?.map((_, at) => Math.max(...rows.map((row) => row[at]?.length ?? 0))) ?? []
  const lines = rows.map((row) => row.map((text, at) => text.padEnd(widths[at] ?? 0)))
  lines.splice(
    1,
    0,
    widths.map((width) => '-'.repeat(width)),
  )
  return lines.map((line) => `| ${line.join(' | ')} |\n`).join('')
}

/** A text with its tables in columns. No cell of them holds a bar. @param {string} text */
export function padded(text) {
  return text.replace(/^\|.*\n(?:\|.*\n)+/gm, (written) => {
    const lines = written.trim().split('\n')
    const rows = lines.map((line) =>
      line
        .slice(1, -1)
        .split('|')
        .map((each) => each.trim()),
    )
    return table(rows.filter((_, at) => at !== 1))
  })
}

/** Text that breaks no row. @param {string} text */
export function cell(text) {
  return text.replaceAll('|', '\\|').replaceAll('\n', ' ')
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const built = new URL('../dist/contract/errors.js', import.meta.url).href
  const { errorCatalogue } = await import(built)
  writeFileSync(new URL('../docs/errors.md', import.meta.url), errorsPage(errorCatalogue))
}
