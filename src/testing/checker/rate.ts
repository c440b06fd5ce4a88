// A hub that accepts nothing breaks no promise: it is to accept, and its nodes are to execute.
import { told } from './evidence.js'
import type { Case, RecipientName, Violation } from './words.js'

/** `acknowledged`: keys whose accept was answered; `deliveries`: how many recipients these messages name. */
export function checkRate(file: Case): { acknowledged: number; deliveries: number; violations: Violation[] } {
  const { load, heal, rules } = file
  const recipients = new Map(
    file.accepts
      .filter(({ type, changed }) => type === 'ok' && !changed)
      .map(({ key, to }) => [key, recipientsIn(to)]),
  )
  const inLoad = new Set(
    file.accepts
      .filter(
        ({ type, answer }) =>
          type === 'ok' && answer !== undefined && answer.t >= load.t && answer.t <= heal.t,
      )
      .map(({ key }) => key),
  )
  const seconds = (heal.t - load.t) / 1e9
  const rate = inLoad.size / Math.max(seconds, 0.001)
  const violations: Violation[] = []
  if (rate < rules.leastPerSecond) {
    const text = `${inLoad.size} accepts acknowledged in ${seconds.toFixed(1)} s; at least ${rules.leastPerSecond} a second were to be`
    violations.push({ invariant: 'rate', id: 'accepts', text, evidence: [told(load), told(heal)] })
  }
  const done = file.record.deliveries.some(({ attempts }) => attempts.at(-1)?.status === 'done')
  if (!done) {
    violations.push({
      invariant: 'rate',
      id: 'executions',
      text: 'nothing was executed at all',
      evidence: [told(load)],
    })
  }
  const deliveries = [...recipients.values()].reduce((sum, count) => sum + count, 0)
  return { acknowledged: recipients.size, deliveries, violations }
}

/** Named twice is named once. */
function recipientsIn(to: readonly RecipientName[]): number {
  return new Set(
    to.map(({ host, session }) => `${session === undefined ? 'host' : 'session'} ${session ?? host}`),
  ).size
}
