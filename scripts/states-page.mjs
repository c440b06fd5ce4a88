// Writes docs/states.md from the transitions of src/contract/states.ts, as the last build has them (run `npm run build`
// first). A test compares the page with the sources.
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { cell, table } from './errors-page.mjs'

/** @typedef {import('../src/contract/states.ts').Transition} Transition */

const head = `# States

<!-- Written by scripts/states-page.mjs from src/contract/states.ts: change it there. -->

Two machines are kept apart on purpose. A **delivery** says where the work is and who owns it; an **attempt** says whether anything was executed. \`delivered\` is the receipt of the handoff, not the end of the work; and no attempt is proof that nothing ran.

## A delivery

| state       | meaning                                                                                                 | where it is listed                      |
| ----------- | ------------------------------------------------------------------------------------------------------- | --------------------------------------- |
| \`queued\`    | it waits in the stream of its host; parked, where a pause covers it or an earlier one of its lane waits | the stream, \`:parked:<host>\`            |
| \`claimed\`   | a node owns it, under an epoch that nobody had before                                                   | the pending list of its host            |
| \`mirrored\`  | that node has a durable copy                                                                            | the pending list of its host            |
| \`delivered\` | the node took it over for good; from here on attempts are begun                                         | \`:awaiting:<host>\` until it is finished |
| \`held\`      | it waits for a person: a hold, poison, a corrupt payload, exhausted retries, a retired host             | \`:held\`, with its reason                |
| \`failed\`    | it will not be executed, and was not: blocked, expired, cancelled, rejected, refused                    | on its row, with code and actor         |
| \`unknown\`   | the record lost history, or a node cannot tell whether its copy is good: nobody knows what became of it | \`:unknown\`, with its reason             |

No transition but these exists; a test holds the log of every torture run to them. A refused step changes nothing, and names state, owner and epoch as they are.
`

const tail = `
An epoch grows with every change of owner and is never given twice, so a step that was delayed is refused, whatever it carries. \`holdfast delivery why ID\` (or \`redis-cli FCALL_RO hf_why 1 '{hf}' ID\`) tells why a delivery is where it is, and what would move it.

## An attempt

\`begin\` opens attempt n of a delivered delivery under a grant, a number that one process minted for it. While it is open nobody can begin the delivery again, take it over or move it.

\`\`\`mermaid
stateDiagram-v2
  [*] --> executing: begin (one grant, one process)
  executing --> done: result
  executing --> terminal: terminal
  executing --> not_sent: not_sent (proof that nothing ran)
  executing --> executing: outcome_unknown (listed until someone knows)
  done --> [*]
  terminal --> [*]
  not_sent --> [*]: attempt n + 1 may follow
\`\`\`

| outcome           | meaning                                                                   | what follows                                                                                                                |
| ----------------- | ------------------------------------------------------------------------- | --------------------------------------------------------------------------------------------------------------------------- |
| \`result\`          | it executed, and this is what it said                                     | nothing: the delivery is finished                                                                                           |
| \`terminal\`        | it will never succeed                                                     | nothing: no retry, by nobody                                                                                                |
| \`not_sent\`        | proof that nothing executed: no byte can have left, or the target said so | attempt n + 1, with growing pauses, until \`max_redrive\`; then it is held                                                    |
| \`outcome_unknown\` | it may have executed or not                                               | it stays open in the unknown list: until a late report, a probe, a declared-idempotent replay, or an operator with evidence |

Effects ([effects.md](effects.md)) have the same outcomes; their row is \`free\` again after \`not_sent\`.
`

/** The page for these transitions, in their order. @param {readonly Transition[]} transitions */
export function statesPage(transitions) {
  const rows = transitions.map(({ from, to, by }) => [
    from === 'none' ? '–' : `\`${from}\``,
    `\`${to}\``,
    cell(by),
  ])
  return `${head}\n${drawing(transitions)}\n${table([['from', 'to', 'by'], ...rows])}${tail}`
}

/** Each arrow with the first words of what makes it. @param {readonly Transition[]} transitions */
function drawing(transitions) {
  const arrows = transitions.map(({ from, to, by }) => {
    const [first = ''] = by.split(/[;:]/)
    return `  ${from === 'none' ? '[*]' : from} --> ${to}: ${first}`
  })
  return ['```mermaid', 'stateDiagram-v2', ...arrows, '```', ''].join('\n')
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const built = new URL('../dist/contract/states.js', import.meta.url).href
  const { transitions } = await import(built)
  writeFileSync(new URL('../docs/states.md', import.meta.url), statesPage(transitions))
}
