import { Session } from 'node:inspector'
import type { Server } from 'node:net'

/** So many connections at a time are a crowd. */
const crowd = 1000
const lookEveryMs = 1000

/**
 * Gives memory back when a crowd of connections has gone: V8 would keep what they left until it needs the room,
 * which may be never. Answers a function that ends this.
 */
export function watchCrowds(server: Server): () => void {
  let most = 0
  const timer = setInterval(() => {
    server.getConnections((_, open = 0) => {
      most = Math.max(most, open)
      if (most < crowd || open > most / 10) return
      most = open
      collectGarbage()
    })
  }, lookEveryMs).unref()
  return () => clearInterval(timer)
}

/** Kept: to disconnect while V8 answers would wait for that answer for ever. */
let session: Session | undefined

/** The one way to ask without a flag at the start; it gives back more than `gc()` does. */
function collectGarbage(): void {
  if (session === undefined) {
    session = new Session()
    session.connect()
  }
  session.post('HeapProfiler.collectGarbage')
}
