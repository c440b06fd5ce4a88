import type { Command } from 'commander'
import { z } from 'zod'
import type { FenceReply, FenceView, LiftReply } from '../contract/host-views.js'
import { fenceText } from '../hub/lists.js'
import { withHub } from './context.js'
import { action, value } from './flags.js'
import { answer, fields, print, printTable } from './output.js'
import { isoTime } from './times.js'

const kinds = {
  pause: 'what it covers waits in its place until the pause is lifted or lapses',
  hold: 'what it covers goes to the held queue at its next claim or begin',
  block: 'what it covers fails at its next claim or begin',
} as const

const setSchema = z.object({ scope: value.fenceScope, reason: value.sentence, until: value.time.optional() })
const liftSchema = z.object({
  kind: z.enum(['pause', 'hold', 'block'], { error: 'must be pause, hold or block' }),
  scope: value.fenceScope,
})
const head = ['fence', 'reason', 'actor', 'since', 'until', 'note']
const scopeHelp = 'hub, host:<host>, conversation:<id> or session:<id>'

/** `holdfast fence ls|pause|hold|block|lift`. */
export function addFence(program: Command): void {
  const fence = program.command('fence').description('rules that claims and begins obey')
  addList(fence)
  for (const kind of ['pause', 'hold', 'block'] as const) addSet(fence, kind)
  addLift(fence)
}

function addList(fence: Command): void {
  fence
    .command('ls')
    .description('the fences that stand, and fields of their hash that no rule reads')
    .action(
      action(z.object({}), async (_, { settings, json }) => {
        const fences = await withHub(settings, (hub) => hub.fences())
        answer(json, { fences }, () => printTable('fences', head, fences.map(rowOf)))
      }),
    )
}

function rowOf({ fence, known, missing, reason, actor, at, until }: FenceView) {
  const times = [at, until].map((time) => (time === undefined ? undefined : isoTime(time)))
  const note = known ? partial(missing) : 'no rule reads this field'
  return [fence, reason, actor, ...times, note]
}

/** Of a set of hubs: where it does not stand. Setting it again finishes it. */
function partial(missing: readonly string[] | undefined): string | undefined {
  return missing === undefined ? undefined : `partial: not on ${missing.join(', ')}; set it again`
}

function addSet(fence: Command, kind: keyof typeof kinds): void {
  fence
    .command(kind)
    .description(kinds[kind])
    .argument('<scope>', scopeHelp)
    .option('--reason <text>', 'why; kept with the fence')
    .option('--actor <name>', 'who (the OS user)')
    .option('--until <time>', 'when it lapses by itself: RFC 3339, Unix ms, or 5m from now')
    .action(
      action(setSchema, async ({ scope, reason, until }, { settings, json }) => {
        const set = await withHub(settings, (hub) =>
          hub[kind](scope, { reason, until, actor: settings.actor }),
        )
        answer(json, set, printSet)
      }),
    )
}

function addLift(fence: Command): void {
  fence
    .command('lift')
    .description('take a fence away; what a pause parked is served next, what a hold held is queued again')
    .argument('<kind>', 'pause, hold or block')
    .argument('<scope>', scopeHelp)
    .option('--actor <name>', 'who (the OS user)')
    .action(
      action(liftSchema, async ({ kind, scope }, { settings, json }) => {
        const lifted = await withHub(settings, (hub) => hub.lift(kind, scope, settings.actor))
        answer(json, lifted, printLifted)
      }),
    )
}

function printSet(set: FenceReply): void {
  print(
    fields([
      ['stands', set.fence],
      ['instead of', set.replaced === undefined ? undefined : fenceText(set.replaced).reason],
    ]),
  )
}

function printLifted(lifted: LiftReply): void {
  print(
    fields([
      ['lifted', lifted.fence],
      ['was', fenceText(lifted.reason).reason],
      ['still held', lifted.left > 0 ? `${lifted.left}: the next claims queue them again` : undefined],
    ]),
  )
}
