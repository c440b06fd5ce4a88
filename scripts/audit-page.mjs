// Writes docs/audit.md from the problems of the contract, as the last build has them (run `npm run build` first). A
// test compares the page with src/.
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { cell, table } from './errors-page.mjs'

/**
 * @typedef {object} Entry
 * @property {string} meaning
 * @property {string} next
 */

const head = `# What an audit can find

<!-- Written by scripts/audit-page.mjs from src/contract/problems.ts: change it there. -->

\`holdfast audit\` and \`GET /v1/audit\` tell each disagreement with a \`code\`, by which programs tell them apart, the key or id that it is \`about\`, \`what\` it is in words (which may change), and a line for the shell to \`look\` at it. How an audit goes: [sweeps.md](sweeps.md#the-audit).

Where the last column says "a sweep", \`holdfast sweep run audit\` does it at once; by itself it is done by the next run of \`audit\`, or of \`claims\`, which calls for one where totals do not add up. Rows are never changed by any of them.
`

/** @param {Readonly<Record<string, Entry>>} problems */
export function auditPage(problems) {
  const rows = Object.entries(problems).map(([code, { meaning, next }]) => [
    `\`${code}\``,
    cell(meaning),
    cell(next),
  ])
  return `${head}\n${table([['code', 'meaning', 'what happens, or what to do'], ...rows])}`
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const built = new URL('../dist/contract/problems.js', import.meta.url).href
  const { problems } = await import(built)
  writeFileSync(new URL('../docs/audit.md', import.meta.url), auditPage(problems))
}
