import { setImmediate as nextTurn } from 'node:timers/promises'
import type { HoldfastNode, NodeEnd } from './create-node.js'
import type { NodeLog } from './log.js'
import { createMember } from './member.js'
import { memberSettings, type NodeOptions, type NodeSettings } from './node-options.js'
import { createShares } from './share.js'

interface NamedMember {
  readonly hub: string
  readonly node: HoldfastNode
}

/**
 * A node of several hubs: for each a member with a mirror, an incarnation, connections and heartbeats of its own, all of
 * them within one concurrency and one buffer. One that fails ends the node; the others leave.
 */
export function createNodeSet(
  options: NodeOptions,
  settings: NodeSettings,
  hubs: readonly string[],
  log: NodeLog,
): HoldfastNode {
  const shares = createShares(settings, hubs.length)
  const members = hubs.map((hub, at): NamedMember => {
    const share = shares[at]
    return { hub, node: createMember(options, memberSettings(settings, hub), logOf(log, hub), share) }
  })
  let failed: Error | undefined
  let opened: Promise<void> | undefined
  let stopping: Promise<void> | undefined

  function fail(hub: string, error: unknown): void {
    if (stopping !== undefined) return
    failed = error instanceof Error ? error : new Error(String(error))
    log.error({ hub, error: failed.message }, 'the node ends on all of its hubs')
    void stop()
  }

  async function startAll(): Promise<void> {
    const starts: Promise<void>[] = []
    for (const { hub, node } of members) {
      if (stopping !== undefined) break
      const started = node.start()
      started.catch((error: unknown) => fail(hub, error))
      starts.push(started)
      // Opening a mirror holds the event loop; and where one is refused, the next need not be tried.
      await nextTurn()
    }
    await Promise.all(starts)
    if (failed !== undefined) throw failed
  }

  function stop(): Promise<void> {
    stopping ??= Promise.all(members.map(({ node }) => node.stop())).then(() => undefined)
    return stopping
  }

  for (const { hub, node } of members) {
    void node.closed.then((how) => {
      if (how.kind === 'failed') fail(hub, how.error)
    })
  }
  const ends = members.map(async ({ hub, node }) => ({ hub, how: await node.closed }))

  return {
    host: settings.host,
    node: settings.node,
    closed: Promise.all(ends).then((all) =>
      failed === undefined ? endOf(all) : { kind: 'failed', error: failed },
    ),
    start: () => {
      opened ??= startAll()
      return opened
    },
    stop,
  }
}

/** The worst of the ends is the node's. */
function endOf(ends: readonly { readonly hub: string; readonly how: NodeEnd }[]): NodeEnd {
  const failure = ends.find(({ how }) => how.kind === 'failed')
  if (failure !== undefined) return failure.how
  const stopped = ends.flatMap(({ hub, how }) => (how.kind === 'stopped' ? [`${hub}: ${how.why}`] : []))
  return stopped.length === 0 ? { kind: 'left' } : { kind: 'stopped', why: stopped.join('; ') }
}

/** Says which hub it is about. */
function logOf(log: NodeLog, hub: string): NodeLog {
  return {
    debug: (particulars, message) => log.debug({ hub, ...particulars }, message),
    info: (particulars, message) => log.info({ hub, ...particulars }, message),
    warn: (particulars, message) => log.warn({ hub, ...particulars }, message),
    error: (particulars, message) => log.error({ hub, ...particulars }, message),
  }
}
