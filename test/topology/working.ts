import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { HoldfastError, isHoldfastError } from '../../src/contract/errors.js'
import type { RedisAddress } from '../../src/contract/redis-address.js'
import { type Hub, openHub } from '../../src/hub/open-hub.js'
import { createNode, type HoldfastNode } from '../../src/node/create-node.js'
import { until } from '../support/until.js'

/** Producers and nodes at work on one hub, and what they saw of it. */
export interface Work {
  /** Ids of deliveries whose messages were answered for. */
  readonly acknowledged: ReadonlySet<string>
  /** How often each delivery was executed. */
  readonly executions: ReadonlyMap<string, number>
  /** Messages that the hub has named as lost. */
  readonly named: readonly string[]
  /** Resolves when so many more were executed than are now. */
  untilMore(count: number): Promise<void>
  /** Producers accept nothing new; every accept under way is answered or given up. */
  stopProducing(): Promise<void>
  /** Resolves when nothing waits any more; then what became of everything that was acknowledged. */
  finish(): Promise<Verdict>
  close(): Promise<void>
}

/** Ids, by what became of them. `gone`: acknowledged, and not in the record. */
export interface Verdict {
  readonly acknowledged: number
  readonly executed: number
  readonly twice: readonly string[]
  readonly gone: readonly string[]
  readonly unknown: readonly string[]
  /** Acknowledged, still in the record, and neither executed nor in a list that says why. */
  readonly forgotten: readonly string[]
  /** In the record, and neither finished nor in a list. */
  readonly unfinished: readonly string[]
}

const hosts = ['a', 'b']
const producersAtOnce = 4
const settledWithinMs = 60_000

export interface WorkOptions {
  readonly redis: RedisAddress
  readonly hub: string
  /** So long a handler takes, in ms. */
  readonly tookMs?: number
}

/** Two hosts with a node each, and four producers that accept for both. */
export async function startWork({ redis, hub: name, tookMs = 2 }: WorkOptions): Promise<Work> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-work-'))
  const acknowledged = new Set<string>()
  const executions = new Map<string, number>()
  const named: string[] = []
  const onLost = (ids: readonly string[]) => void named.push(...ids)
  const hub: Hub = await openHub({ redis, hub: name, deadlineMs: 30_000, onLost })
  /** What the nodes complained of last: told where something does not come to its end. */
  const complaints: string[] = []
  const complain = (particulars: object, text: string) => {
    complaints.push(`${new Date().toISOString()} ${text} ${JSON.stringify(particulars)}`.slice(0, 300))
    if (complaints.length > 40) complaints.shift()
  }
  const log = { debug: () => undefined, info: complain, warn: complain, error: complain }
  const nodes: HoldfastNode[] = hosts.map((host) =>
    createNode({
      redis,
      hub: name,
      host,
      mirror: join(folder, `${host}.db`),
      log,
      execute: async ({ deliveryId }) => {
        executions.set(deliveryId, (executions.get(deliveryId) ?? 0) + 1)
        await new Promise((resolve) => setTimeout(resolve, tookMs))
        return null
      },
    }),
  )
  await Promise.all(nodes.map((node) => node.start()))
  let isProducing = true
  const producing = Array.from({ length: producersAtOnce }, (_, at) => produce(at))

  async function produce(at: number): Promise<void> {
    for (let made = 1; isProducing; made += 1) {
      const key = `p${at}-${made}`
      try {
        const { deliveries } = await hub.accept({
          key,
          conversation: `c${at}-${made % 5}`,
          sender: 'tests',
          to: hosts.map((host) => ({ host })),
          payload: key,
        })
        for (const { id } of deliveries) acknowledged.add(id)
      } catch (error) {
        // Not answered: nothing was promised.
        if (!(error instanceof HoldfastError)) throw error
      }
    }
  }

  const stopProducing = async () => {
    isProducing = false
    await Promise.all(producing)
  }

  return {
    acknowledged,
    executions,
    named,
    untilMore: async (count) => {
      const before = executions.size
      await until(() => executions.size >= before + count, {
        timeoutMs: settledWithinMs,
        what: `${count} more executions`,
      })
    },
    stopProducing,
    finish: async () => {
      await stopProducing()
      let seen = 'nothing'
      await until(
        async () => {
          seen = JSON.stringify([await hub.counts(), await openOnes(hub)])
          const { queued = 0, claimed = 0, mirrored = 0 } = await hub.counts()
          return queued + claimed + mirrored === 0 && (await openOnes(hub)).length === 0
        },
        { timeoutMs: settledWithinMs, what: 'everything being settled' },
      ).catch((error: Error) => {
        throw new Error(
          `${error.message}; last seen: ${seen.slice(0, 2000)}; the nodes: ${complaints.join('\n')}`,
          { cause: error.cause },
        )
      })
      const unknown = (await hub.unknown()).map(({ id }) => id)
      const listed = new Set(unknown.map((id) => id.split('/')[0] ?? ''))
      const gone: string[] = []
      const forgotten: string[] = []
      for (const id of acknowledged) {
        const isThere = await isKnown(hub, id)
        if (!isThere) gone.push(id)
        else if (!executions.has(id) && !listed.has(id)) forgotten.push(id)
      }
      return {
        acknowledged: acknowledged.size,
        executed: executions.size,
        twice: [...executions].filter(([, times]) => times > 1).map(([id]) => id),
        gone,
        unknown,
        forgotten,
        unfinished: await openOnes(hub),
      }
    },
    close: async () => {
      isProducing = false
      await Promise.all(producing)
      await Promise.all(nodes.map((node) => node.stop()))
      await hub.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function isKnown(hub: Hub, id: string): Promise<boolean> {
  return await until(
    async () => {
      try {
        await hub.delivery(id)
        return 'there'
      } catch (error) {
        if (isHoldfastError(error, 'DELIVERY_NOT_FOUND')) return 'gone'
        throw error
      }
    },
    { what: `the hub answering for ${id}` },
  ).then((found) => found === 'there')
}

/** Deliveries with an attempt that awaits its outcome, and is not listed as unknown. */
async function openOnes(hub: Hub): Promise<string[]> {
  const listed = new Set((await hub.unknown()).map(({ id }) => id))
  const found: string[] = []
  let cursor: string | undefined
  do {
    const page = await hub.deliveries({
      state: 'delivered',
      limit: 500,
      ...(cursor === undefined ? {} : { cursor }),
    })
    for (const { attempts } of page.deliveries) {
      const last = attempts.at(-1)
      if (last?.status === 'executing' && !listed.has(last.id)) found.push(last.id)
    }
    cursor = page.cursor
  } while (cursor !== undefined)
  return found
}
