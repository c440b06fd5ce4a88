import type { BulkFilter, OperatorAct } from '../../contract/hub.js'
import { plural } from '../format.js'
import { askBulk } from './bulk.js'

/** What may be done with deliveries of a state. */
const fitting: Readonly<Record<string, readonly OperatorAct[]>> = {
  held: ['release', 'reject', 'cancel'],
  unknown: [],
}
const idle: readonly OperatorAct[] = ['hold', 'cancel']
const every: readonly OperatorAct[] = ['release', 'reject', 'hold', 'cancel']
const labels: Readonly<Record<OperatorAct, string>> = {
  release: 'Release',
  reject: 'Reject',
  hold: 'Hold',
  cancel: 'Cancel',
}

interface MarkedActsProps {
  readonly marked: ReadonlySet<string>
  readonly clear: () => void
  readonly matching?: BulkFilter | undefined
}

/** Acts on the marked rows, and on everything that the filters name. */
export function MarkedActs({ marked, clear, matching }: MarkedActsProps) {
  const ids = [...marked]
  const acts = matching === undefined ? every : (fitting[matching.state] ?? idle)
  if (ids.length === 0 && (matching === undefined || acts.length === 0)) return null
  return (
    <div class="marked-acts">
      {ids.length > 0 ? (
        <fieldset>
          <legend>{plural(ids.length, 'delivery', 'deliveries')} marked</legend>
          {acts.map((act) => (
            <button key={act} type="button" onClick={() => askBulk(act, { kind: 'marked', ids })}>
              {labels[act]}
            </button>
          ))}
          <button type="button" class="quiet" onClick={clear}>
            Unmark
          </button>
        </fieldset>
      ) : (
        matching !== undefined && (
          <fieldset>
            <legend>All that match</legend>
            {acts.map((act) => (
              <button
                key={act}
                type="button"
                onClick={() => askBulk(act, { kind: 'matching', filter: matching })}
              >
                {labels[act]} all …
              </button>
            ))}
          </fieldset>
        )
      )}
    </div>
  )
}
