// @ts-check
// docs/benchmarks.md from the template beside this file and the figures of a report.
import { sectionOf } from './section.mjs'
import { targetsOf } from './targets.mjs'
import { numberOf, tableOf } from './words.mjs'

/** @typedef {import('./section.mjs').Figures} Figures */
/** @typedef {Record<string, Figures>} Report */

/**
 * `<!-- figures: ITEM -->` in the template becomes the figures of that item, `<!-- figures: others -->` a section
 * for each item it does not name, `<!-- targets -->` the table of all targets.
 * @param {string} template @param {Report} report
 */
export function pageOf(template, report) {
  const named = [...template.matchAll(/<!-- figures: ([\w-]+) -->/g)].map(([, name = '']) => name)
  const others = Object.entries(report).filter(([name]) => !named.includes(name))
  const sections = others.map(
    ([name, item]) => `## \`${name}\`\n\n${item.title}.\n\n${sectionOf(name, item)}`,
  )
  return template
    .replace('<!-- targets -->', () => targetTable(report))
    .replaceAll(/<!-- figures: ([\w-]+) -->/g, (_, name) => {
      if (name === 'others') return sections.join('\n\n')
      const item = report[name]
      return item === undefined ? 'Not measured yet.' : sectionOf(name, item)
    })
    .replaceAll(/\n{3,}/g, '\n\n')
    .replace(/\s*$/, '\n')
}

/** @param {Report} report */
function targetTable(report) {
  const rows = Object.entries(report).flatMap(([name, item]) =>
    targetsOf(item).map(({ what, value, bound, met }) => [
      `\`${name}\``,
      what,
      numberOf(value),
      bound,
      met ? 'met' : 'missed',
    ]),
  )
  return tableOf(['item', 'figure', 'value:', 'target', ''], rows)
}
