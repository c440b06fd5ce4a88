import { until } from '../support/until.js'
import { createTroop, type Member } from './processes.js'

/** A primary with replicas under three Sentinels, all real processes on loopback. */
export interface TestSentinels {
  readonly url: string
  readonly servers: readonly Member[]
  readonly sentinels: readonly Member[]
  /** The primary as the Sentinels say now. */
  primary(): Promise<Member>
  replicas(): Promise<readonly Member[]>
  /** Every replica follows the primary, and is in step with it. */
  whenInStep(): Promise<void>
  /**
   * A planned switch as docs/failover.md has it: writes are paused, the replicas catch up, the Sentinels switch. Resolves
   * when the new primary takes writes.
   */
  failOver(): Promise<Member>
  /** From now on the replicas get nothing more of what the primary does, until they are continued. */
  cutReplicas(): Promise<void>
  /** Resolves when the Sentinels name another primary than this one, and it takes writes. */
  whenReplaced(old: Member): Promise<Member>
  end(): Promise<void>
}

const name = 'holdfast'
const withinMs = 40_000

export async function startSentinels(
  replicas = 2,
  settings: Readonly<Record<string, string | number>> = {},
): Promise<TestSentinels> {
  const troop = createTroop()
  const first = await troop.server(settings)
  const servers = [first]
  const sentinels: Member[] = []
  try {
    await first.start()
    for (let made = 0; made < replicas; made += 1) {
      servers.push(await troop.server({ ...settings, replicaof: `127.0.0.1 ${first.port}` }))
    }
    await Promise.all(servers.slice(1).map((server) => server.start()))
    for (let made = 0; made < 3; made += 1) {
      sentinels.push(
        await troop.sentinel([
          `sentinel monitor ${name} 127.0.0.1 ${first.port} 2`,
          `sentinel down-after-milliseconds ${name} 1000`,
          `sentinel failover-timeout ${name} 2000`,
          `sentinel parallel-syncs ${name} 2`,
        ]),
      )
    }
    await Promise.all(sentinels.map((sentinel) => sentinel.start()))
    await whenInStep()
    await until(
      async () => {
        const seen = await Promise.all(sentinels.map((sentinel) => sentinel.call('SENTINEL', 'MASTER', name)))
        return seen.every((reply) => {
          const fields = reply as string[]
          const at = (field: string) => Number(fields[fields.indexOf(field) + 1])
          return at('num-other-sentinels') === 2 && at('num-slaves') === replicas
        })
      },
      { timeoutMs: withinMs, what: 'the Sentinels knowing each other and the replicas' },
    )
  } catch (error) {
    await troop.end()
    throw error
  }

  async function primary(): Promise<Member> {
    for (const sentinel of sentinels) {
      const reply = await sentinel.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name).catch(() => undefined)
      const found = servers.find(({ port }) => port === Number((reply as string[] | undefined)?.[1]))
      if (found !== undefined) return found
    }
    throw new Error('no Sentinel names a primary')
  }
  async function whenInStep(): Promise<void> {
    await until(
      async () => {
        const others = (
          await Promise.all(servers.map((server) => server.info('replication').catch(() => undefined)))
        ).filter((info) => info !== undefined)
        const main = others.find((info) => info.get('role') === 'master')
        const lagging = others.filter(
          (info) => info.get('role') === 'slave' && info.get('master_link_status') !== 'up',
        )
        return lagging.length === 0 && Number(main?.get('connected_slaves')) === others.length - 1
      },
      { timeoutMs: withinMs, what: 'the replicas being in step' },
    )
  }
  async function whenReplaced(old: Member): Promise<Member> {
    return await until(
      async () => {
        const now = await primary()
        if (now === old) return undefined
        return (await now.info('replication')).get('role') === 'master' ? now : undefined
      },
      { timeoutMs: withinMs, what: 'another primary' },
    )
  }

  return {
    url: `redis-sentinel://${sentinels.map(({ port }) => `127.0.0.1:${port}`).join(',')}/${name}`,
    servers,
    sentinels,
    primary,
    replicas: async () => {
      const main = await primary()
      return servers.filter((server) => server !== main)
    },
    whenInStep,
    cutReplicas: async () => {
      const main = await primary()
      for (const server of servers) if (server !== main) server.signal('SIGSTOP')
      // What is in the socket of a stopped process would still reach it.
      await main.call('CLIENT', 'KILL', 'TYPE', 'REPLICA')
    },
    whenReplaced,
    failOver: async () => {
      const old = await primary()
      await old.call('CLIENT', 'PAUSE', 20_000, 'WRITE')
      await whenInStep()
      await until(
        async () => {
          const info = await old.info('replication')
          const offset = info.get('master_repl_offset')
          return [...info].every(
            ([name, value]) => !/^slave\d+$/.test(name) || value.includes(`offset=${offset},`),
          )
        },
        { timeoutMs: withinMs, what: 'the replicas having everything' },
      )
      await until(async () => (await sentinels[0]?.call('SENTINEL', 'FAILOVER', name)) === 'OK', {
        timeoutMs: withinMs,
        what: 'the Sentinels taking the switch on',
      })
      const next = await whenReplaced(old)
      // Not before it knows: what waits there would be done by it, and lost.
      await until(async () => (await old.info('replication')).get('role') === 'slave', {
        timeoutMs: withinMs,
        what: 'the old primary being a replica',
      })
      await old.call('CLIENT', 'UNPAUSE')
      return next
    },
    end: () => troop.end(),
  }
}
