import { z } from 'zod'
import { components } from './components.js'
import { problemCodes } from './problem-codes.js'
import { sweepNames } from './sweeps.js'
import { count, timeMs, type View } from './view-parts.js'

// What readers of the record are shown of its settings, its sweeps and its audit, in the SDK and over HTTP alike.

/** A tunable as it works now. */
export const settingViewSchema = z
  .object({
    name: z.string(),
    value: z.number().optional().describe('what the functions use; absent for a field that is no setting'),
    default: z.number().optional(),
    meaning: z.string(),
    set: z.string().optional().describe('the text in the record, where there is one'),
    bad: z.boolean().describe('the text is no value of this setting: the default is used'),
  })
  .register(components, { id: 'Setting' })
/** A tunable as it works now. @interface */
export type SettingView = View<typeof settingViewSchema>

/** How a sweep is, as its last run left it. */
export const sweepViewSchema = z
  .object({
    name: z.enum(sweepNames),
    hub: z.string().optional().describe('in a set of hubs: the one that says it'),
    meaning: z.string().describe('what it does'),
    everyMs: count.describe('how often it runs; 0: not by itself'),
    runs: count,
    failures: count.optional(),
    lastRunAt: timeMs.optional(),
    lastSucceededAt: timeMs.optional(),
    ageMs: count.optional().describe('since it last succeeded'),
    late: z.boolean().describe('its last success is older than three intervals'),
    durationMs: count.optional().describe('of the last run'),
    found: count.optional().describe('in the last run: what was not right'),
    repaired: count.optional().describe('of these, put right'),
    left: count.optional().describe('of these, what somebody has to look at'),
    foundTotal: count.optional().describe('in all runs: what was not right'),
    repairedTotal: count.optional().describe('in all runs: what was put right'),
    notes: z.array(z.string()).describe('the first of what was found, with its key or id'),
    unfinished: z.boolean().describe('the last run stopped at its bound; the next goes on there'),
    error: z.string().optional().describe('why the last run failed'),
    by: z.string().optional().describe('the process that ran it'),
  })
  .register(components, { id: 'Sweep' })
/** How a sweep is, as its last run left it. @interface */
export type SweepView = View<typeof sweepViewSchema>

/** What one run of a sweep did. */
export const sweepRunSchema = z
  .object({
    name: z.enum(sweepNames),
    hub: z.string().optional().describe('in a set of hubs: the one that says it'),
    found: count.describe('what was not right'),
    repaired: count.describe('of these, put right'),
    left: count.describe('of these, what somebody has to look at'),
    notes: z.array(z.string()).describe('the first of what was found, with its key or id'),
    durationMs: z.number().nonnegative().describe('how long it took'),
    error: z.string().optional().describe('why it failed'),
  })
  .register(components, { id: 'SweepRun' })
export type SweepRunView = View<typeof sweepRunSchema>

/** What an audit found. */
export const auditSchema = z
  .object({
    conservation: z
      .object({
        recipients: count.describe('recipients of all messages that were ever accepted'),
        byState: z.record(z.string(), count).describe('deliveries by state'),
        owed: count.describe('deliveries that fan-outs have not made yet'),
        pruned: count.describe('deliveries that went with the retention'),
      })
      .describe('recipients = deliveries by state + owed + pruned'),
    deliveries: count.describe('rows that were looked at'),
    messages: count.describe('rows that were looked at'),
    disagreements: z.array(
      z.object({
        code: z.enum(problemCodes).describe('what kind of problem it is: docs/audit.md'),
        about: z.string().describe('the key or id'),
        what: z.string().describe('in words, for people'),
        look: z.string().describe('a line for the shell that shows it'),
        repaired: z.boolean().describe('it was put right; here always false: a sweep does that'),
      }),
    ),
    more: z.boolean().describe('there are more than are told'),
  })
  .register(components, { id: 'Audit' })
/** What an audit found. @interface */
export type AuditView = View<typeof auditSchema>
