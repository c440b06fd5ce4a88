// @ts-check
// docs/reliability.md from the template beside this file, the scenarios, and the results of campaign and mutants.
import { numberOf, tableOf } from '../../bench/page/words.mjs'
import { replayOf } from '../campaign/words.mjs'
import { figuresOf } from './figures.mjs'

/** @typedef {import('../campaign/file.mjs').Result} Campaign */
/** @typedef {import('../mutants/result.mjs').Result} MutantResult */
/** @typedef {{ at: string, right: number, of: number, mutants: MutantResult[] }} Mutants */
/** What torture/mirror-power.mjs tells. @typedef {{ at: string, cuts: number, whileOpening: number, acknowledged: number, compared: number, lost: number, returned: number, wrong: number, torn: number, corrupt: number }} MirrorPower */
/** What the page is made of; `undefined` where it was not made yet. @typedef {{ campaign: Campaign | undefined, mutants: Mutants | undefined, mirrorPower: MirrorPower | undefined, groups: readonly import('./scenarios.mjs').Group[], faultFiles?: readonly string[] }} Sources `faultFiles`: the faults of torture/faults */

const notYet = 'Not run yet.'

/** @param {string} template @param {Sources} sources */
export function pageOf(template, { campaign, mutants, mirrorPower, groups, faultFiles = [] }) {
  const parts = {
    figures: campaign === undefined ? notYet : figuresOf(campaign),
    faults: campaign === undefined ? notYet : faultTable(campaign, faultFiles),
    reds: campaign === undefined ? notYet : redsOf(campaign),
    replay: campaign === undefined ? '' : exampleOf(campaign),
    mutants: mutants === undefined ? '' : mutantTable(mutants),
    mirrors: mirrorPower === undefined ? '' : mirrorsOf(mirrorPower),
    scenarios: groups.map(sectionOf).join('\n\n'),
  }
  let page = template
  for (const [name, text] of Object.entries(parts)) page = page.replace(`<!-- ${name} -->`, () => text)
  return page.replaceAll(/\n{3,}/g, '\n\n').replace(/\s*$/, '\n')
}

/** @param {Campaign} campaign @param {readonly string[]} files */
function faultTable({ faults, notCounted, leftOut }, files) {
  const rows = Object.entries(faults).map(([name, { runs, struck, deliveries, lost, twice, unknown }]) => [
    `\`${name}\``,
    ...[runs, struck, deliveries, lost, twice, unknown].map(numberOf),
  ])
  const table = tableOf(
    ['fault', 'runs:', 'struck:', 'acknowledged:', 'lost:', 'executed twice:', 'unknown:'],
    rows,
  )
  const apart = `Not counted, for they take away what was acknowledged before anything of Holdfast sees it: ${notCounted.map((name) => `\`${name}\``).join(', ')}.`
  const later = files.filter((name) => !(name in faults) && !(name in leftOut) && !notCounted.includes(name))
  const since = `Added after this campaign, and not in it: ${later.map((name) => `\`${name}\``).join(', ')}.`
  const missing = Object.entries(leftOut).map(([name, why]) => `- without \`${name}\`: ${why}`)
  return [
    table,
    apart,
    ...(later.length === 0 ? [] : [since]),
    ...(missing.length === 0 ? [] : [missing.join('\n')]),
  ].join('\n\n')
}

/** @param {Campaign} campaign */
function redsOf({ records, ...plan }) {
  const told = records.filter(({ kind, repeated }) => kind !== 'green' || repeated !== undefined)
  if (told.length === 0) return 'None.'
  const rows = told.map((record) => [
    record.seed,
    record.kind,
    record.repeated === undefined ? (record.why ?? '') : `${record.repeated} (at first)`,
    record.repeated === undefined
      ? record.kind === 'inconclusive'
        ? 'not yet'
        : ''
      : (record.why ?? 'green'),
    `\`${commandOf(record, plan)}\``,
  ])
  const words =
    'A run that could not be judged, mostly for slowness (nothing lost, nothing run twice), was run once more, alone; what was so again counts as red.'
  return `${words}\n\n${tableOf(['seed', 'result', 'why', 'alone', 'again'], rows)}`
}

/** @param {Campaign} campaign */
function exampleOf({ records, ...plan }) {
  const [record] = records
  if (record === undefined) return ''
  const command = commandOf(record, plan)
  return `Its first seed alone:\n\n\`\`\`sh\n${command}\n\`\`\``
}

/** @param {import('../campaign/hands.mjs').Hand} hand @param {import('../campaign/file.mjs').Plan} plan */
function commandOf({ seed, faults, probe }, { seconds, rate, fanOut }) {
  return replayOf({ seed, faults, probe }, { seconds, rate, fanOut, build: '', folder: '' })
}

/** @param {Mutants} mutants */
function mutantTable({ at, right, of, mutants }) {
  const rows = mutants.map(({ broken, isControl, ok, by, fault, under, seed }) => [
    broken,
    isControl ? (ok ? 'green' : 'not green') : ok ? 'caught' : 'not caught',
    by.map(({ invariant }) => invariant).join(', '),
    `\`${fault || under.join('`, `')}\``,
    seed,
  ])
  const head = `The last round, of ${at.slice(0, 10)}: ${right} of ${of} as they should be. \`by\`: what was missed; \`fault\`: the last one before it was.`
  return `${head}\n\n${tableOf(['what was taken out', 'result', 'by', 'fault', 'seed'], rows)}`
}

/** @param {MirrorPower} figures */
function mirrorsOf({ at, cuts, whileOpening, acknowledged, compared, lost, returned, wrong, torn, corrupt }) {
  const [cutsMade, acks, rows] = [cuts, acknowledged, compared].map(numberOf)
  return (
    `The last round, of ${at.slice(0, 10)}: ${cutsMade} cuts (${whileOpening} while the mirror was being opened), ${acks} writes acknowledged, ` +
    `${rows} rows compared; ${lost} lost, ${returned} back that were dropped, ${wrong} wrong, ${torn} torn, ${corrupt} damaged files.`
  )
}

/** @param {import('./scenarios.mjs').Group} group */
function sectionOf({ title, scenarios }) {
  const rows = scenarios.map(({ what, tests, faults, note }) => [
    note === undefined ? what : `${what} (${note})`,
    byFile(tests),
    faults.map((name) => `\`${name}\``).join(', '),
  ])
  return `### ${title}\n\n${tableOf(['what happens', 'tests', 'faults'], rows)}`
}

/** @param {readonly import('./scenarios.mjs').NamedTest[]} tests */
function byFile(tests) {
  const files = [...new Set(tests.map(({ file }) => file))]
  return files
    .map((file) => {
      const names = tests.filter((each) => each.file === file).map(({ name }) => `“${name}”`)
      return `\`${file}\`: ${names.join(', ')}`
    })
    .join('; ')
}
