import type { Command } from 'commander'
import { z } from 'zod'
import type { EffectView } from '../contract/effect-views.js'
import type { EffectSettled } from '../contract/effects.js'
import { addResolutionOptions, resolution } from './attempt.js'
import { withHub } from './context.js'
import { action, value } from './flags.js'
import { answer, fields, print, printTable, say } from './output.js'
import { isoTime, shortDuration } from './times.js'

const listSchema = z.object({
  executing: value.flag,
  limit: value.wholeNumber(1, 1000).optional(),
  cursor: value.text.optional(),
})
const showSchema = z.object({ id: value.id })
const resolveSchema = z.object({ id: value.id, ...resolution })
const head = ['effect', 'type', 'status', 'executor', 'epoch', 'age', 'unknown']

/** `holdfast effect ls|show|resolve`. */
export function addEffect(program: Command): void {
  const effect = program.command('effect').description('non-idempotent actions outside deliveries')
  effect
    .command('ls')
    .description('effects by when they were first claimed')
    .option('--executing', 'only those that are executing, the longest first')
    .option('--limit <n>', 'at most so many (100)')
    .option('--cursor <cursor>', 'from the answer before')
    .action(
      action(listSchema, async (page, { settings, json }) => {
        const { entries, cursor } = await withHub(settings, (hub) => hub.effectPage(page))
        answer(json, { effects: entries, cursor }, () => {
          printTable('effects', head, entries.map(rowOf))
          if (cursor !== undefined) say(`there are more: --cursor '${cursor}'`)
        })
      }),
    )
  effect
    .command('show')
    .description('an effect as recorded')
    .argument('<id>', 'effect id')
    .action(
      action(showSchema, async ({ id }, { settings, json }) => {
        answer(json, await withHub(settings, (hub) => hub.effect(id)), printEffect)
      }),
    )
  addResolutionOptions(
    effect
      .command('resolve')
      .description('say what became of an unknown outcome, with evidence; irreversible')
      .argument('<id>', 'effect id'),
  ).action(
    action(resolveSchema, async ({ id, ...said }, { settings, json }) => {
      const settled = await withHub(settings, (hub) => hub.resolveEffect(id, said, settings.actor))
      answer(json, settled, printSettled)
    }),
  )
}

function rowOf(view: EffectView) {
  const { id, type, status, executor, epoch, startedAt, unknownReason } = view
  return [id, type, status, executor, epoch, shortDuration(Date.now() - startedAt), unknownReason]
}

function printEffect(view: EffectView): void {
  const time = (at: number | undefined) => (at === undefined ? undefined : isoTime(at))
  print(
    fields([
      ['effect', view.id],
      ['type', view.type],
      ['status', view.status],
      ['outcome', view.outcome],
      ['result', view.result],
      ['error', view.errorCode],
      ['particulars', view.errorJson],
      ['unknown', view.unknownReason],
      ['executor', view.executor],
      ['epoch', view.epoch],
      ['payload hash', view.payloadHash],
      ['claimed', time(view.claimedAt)],
      ['started', time(view.startedAt)],
      ['settled', time(view.settledAt)],
      ['taken over', view.takeovers > 0 ? `${view.takeovers} times, from ${view.takenFrom}` : undefined],
      ['basis', view.basis],
      ['late reports', view.lateReports],
      ['resolved by', view.resolvedBy],
      ['evidence', view.evidence],
    ]),
  )
}

function printSettled(settled: EffectSettled): void {
  print(
    fields([
      ['outcome', settled.outcome],
      ['status', settled.status],
      ['epoch', settled.epoch],
    ]),
  )
}
