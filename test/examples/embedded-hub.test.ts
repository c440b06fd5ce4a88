import { expect, test } from 'vitest'
import { exampleMs, printedBy, runExample } from './run-example.js'

test(
  'a hub within an application: its users have their roles there, and a viewer may not act',
  async () => {
    const { code, output, lines, left } = await runExample('embedded-hub/embedded-hub.mjs')
    expect(lines, output).toEqual(printedBy('embedded-hub'))
    expect(output).toMatch(/^the page, for nobody: 401\nthe page, for kim: 200 Holdfast$/m)
    expect(output).toMatch(/^kim there: 200 operator\nvera there: 200 viewer\ncarl there: 403 FORBIDDEN$/m)
    expect(output.match(/^vera .*: 403 FORBIDDEN$/gm)).toHaveLength(2)
    expect(lines.at(-1)).toBe('shipped 1, 2')
    expect(code).toBe(0)
    expect(left).toEqual([])
  },
  exampleMs,
)
