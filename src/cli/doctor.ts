import type { Command } from 'commander'
import { z } from 'zod'
import { naming } from '../contract/hub-set.js'
import type { RedisAddress } from '../contract/redis-address.js'
import { examine, type Finding } from '../hub/doctor.js'
import { openStore } from '../record/connections.js'
import { functionsOf } from '../record/functions.js'
import { keysOf } from '../record/keys.js'
import { readerOf } from '../record/reader.js'
import { hubsOf, isSet, withRecord } from './context.js'
import { exitCodes } from './failure.js'
import { action } from './flags.js'
import { answer, printTable } from './output.js'

/** `holdfast doctor`: server, record, library, settings, sweeps and lists; 4 when something is bad. */
export function addDoctor(program: Command): void {
  program
    .command('doctor')
    .description('look at server, record, library, settings, sweeps and lists; 4 when something is bad')
    .action(
      action(z.object({}), async (_, { settings, json }) => {
        const findings = await withRecord(settings, async ({ redis }) => {
          const found: (Finding & { hub?: string })[] = []
          for (const hub of hubsOf(settings)) {
            const own = await naming(hub, () => examineHub(redis, hub))
            found.push(...own.map((each) => (isSet(settings) ? { hub, ...each } : each)))
          }
          return found
        })
        answer(json, { findings }, () => printFindings(findings))
        return findings.some(({ verdict }) => verdict === 'bad') ? exitCodes.unhealthy : exitCodes.ok
      }),
    )
}

async function examineHub(redis: RedisAddress, hub: string): Promise<readonly Finding[]> {
  const keys = keysOf(hub)
  const store = await openStore({ url: redis, tag: keys.tag, name: 'holdfast-doctor' })
  const parts = { store, keys, reader: readerOf(store, keys), functions: functionsOf(store, keys.tag) }
  return await examine(parts).finally(store.close)
}

function printFindings(findings: readonly (Finding & { hub?: string })[]): void {
  const ofSet = findings.some(({ hub }) => hub !== undefined)
  printTable(
    'checks',
    [...(ofSet ? ['hub'] : []), 'check', 'value', 'verdict', 'fix'],
    findings.map(({ hub, name, value, verdict, fix }) => [
      ...(ofSet ? [hub] : []),
      name,
      value,
      verdict,
      verdict === 'ok' ? undefined : fix,
    ]),
  )
}
