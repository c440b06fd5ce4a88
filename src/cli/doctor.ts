import type { Command } from 'commander'
import { z } from 'zod'
import { examine, type Finding } from '../hub/doctor.js'
import { openStore } from '../record/connections.js'
import { functionsOf } from '../record/functions.js'
import { keysOf } from '../record/keys.js'
import { readerOf } from '../record/reader.js'
import { withRecord } from './context.js'
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
          const store = await openStore({
            url: redis,
            tag: keysOf(settings.hub).tag,
            name: 'holdfast-doctor',
          })
          const keys = keysOf(settings.hub)
          const parts = {
            store,
            keys,
            reader: readerOf(store, keys),
            functions: functionsOf(store, keys.tag),
          }
          return await examine(parts).finally(store.close)
        })
        answer(json, { findings }, () => printFindings(findings))
        return findings.some(({ verdict }) => verdict === 'bad') ? exitCodes.unhealthy : exitCodes.ok
      }),
    )
}

function printFindings(findings: readonly Finding[]): void {
  printTable(
    'checks',
    ['check', 'value', 'verdict', 'fix'],
    findings.map(({ name, value, verdict, fix }) => [
      name,
      value,
      verdict,
      verdict === 'ok' ? undefined : fix,
    ]),
  )
}
