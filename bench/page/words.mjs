// @ts-check
// Figures in words, and tables of them as the formatter wants them.

/** @param {number} value */
export const numberOf = (value) => value.toLocaleString('en-US', { maximumFractionDigits: 3 })

/**
 * A table; columns whose heading ends with `:` hold figures, and stand to the right.
 * @param {readonly string[]} head @param {readonly (readonly string[])[]} rows
 */
export function tableOf(head, rows) {
  const figures = head.map((heading) => heading.endsWith(':'))
  const lines = [head.map((heading) => heading.replace(/:$/, '')), ...rows].map((line) => line.map(cell))
  const widths = head.map((_, at) => Math.max(3, ...lines.map((line) => line[at]?.length ?? 0)))
  const padded = lines.map((line) =>
    line.map((text, at) =>
      figures[at] === true ? text.padStart(widths[at] ?? 0) : text.padEnd(widths[at] ?? 0),
    ),
  )
  const rule = widths.map((width, at) =>
    figures[at] === true ? `${'-'.repeat(width - 1)}:` : '-'.repeat(width),
  )
  return [padded[0] ?? [], rule, ...padded.slice(1)].map((line) => `| ${line.join(' | ')} |`).join('\n')
}

/** Text that breaks no row. @param {string} text */
const cell = (text) => text.replaceAll('|', '\\|').replaceAll('\n', ' ')
