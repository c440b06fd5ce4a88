import { expect, test } from 'vitest'
import { exampleMs, printedBy, runExample } from './run-example.js'

test(
  'a payment service that is killed after a charge: no order is charged twice',
  async () => {
    const { code, output, lines, left } = await runExample('payments/payments.mjs')
    expect(lines, output).toEqual(printedBy('payments'))
    expect(output).toMatch(/^order-1 for another amount: 409 \{"error":"PAYLOAD_MISMATCH"\}$/m)
    expect(output.match(/order-2\/charge .*: declined/g)).toHaveLength(1)
    expect(output).toMatch(
      /order-3\/charge epoch 1: charged 300\n.*order-3\/charge epoch 2: asked about, 201$/m,
    )
    expect(output).toMatch(/asked about, 404\n.*epoch 1: refused\n.*order-4\/charge epoch 2: charged 400$/m)
    expect(lines.at(-1)).toBe('charged: order-1 1, order-2 0, order-3 1, order-4 1')
    expect(code).toBe(0)
    expect(left).toEqual([])
  },
  exampleMs,
)
