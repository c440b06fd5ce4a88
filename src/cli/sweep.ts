import type { Command } from 'commander'
import { z } from 'zod'
import { naming } from '../contract/hub-set.js'
import { problems } from '../contract/problems.js'
import type { RedisAddress } from '../contract/redis-address.js'
import { type SweepName, sweepNames } from '../contract/sweeps.js'
import type { AuditView, SweepRunView, SweepView } from '../contract/upkeep-views.js'
import type { Settings } from './config.js'
import { addressOf, hubsOf, isSet, withHub, withRecord } from './context.js'
import { exitCodes } from './failure.js'
import { action } from './flags.js'
import { answer, fields, hubCell, hubHead, print, printTable, say } from './output.js'
import { type OnProgress, withProgress } from './progress.js'
import { shortDuration } from './times.js'

const runSchema = z.object({
  name: z.enum(['all', ...sweepNames], { error: `must be all, ${sweepNames.join(', ')}` }),
})
const head = ['sweep', 'every', 'last success', 'took', 'found', 'repaired', 'left', 'state']

/** `holdfast sweep ls|run` and `holdfast audit`. */
export function addSweep(program: Command): void {
  const sweep = program.command('sweep').description('what puts a hub right without being asked')
  sweep
    .command('ls')
    .description('every sweep and how its last run went; 4 when one is late or failed')
    .action(
      action(z.object({}), async (_, { settings, json }) => {
        const sweeps = await withHub(settings, (hub) => hub.sweeps())
        answer(json, { sweeps }, () => printSweeps(sweeps))
        return sweeps.some(({ late, error }) => late || error !== undefined)
          ? exitCodes.unhealthy
          : exitCodes.ok
      }),
    )
  sweep
    .command('run')
    .description('run one now, or all of them; harmless beside the scheduled ones')
    .argument('<name>', `all, or one of ${sweepNames.join(', ')}`)
    .action(
      action(runSchema, async ({ name }, { settings, json }) => {
        const runs = await withProgress('sweeps', json, (onProgress) => runSweeps(settings, name, onProgress))
        answer(json, { runs }, () => printRuns(runs))
        return runs.some(({ error }) => error !== undefined) ? exitCodes.failed : exitCodes.ok
      }),
    )
  program
    .command('audit')
    .description(
      'compare every row with every index and every count, changing nothing; 1 on any disagreement',
    )
    .action(
      action(z.object({}), async (_, { settings, json }) => {
        const audit = await withHub(settings, (hub) =>
          withProgress('audit', json, (onProgress) => hub.audit(onProgress)),
        )
        answer(json, audit, () => printAudit(audit))
        return audit.disagreements.length > 0 ? exitCodes.failed : exitCodes.ok
      }),
    )
}

/** Through the hub that is named, or here on the record. The course of it is sweeps that ran, of those that will. */
async function runSweeps(
  settings: Settings,
  name: SweepName | 'all',
  onProgress?: OnProgress,
): Promise<SweepRunView[]> {
  const names = name === 'all' ? sweepNames : [name]
  const hubs = hubsOf(settings)
  if (settings.http !== undefined) {
    const { openClient } = await import('../client/open-client.js')
    const client = openClient({ ...addressOf(settings.http), actor: settings.actor, hubs: settings.hubs })
    return await runInTurn(names, client.runSweep, courseOf(names.length, onProgress)).finally(client.close)
  }
  return await withRecord(settings, async ({ redis }) => {
    const onRun = courseOf(names.length * hubs.length, onProgress)
    const runs: SweepRunView[] = []
    for (const hub of hubs) {
      const own = await naming(hub, () => sweepHere(redis, hub, names, onRun))
      runs.push(...own.map((run) => (isSet(settings) ? { ...run, hub } : run)))
    }
    return runs
  })
}

/** One sweep alone has no course that anyone could tell. */
function courseOf(total: number, onProgress: OnProgress | undefined): () => void {
  let done = 0
  const tell = () => {
    if (total > 1) onProgress?.(done, total)
  }
  tell()
  return () => {
    done += 1
    tell()
  }
}

async function runInTurn(
  names: readonly SweepName[],
  run: (name: SweepName) => Promise<readonly SweepRunView[]>,
  onRun: () => void,
): Promise<SweepRunView[]> {
  const runs: SweepRunView[] = []
  for (const name of names) {
    runs.push(...(await run(name)))
    onRun()
  }
  return runs
}

async function sweepHere(
  redis: RedisAddress,
  hub: string,
  names: readonly SweepName[],
  onRun: () => void,
): Promise<SweepRunView[]> {
  const [{ openHubParts }, { sweepsOnDemand }] = await Promise.all([
    import('../hub/open-hub.js'),
    import('../sweeps/on-demand.js'),
  ])
  const parts = await openHubParts({ redis, hub })
  try {
    const sweeper = await sweepsOnDemand(parts)
    return await runInTurn(names, async (name) => [await sweeper.run(name)], onRun)
  } finally {
    await parts.hub.close()
  }
}

function printSweeps(sweeps: readonly SweepView[]): void {
  const rows = sweeps.map((each) => {
    const { name, everyMs, ageMs, durationMs, found, repaired, left } = each
    const every = everyMs === 0 ? 'off' : shortDuration(everyMs)
    const age = ageMs === undefined ? 'never' : `${shortDuration(ageMs)} ago`
    const took = durationMs === undefined ? undefined : shortDuration(durationMs)
    return [...hubCell(each), name, every, age, took, found, repaired, left, stateOf(each)]
  })
  printTable('sweeps', [...hubHead(sweeps), ...head], rows)
  for (const { hub, name, notes, left } of sweeps) {
    if ((left ?? 0) > 0)
      for (const note of notes) say(`${hub === undefined ? '' : `${hub} `}${name}: ${note}`)
  }
}

function stateOf({ error, late, unfinished }: SweepView): string {
  if (error !== undefined) return `failed: ${error}`
  if (late) return 'late'
  return unfinished ? 'goes on' : 'ok'
}

function printRuns(runs: readonly SweepRunView[]): void {
  printTable(
    'sweeps',
    [...hubHead(runs), 'sweep', 'took', 'found', 'repaired', 'left', 'error'],
    runs.map(({ hub, name, durationMs, found, repaired, left, error }) => [
      ...hubCell({ hub }),
      name,
      shortDuration(Math.round(durationMs)),
      found,
      repaired,
      left,
      error,
    ]),
  )
  for (const { name, notes } of runs) for (const note of notes) say(`${name}: ${note}`)
}

function printAudit({ conservation, deliveries, messages, disagreements, more }: AuditView): void {
  const { recipients, byState, owed, pruned } = conservation
  print(
    fields([
      ['recipients accepted', recipients],
      ...Object.entries(byState).map(([state, count]): [string, number] => [state, count]),
      ['owed by fan-out', owed],
      ['pruned', pruned],
      ['looked at', `${messages} messages, ${deliveries} deliveries`],
      ['disagreements', disagreements.length],
    ]),
  )
  for (const { code, about, what, look } of disagreements) {
    print(`${code} ${about}: ${what}\n  look: ${look}\n  next: ${problems[code].next}`)
  }
  if (more) say('there are more than are told')
}
