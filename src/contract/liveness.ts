import type { NodeView } from './host-views.js'

/** What is known of a node: it left, was not heard for `stale_after_ms` (lua/lib/liveness.lua says the same), or lives. */
export type Liveness = 'left' | 'silent' | 'live'

export function livenessOf(
  { state, heartbeatAgeMs }: Pick<NodeView, 'state' | 'heartbeatAgeMs'>,
  staleAfterMs: number,
): Liveness {
  if (state === 'left') return 'left'
  return heartbeatAgeMs >= staleAfterMs ? 'silent' : 'live'
}
