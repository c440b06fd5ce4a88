import { expect } from 'vitest'
import { isDeliveryState, transitions } from '../../src/contract/states.js'
import type { Picture, Row } from './picture.js'

const known = new Set(transitions.map(({ from, to }) => `${from} > ${to}`))

/** What a run has seen so far, for the rules that speak of time. */
export interface History {
  /** I5, on what a step changed. */
  check(before: Picture | undefined, after: Picture): void
  /** I2: an execution was allowed. */
  begun(delivery: string, attempt: number): void
}

export function newHistory(seen: Set<string>): History {
  const settled = new Map<string, string>()
  const open = new Map<string, number>()

  function checkAttempts(id: string, row: Row): void {
    for (let number = 1; number <= Number(row['attempts'] ?? 0); number += 1) {
      const field = (name: string) => row[`attempt_${number}_${name}`]
      const status = field('status') ?? ''
      const attempt = `${id}/${number}`
      const said = JSON.stringify([status, field('outcome'), field('result'), field('error_code')])
      const first = settled.get(attempt)
      if (first !== undefined && first !== said) expect(said, `I5, I6: the outcome of ${attempt}`).toBe(first)
      if (status === 'executing') continue
      settled.set(attempt, said)
      if (open.get(id) === number && status === 'not_sent') open.delete(id)
    }
  }

  return {
    begun(delivery, attempt) {
      expect(open.get(delivery) ?? attempt, `I2: ${delivery} begins while an attempt is open`).toBe(attempt)
      open.set(delivery, attempt)
    },
    check(before, after) {
      for (const [, fields] of after.log) {
        let from = ''
        for (let at = 0; at < fields.length; at += 2) {
          const word = fields[at + 1] ?? ''
          if (fields[at] === 'from') from = word
          if (fields[at] !== 'to' || !isDeliveryState(from) || !isDeliveryState(word)) continue
          seen.add(`${from} > ${word}`)
          if (!known.has(`${from} > ${word}`))
            expect(`${from} > ${word}`, 'I5: a transition').toBe('in the table')
        }
      }
      for (const [id, row] of after.deliveries) {
        checkAttempts(id, row)
        const earlier = before?.deliveries.get(id)
        if (earlier === undefined) continue
        const grown = Number(row['epoch']) - Number(earlier['epoch'])
        expect(grown, `I5: the epoch of ${id}`).toBeGreaterThanOrEqual(0)
        if (earlier['owner'] !== row['owner'] || earlier['incarnation'] !== row['incarnation']) {
          expect(grown, `I5: ${id} changed its owner under one epoch`).toBeGreaterThan(0)
        }
      }
    },
  }
}
