import { expect, test } from 'vitest'
import { exampleMs, printedBy, runExample } from './run-example.js'

test(
  'shell commands on three hosts: each order begins at most once, and what nobody knows is listed',
  async () => {
    const { code, output, lines, left } = await runExample('host-commands/host-commands.sh')
    expect(lines, output).toEqual(printedBy('host-commands'))
    expect(output).toMatch(
      /^\S+\.1 +delivered +web-1 .* [2-9] +done\n\S+\.2 +queued +web-2 .* 0 +parked by pause:host:web-2\n\S+\.3 +delivered +web-3 .* 1 +terminal$/m,
    )
    expect(output).toMatch(
      /^\S+\.1 +failed +web-1 +experiments +0 +0 +blocked block:conversation:experiments$/m,
    )
    expect(output).toMatch(/^\S+\.1 .* unknown: exit_1\n\S+\.2 .* done$/m)
    expect(output).toMatch(/^\S+\.1\/1 .* web-1 +web-1\/web-1 +exit_1$/m)
    expect(lines.at(-1)).toBe('orders begun: 4, begun twice: 0')
    expect(code).toBe(0)
    expect(left).toEqual([])
  },
  exampleMs,
)
