import type { Command } from 'commander'
import { z } from 'zod'
import type { SettingName } from '../contract/settings.js'
import type { SettingView } from '../contract/upkeep-views.js'
import { paceProblem } from '../hub/configuration.js'
import { withHub } from './context.js'
import { usageError } from './failure.js'
import { action, value } from './flags.js'
import { answer, printTable, say } from './output.js'

const getSchema = z.object({ name: value.text.optional() })
const setSchema = z.object({ name: value.text, value: value.wholeNumber(0, Number.MAX_SAFE_INTEGER) })
const paceSettings: readonly string[] = ['heartbeat_ms', 'stale_after_ms'] satisfies SettingName[]
const head = ['setting', 'value', 'default', 'set to', 'note', 'meaning']

/** `holdfast config get|set`: the tunables of the record, not the settings of this command line. */
export function addConfig(program: Command): void {
  const config = program.command('config').description('the tunables of the hub, read at every call')
  config
    .command('get')
    .description('every tunable as it works now, or one; a bad value is marked, and its default used')
    .argument('[name]', 'one tunable')
    .action(
      action(getSchema, async ({ name }, { settings, json }) => {
        const found = namedOf(await withHub(settings, (hub) => hub.configuration()), name)
        answer(json, { settings: found }, () => printTable('settings', head, found.map(rowOf)))
        for (const each of found.filter(({ bad }) => bad)) say(problemOf(each))
      }),
    )
  config
    .command('set')
    .description('change a tunable for every process at once')
    .argument('<name>', 'the tunable')
    .argument('<value>', 'a whole number')
    .action(
      action(setSchema, async ({ name, value: wanted }, { settings, json }) => {
        const all = await withHub(settings, async (hub) => {
          await hub.configure({ [name]: wanted }, settings.actor)
          return await hub.configuration()
        })
        const now = namedOf(all, name)
        answer(json, { settings: now }, () => printTable('settings', head, now.map(rowOf)))
        const problem = paceSettings.includes(name) ? paceProblem(all) : undefined
        if (problem !== undefined) say(problem)
      }),
    )
}

function namedOf(all: readonly SettingView[], name: string | undefined): readonly SettingView[] {
  if (name === undefined) return all
  // In a set, `<hub>:<name>` is what stands otherwise on that hub.
  const found = all.filter((each) => each.name === name || each.name.endsWith(`:${name}`))
  if (found.length > 0) return found
  const known = all.filter((each) => !isStranger(each)).map((each) => each.name)
  throw usageError([`no setting ${JSON.stringify(name)}; known: ${known.join(', ')}`])
}

/** A field of the config hash that no function reads. */
function isStranger(view: SettingView): boolean {
  return view.default === undefined
}

function rowOf(view: SettingView) {
  const { name, set, bad, meaning } = view
  if (isStranger(view)) return [name, undefined, undefined, set, 'bad', meaning]
  return [name, view.value, view.default, set, bad ? 'bad' : undefined, meaning]
}

function problemOf(view: SettingView): string {
  const text = JSON.stringify(view.set ?? '')
  if (isStranger(view)) return `${view.name}: no such setting; its text ${text} is read by nothing`
  return `${view.name}: ${text} is no value of it; the default ${view.default} is used`
}
