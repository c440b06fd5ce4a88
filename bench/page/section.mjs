// @ts-check
// The figures of one item: its chart, what was measured, tables, notes, and where it was measured.
import { chartOf } from './chart.mjs'
import { ratioName, targetsOf } from './targets.mjs'
import { numberOf, tableOf } from './words.mjs'

/** @typedef {import('../figures.mjs').Spread} Spread */
/** @typedef {import('../handoff/inspector.mjs').FunctionTime} FunctionTime */
/** @typedef {import('../handoff/profile.mjs').PlaceTime} PlaceTime */
/**
 * A system: its figures, a label, and beside them further spreads, single figures, and `fsync`.
 * @typedef {Spread & { label: string, [more: string]: any }} System
 */
/**
 * What the page shows of an item of the report.
 * @typedef {object} Figures
 * @property {string} title
 * @property {string} unit
 * @property {string} at
 * @property {boolean} quick
 * @property {Record<string, any>} machine
 * @property {number} rounds
 * @property {number} [messages]
 * @property {Record<string, System>} systems
 * @property {Record<string, string>} [skipped] why a system is not among them
 * @property {string} [subject] the system whose ratios to the others are given
 * @property {Record<string, number>} [ratios]
 * @property {Record<string, number>} [functionsRatios]
 * @property {import('./targets.mjs').Targets} [targets]
 * @property {string[]} [notes]
 * @property {Record<string, FunctionTime[]>} [serverTime]
 * @property {Record<string, PlaceTime[]>} [nodeTime]
 */

/** Ours, which a chart brings out. */
const own = ['holdfast', 'functions']
/** Headings of what stands beside a system's figures; other names stand as they are. @type {Record<string, string>} */
const headings = {
  accept: 'accept',
  nodeCpuUsPerMessage: 'CPU of Node, µs a message',
  serverCpuUsPerMessage: 'CPU of the server, µs a message',
  claimsPerDelivery: 'claims per delivery',
}

/** @param {string} name @param {Figures} item */
export function sectionOf(name, item) {
  const parts = [
    `![${item.title}, as bars](benchmarks/${name}.svg)`,
    systemTable(item),
    figureTable(item),
    ratioTable(item),
    ...timeTables(item),
    [...(item.notes ?? []), ...skippedOf(item)].map((note) => `- ${note}`).join('\n'),
    measuredAt(item),
  ]
  return parts.filter((part) => part !== '').join('\n\n')
}

/** @param {string} name @param {Figures} item */
export const svgOf = (name, { title, unit, systems }) => chartOf({ name, title, unit, systems, own })

/** @param {Figures} item */
function systemTable({ systems }) {
  const each = Object.entries(systems)
  const synced = each.some(([, { fsync }]) => fsync !== undefined)
  const rows = each.map(([name, { label, fsync = '' }]) => [
    `\`${name}\``,
    label,
    ...(synced ? [String(fsync)] : []),
  ])
  return tableOf(['system', 'what', ...(synced ? ['fsync'] : [])], rows)
}

/** @param {Figures} item */
function figureTable({ systems, unit }) {
  const each = Object.entries(systems)
  const more = [...new Set(each.flatMap(([, system]) => Object.keys(system).filter(isFurther(system))))]
  const head = ['', 'median:', 'min:', 'max:', ...more.map((key) => `${headings[key] ?? key}:`)]
  const rows = each.map(([name, system]) => [
    `\`${name}\``,
    ...[system.median, system.min, system.max].map(numberOf),
    ...more.map((key) => figureOf(system[key])),
  ])
  const words = more.length === 0 ? unit : `${unit}; further columns are medians`
  return `In ${words}:\n\n${tableOf(head, rows)}`
}

/** @param {System} system */
function isFurther(system) {
  return (/** @type {string} */ key) =>
    !['median', 'min', 'max'].includes(key) && figureOf(system[key]) !== ''
}

/** @param {unknown} value a figure, or a spread */
function figureOf(value) {
  if (typeof value === 'number') return numberOf(value)
  if (typeof value !== 'object' || value === null || !('median' in value)) return ''
  return typeof value.median === 'number' ? numberOf(value.median) : ''
}

/** @param {Figures} item */
function ratioTable(item) {
  const { ratios = {}, functionsRatios = {}, subject } = item
  const judged = targetsOf(item)
  const target = (/** @type {string} */ name) => {
    const found = judged.find((each) => each.name === name)
    return found === undefined ? ['', ''] : [found.bound, found.met ? 'met' : 'missed']
  }
  const rows = [
    ...Object.entries(ratios).map(([name, value]) => [
      ratioName(name, ratios, subject),
      numberOf(value),
      ...target(name),
    ]),
    ...Object.entries(functionsRatios).map(([name, value]) => [
      ratioName(name, functionsRatios, 'functions'),
      numberOf(value),
      '',
      '',
    ]),
    ...judged
      .filter(({ name }) => ratios[name] === undefined)
      .map(({ what, value, name }) => [what, numberOf(value), ...target(name)]),
  ]
  return rows.length === 0 ? '' : tableOf(['ratio', 'value:', 'target', ''], rows)
}

/** @param {Figures} item */
function timeTables({ serverTime = {}, nodeTime = {} }) {
  const server = Object.entries(serverTime).map(([system, times]) => {
    const rows = times.map(({ name, calls, usPerCall, usPerMessage }) => [
      `\`${name}\``,
      ...[calls, usPerCall, usPerMessage].map(numberOf),
    ])
    return tableOf([`in Redis, \`${system}\``, 'calls:', 'µs a call:', 'µs a message:'], rows)
  })
  const node = Object.entries(nodeTime).map(([system, times]) => {
    const rows = times.map(({ place, share, usPerMessage }) => [
      place,
      `${numberOf(share * 100)} %`,
      numberOf(usPerMessage),
    ])
    return tableOf([`in Node, \`${system}\``, 'share:', 'µs a message:'], rows)
  })
  const all = [...server, ...node]
  return all.length === 0 ? [] : ['Where the time goes:', ...all]
}

/** @param {Figures} item */
function skippedOf({ skipped = {} }) {
  return Object.entries(skipped).map(([name, reason]) => `without \`${name}\`: ${reason}`)
}

/** @param {Figures} item */
function measuredAt({ at, quick, rounds, messages, machine }) {
  const { node, server, cores, cpu, fileSystem, loadAtStart } = machine
  const size = [
    `${rounds} ${rounds === 1 ? 'round' : 'rounds'}`,
    ...(messages === undefined ? [] : [`of ${numberOf(messages)} messages`]),
    ...(quick ? ['(`--quick`)'] : []),
  ].join(' ')
  return `Measured on ${at.slice(0, 10)}: ${size}; Node ${node}, ${server}, ${cores} cores (${cpu}), ${fileSystem}, load ${loadAtStart} at the start.`
}
