import { pino } from 'pino'
import { startServer } from '../http/server.js'
import { sweepsOnDemand } from '../sweeps/on-demand.js'

/** The hub of a record over HTTP, on a free port of loopback. */
export async function openTestServer(
  redis: string,
  hub: string,
): Promise<{ readonly url: string; close(): Promise<void> }> {
  const { url, close } = await startServer({
    redis,
    hub,
    listen: { host: '127.0.0.1', port: 0 },
    sweeps: sweepsOnDemand,
    log: pino({ level: 'silent' }),
    // A test and its server share one event loop, which may be busy.
    limits: { lagMs: 0 },
  })
  return { url, close }
}
