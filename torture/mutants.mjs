// @ts-check
// npm run torture:mutants -- [--only NAME] [--seed S] [--keep]: shows that runs notice what they are there to notice.
// Each mutant is a broken copy of the built package; it runs under the faults and seeds that are known to catch it.
// The control is a copy with nothing broken, and has to be green. Exit 0 when everything is as it should be. It needs
// the package as it is built now.
import { parseArgs } from 'node:util'
import { brokenText, makeBuild } from './mutants/build.mjs'
import { tryToCatch } from './mutants/campaign.mjs'
import { control, mutants } from './mutants/list.mjs'

/** @typedef {import('./mutants/list.mjs').Mutant} Mutant */
/** @typedef {import('./mutants/campaign.mjs').Catch} Catch */

const { values } = parseArgs({
  options: {
    only: { type: 'string', multiple: true },
    seed: { type: 'string', multiple: true },
    keep: { type: 'boolean', default: false },
  },
})
const known = [control, ...mutants]
const chosen = known.filter(({ name }) => values.only === undefined || values.only.includes(name))
if (chosen.length === 0) {
  console.error(`no mutant is named so; there are: ${known.map(({ name }) => name).join('; ')}`)
  process.exit(2)
}
// None of them is run before all of them are known to apply.
for (const mutant of known) brokenText(mutant)

/** @type {(() => void)[]} */
const undo = []
process.on('exit', () => {
  for (const remove of undo) remove()
})
for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])) {
  process.on(signal, () => {
    console.error(`ended by ${signal}`)
    process.exit(130)
  })
}

let wrong = 0
console.log(['mutant', 'caught', 'seed', 'by', 'fault'].join(' | '))
for (const mutant of chosen) {
  const { seed, found } = await hunt(mutant)
  const isRight = found.kind === wanted(mutant)
  if (!isRight) wrong += 1
  const said = mutant === control ? (isRight ? 'green' : 'NOT GREEN') : isRight ? 'yes' : 'NO'
  console.log([mutant.name, said, seed, found.by.join(', '), found.fault].join(' | '))
  if (found.first !== '') console.error(`  ${found.first}`)
}
console.log(`${chosen.length - wrong} of ${chosen.length} as they should be`)
process.exitCode = wrong === 0 ? 0 : 1

/** @param {Mutant} mutant */
function wanted(mutant) {
  return mutant === control ? 'green' : 'caught'
}

/** Seed after seed, until it is as it should be. @param {Mutant} mutant @returns {Promise<{ seed: string, found: Catch }>} */
async function hunt(mutant) {
  const build = makeBuild(mutant)
  if (values.keep) console.error(`${mutant.name}: ${build.dir}`)
  else undo.push(build.remove)
  /** @type {{ seed: string, found: Catch }} */
  let last = { seed: '', found: { kind: 'broken', by: [], fault: '', first: '' } }
  for (const seed of values.seed ?? mutant.seeds) {
    last = { seed, found: await tryToCatch(build.dir, mutant, seed) }
    if (last.found.kind === wanted(mutant)) break
  }
  if (!values.keep) build.remove()
  return last
}
