import { expect, test } from 'vitest'
import { exampleMs, printedBy, runExample } from './run-example.js'

test(
  'webhooks that are busy, gone, cut off and asked twice: every receiver did its work once',
  async () => {
    const { code, output, lines, left } = await runExample('webhook-fan-out/webhook-fan-out.mjs')
    expect(lines, output).toEqual(printedBy('webhook-fan-out'))
    expect(output).toMatch(/^ {2}ledger: not_sent http_503, result \(asked 2 times, worked once\)$/m)
    expect(output).toMatch(/^ {2}archive: terminal http_410 \(asked once, worked never\)$/m)
    expect(output).toMatch(
      /^unknown: (\S+\/1) on mail \(cut\)\nresolved by kim: the log of mail has the key \1$/m,
    )
    expect(output).toMatch(/^ {2}idempotency-key: \S+\.1\/2\n {2}holdfast-attempt: \S+\.1\/2$/m)
    expect(lines.at(-1)).toBe('lost 0, done twice 0')
    expect(code).toBe(0)
    expect(left).toEqual([])
  },
  exampleMs,
)
