// @ts-check
// The figures of a campaign in words, with what they allow to say.
import { numberOf, tableOf } from '../../bench/page/words.mjs'

/** @typedef {import('../campaign/file.mjs').Result} Campaign */

/** Where nothing was seen in N tries, its rate is below this many in N, with 95 % confidence. */
const ruleOfThree = 3

/** @param {Campaign} campaign */
export function figuresOf(campaign) {
  return [whatItWas(campaign), table(campaign), boundOf(campaign)].join('\n\n')
}

/** @param {Campaign} campaign */
function whatItWas({
  at,
  complete,
  version,
  builds,
  machine,
  seeds,
  seconds,
  atOnce,
  rate,
  fanOut,
  totals,
  records,
}) {
  const { cores, cpu, kernel, memoryGiB, node, server, fileSystem } = machine
  const done = complete
    ? `${seeds} seeds`
    : `${totals.seeds} of ${seeds} seeds (it was ended before the rest)`
  const build = builds.length === 1 ? `build ${builds[0]}` : `builds ${builds.join(', ')}`
  return (
    `${done} of ${seconds} seconds under load, ${atOnce} at once, on ${at.slice(0, 10)}: Holdfast ${version} (${build}), ` +
    `Node ${node}, ${server}, Linux ${kernel}, ${cores} cores (${cpu}), ${memoryGiB} GiB, ${fileSystem}. Each producer tried ${rate} messages a second, ` +
    `each to up to ${fanOut} recipients. Every seed has four faults of the list below; half of the seeds cut the server's power besides, and in a quarter of them the nodes have no probe. ${loadsOf(records)}`
  )
}

/** The load of the machine as seeds began: what is much above its cores was other work. @param {Campaign['records']} records */
function loadsOf(records) {
  const loads = records.map(({ load }) => load)
  if (loads.length === 0) return ''
  return `The load of the machine was ${Math.min(...loads)} to ${Math.max(...loads)} when seeds began.`
}

/** @param {Campaign} campaign */
function table({ totals }) {
  const { seeds, green, red, inconclusive, repeated, messages, deliveries, lost, twice, unknown, explained } =
    totals
  /** @type {[string, number][]} */
  const rows = [
    ['seeds', seeds],
    ['green', green],
    ['red', red],
    ['inconclusive', inconclusive],
    ['run again alone, for they could not be judged', repeated],
    ['faults made', totals.faults],
    ['of these power cuts of the server', totals.powerCuts],
    ['of these power cuts under mirrors', totals.mirrorPowerCuts],
    ['messages acknowledged', messages],
    ['deliveries acknowledged', deliveries],
    ['lost', lost],
    ['executed twice', twice],
    [
      'unknown at the end: left open on nodes without a probe, or set aside (`history_lost`) after a promotion',
      unknown,
    ],
    ['of these without a cause', unknown - explained],
  ]
  return tableOf(
    ['', 'in all:'],
    rows.map(([what, value]) => [what, numberOf(value)]),
  )
}

/** @param {Campaign} campaign */
function boundOf({ totals: { deliveries, lost, twice, powerCuts } }) {
  if (deliveries === 0) return 'Nothing was acknowledged, so these figures say nothing.'
  if (lost + twice > 0) return 'What was lost or executed twice is under "Seeds that were not green at once".'
  const rate = (ruleOfThree / deliveries).toExponential(1)
  const cuts =
    powerCuts === 0
      ? ''
      : `, and below ${ruleOfThree} in ${numberOf(powerCuts)} for a power cut to lose something`
  return (
    `A delivery counts as acknowledged when the accept of its message was answered. No loss and no double execution in ${numberOf(deliveries)} of them says that the rate of either ` +
    `is below ${ruleOfThree} in ${numberOf(deliveries)} (${rate}) with 95 % confidence${cuts}: for these faults, on this machine, if deliveries fail independently. It is no proof that there is none.`
  )
}
