/**
 * Pages in the text format of Prometheus as one: each metric is named once, with the figures of all pages. Which hub
 * a figure is of stands in its labels.
 */
export function onePage(pages: readonly string[]): string {
  const found = new Map<string, { readonly head: string; readonly figures: string[] }>()
  for (const block of pages.flatMap((page) => page.split(/^(?=# HELP )/m))) {
    const lines = block.split('\n').filter((line) => line !== '')
    const head = lines.filter((line) => line.startsWith('# ')).join('\n')
    const known = found.get(head) ?? { head, figures: [] }
    known.figures.push(...lines.filter((line) => !line.startsWith('# ')))
    found.set(head, known)
  }
  return [...found.values()].map(({ head, figures }) => `${[head, ...figures].join('\n')}\n`).join('\n')
}
