import type { Command } from 'commander'
import { z } from 'zod'
import type { FenceReply, HostView, NodeView } from '../contract/host-views.js'
import { livenessOf } from '../contract/liveness.js'
import { settingIn } from '../contract/settings.js'
import { withHub } from './context.js'
import { action, value } from './flags.js'
import { answer, type Cell, fields, hubCell, hubHead, print, printTable, say } from './output.js'
import { whileMeasured, withProgress } from './progress.js'
import { isoTime, shortDuration } from './times.js'

const drainSchema = z.object({ host: value.host })
const retireSchema = z.object({ host: value.host, reason: value.sentence })

/** `holdfast host ls|drain|retire`. */
export function addHost(program: Command): void {
  const host = program.command('host').description('recipient machines')
  addList(host)
  addDrain(host)
  addRetire(host)
}

function addList(host: Command): void {
  host
    .command('ls')
    .description('every host that was ever sent to or joined: its nodes, and what waits for it')
    .action(
      action(z.object({}), async (_, { settings, json }) => {
        const [hosts, staleAfterMs] = await withHub(settings, async (hub) => {
          return [await hub.hosts(), settingIn(await hub.configuration(), 'stale_after_ms')] as const
        })
        answer(json, { hosts }, () => printHosts(hosts, staleAfterMs))
      }),
    )
}

function addDrain(host: Command): void {
  host
    .command('drain')
    .description('pause a host: what runs is finished, nothing new begins; `fence lift pause` ends it')
    .argument('<host>', 'the host')
    .option('--actor <name>', 'who (the OS user)')
    .action(
      action(drainSchema, async ({ host: name }, { settings, json }) => {
        const [set, known] = await withHub(settings, async (hub) => {
          return [await hub.drain(name, settings.actor), await hub.host(name)] as const
        })
        if (known === undefined) {
          say(
            `no host ${name} was ever seen; the pause stands all the same (holdfast host ls shows the hosts)`,
          )
        }
        answer(json, set, printDrained)
      }),
    )
}

function addRetire(host: Command): void {
  host
    .command('retire')
    .description('take a host out for good: its idle deliveries go to the held queue')
    .argument('<host>', 'the host')
    .option('--reason <text>', 'why; kept on the row and in the log')
    .option('--actor <name>', 'who (the OS user)')
    .action(
      action(retireSchema, async ({ host: name, reason }, { settings, json }) => {
        const act = { reason, actor: settings.actor }
        const view = await withHub(settings, async (hub) => {
          await withProgress(`emptying ${name}`, json, (onProgress) =>
            whileMeasured(
              onProgress,
              async () => (await hub.host(name))?.entries ?? 0,
              () => hub.retire(name, act),
            ),
          )
          return await hub.host(name)
        })
        answer(json, view, printRetired)
      }),
    )
}

function printHosts(hosts: readonly HostView[], staleAfterMs: number): void {
  const rows = hosts.map((view): Cell[] => {
    const { host, entries, awaiting, nodes, retiredAt } = view
    return [
      ...hubCell(view),
      host,
      entries,
      awaiting,
      nodes.map((node) => nodeText(node, staleAfterMs)).join(', '),
      noteOf(view),
      retiredAt && isoTime(retiredAt),
    ]
  })
  printTable('hosts', [...hubHead(hosts), 'host', 'queue', 'awaiting', 'nodes', 'note', 'retired'], rows)
}

function nodeText(node: NodeView, staleAfterMs: number): string {
  const liveness = livenessOf(node, staleAfterMs)
  const forHowLong = liveness === 'silent' ? ` for ${shortDuration(node.heartbeatAgeMs)}` : ''
  return `${node.node} ${liveness}${forHowLong}`
}

function noteOf({ joined, retiredAt }: HostView): string | undefined {
  if (retiredAt !== undefined) return 'nothing is handed out'
  return joined ? undefined : 'never joined'
}

function printDrained(set: FenceReply): void {
  print(fields([['stands', set.fence]]))
}

function printRetired(view: HostView | undefined): void {
  print(
    fields([
      ['host', view?.host],
      ['retired', view?.retiredAt && isoTime(view.retiredAt)],
      ['still executing or unsettled', view?.awaiting],
    ]),
  )
}
