import type { FenceView, LiftReply } from '../contract/host-views.js'
import type { Accepted, OperatorAct } from '../contract/hub.js'
import type { SessionView } from '../contract/session-views.js'
import { closeReasons, terminalOf } from '../contract/sessions.js'
import type { SweepRunView } from '../contract/upkeep-views.js'
import { part, send } from './api.js'
import { plural, words } from './format.js'
import { type Act, reasonField } from './parts/act.js'

// What an operator may do from the page: each says what follows from it, and is one call of the hub.

const onDeliveries: Readonly<
  Record<OperatorAct, readonly [verb: string, consequence: string, isFinal: boolean]>
> = {
  release: ['Release', 'It is queued again, and passes the holds that stand now, once.', false],
  reject: ['Reject', 'It fails, and will not run.', true],
  hold: [
    'Hold',
    'It goes to the held queue until somebody releases or rejects it. Refused while it runs.',
    false,
  ],
  cancel: ['Cancel', 'It fails, and will not run. Refused while it runs.', true],
}

export function deliveryAct(act: OperatorAct, id: string): Act {
  const [verb, consequence, isFinal] = onDeliveries[act]
  return {
    title: `${verb} ${id}`,
    verb,
    consequence,
    isFinal,
    fields: [reasonField],
    run: async ({ reason }) => {
      const { state } = await send<{ state: string }>('POST', `v1/deliveries/${part(id)}/${act}`, { reason })
      return `${id} is ${state}`
    },
  }
}

const evidenceField = {
  name: 'evidence',
  label: 'Evidence',
  kind: 'lines',
  hint: 'How it is known: what was looked up, where, and what it said. Kept for good.',
} as const
const forceField = {
  name: 'force',
  label: 'Also while its executor may live',
  kind: 'tick',
  isOptional: true,
  hint: 'Whatever it still does cannot be taken back, and its report will be kept as late.',
} as const

/** An operator's word on an outcome that nobody knows: of an attempt, or of an effect. */
export function resolveAct(kind: 'attempt' | 'effect', id: string): Act {
  return {
    title: `Resolve ${id}`,
    verb: 'Resolve',
    consequence: `Nobody knows whether this ${kind} happened. Find out at its target, then say so here.`,
    isFinal: true,
    fields: [
      {
        name: 'as',
        label: 'It',
        kind: 'choice',
        value: 'result',
        options: [
          ['result', 'happened (result)'],
          ['not_sent', 'provably did not happen, and may be tried again (not_sent)'],
          ['terminal', 'did not happen, and never will (terminal)'],
        ],
      },
      evidenceField,
      forceField,
    ],
    run: async ({ as, evidence, force }) => {
      const body = { as, evidence, ...(force === 'yes' ? { force: true } : {}) }
      await send('POST', `v1/${kind}s/${part(id)}/resolve`, body)
      return `${id} is resolved as ${as}`
    },
  }
}

/** A delivery whose copy is in doubt. */
export function resolveDeliveryAct(id: string): Act {
  return {
    title: `Resolve ${id}`,
    verb: 'Resolve',
    consequence: 'Nobody knows whether a node had this delivery and began it.',
    isFinal: true,
    fields: [
      {
        name: 'as',
        label: 'It',
        kind: 'choice',
        value: 'failed',
        options: [
          ['queued', 'did not run: hand it out again (queued)'],
          ['failed', 'shall not run any more (failed)'],
        ],
      },
      evidenceField,
    ],
    run: async ({ as, evidence }) => {
      await send('POST', `v1/deliveries/${part(id)}/resolve`, { as, evidence })
      return `${id} is ${as}`
    },
  }
}

const kinds = [
  ['pause', 'pause: waits in its place'],
  ['hold', 'hold: goes to the held queue'],
  ['block', 'block: fails'],
] as const

export function fenceAct(scope?: string): Act {
  return {
    title: scope === undefined ? 'New fence' : `Fence ${scope}`,
    verb: 'Set',
    consequence:
      'From the next claim and begin on, on every node. What runs already is finished. A fence that stands gets the new reason.',
    fields: [
      { name: 'kind', label: 'Kind', kind: 'choice', value: 'pause', options: kinds },
      {
        name: 'scope',
        label: 'Scope',
        value: scope ?? '',
        hint: 'hub, host:<h>, conversation:<c> or session:<s>',
      },
      reasonField,
      { name: 'until', label: 'Lapses at', kind: 'time', isOptional: true },
    ],
    run: async ({ kind = '', scope: given = '', reason, until }) => {
      const at = until ? { until: new Date(until).getTime() } : {}
      await send('PUT', `v1/fences/${kind}/${part(given)}`, { reason, ...at })
      return `${kind} ${given} stands`
    },
  }
}

export function liftAct({ fence, reason }: Pick<FenceView, 'fence' | 'reason'>): Act {
  const [kind = '', ...rest] = fence.split(':')
  const scope = rest.join(':')
  return {
    title: `Lift ${fence}`,
    verb: 'Lift',
    consequence: `It stands because: ${reason}. What a pause parked is served next; what a hold held is queued again.`,
    run: async () => {
      const { left } = await send<LiftReply>('DELETE', `v1/fences/${kind}/${part(scope)}`)
      return left > 0
        ? `${fence} is lifted; ${plural(left, 'held delivery', 'held deliveries')} follow`
        : `${fence} is lifted`
    },
  }
}

export function drainAct(host: string): Act {
  return {
    title: `Drain ${host}`,
    verb: 'Drain',
    consequence:
      'What runs there is finished, nothing new begins. It is a pause with the reason drain: lift it to end it.',
    run: async () => {
      await send('POST', `v1/hosts/${part(host)}/drain`, {})
      return `${host} drains`
    },
  }
}

export function retireAct(host: string): Act {
  return {
    title: `Retire ${host}`,
    verb: 'Retire',
    consequence:
      'The host is taken out for good: its idle deliveries go to the held queue, and messages to it are held. Sessions that live there: rehome them first.',
    isFinal: true,
    fields: [reasonField],
    run: async ({ reason }) => {
      await send('POST', `v1/hosts/${part(host)}/retire`, { reason })
      return `${host} is retired`
    },
  }
}

export function closeSessionAct({ session, epoch }: SessionView): Act {
  return {
    title: `Close ${session}`,
    verb: 'Close',
    consequence:
      'Not addressable any more. After reload and restart its deliveries wait until it opens again; after disable and removed they go to the held queue.',
    fields: [
      {
        name: 'reason',
        label: 'Because of',
        kind: 'choice',
        value: 'disable',
        options: closeReasons.map((each) => [each, `${each}${endOf(each)}`] as const),
      },
      { name: 'drained', label: 'Nothing is under way there any more', kind: 'tick', isOptional: true },
      {
        name: 'abandoned',
        label: 'Given up while under way',
        kind: 'number',
        value: '0',
        hint: 'How much of what it was doing is left undone.',
      },
    ],
    run: async ({ reason = 'disable', drained, abandoned }) => {
      const terminal = terminalOf(reason as (typeof closeReasons)[number])
      await send('POST', `v1/sessions/${part(session)}/close`, {
        epoch,
        reason,
        drained: drained === 'yes',
        abandoned: Number(abandoned),
        ...(terminal === undefined ? {} : { terminal }),
      })
      return `${session} is closed`
    },
  }
}

function endOf(reason: (typeof closeReasons)[number]): string {
  const terminal = terminalOf(reason)
  if (terminal === undefined) return ' (the restart budget decides)'
  return terminal ? ' (for good, until somebody opens it)' : ' (comes back by itself)'
}

export function rehomeAct({ session, host, scope }: SessionView): Act {
  return {
    title: `Rehome ${session}`,
    verb: 'Rehome',
    consequence: `From ${host} to another host that has a live node for ${scope}. Its deliveries and child sessions move along; what finished, and what is unknown, stays. Refused while it executes.`,
    fields: [{ name: 'host', label: 'New host' }, reasonField],
    run: async ({ host: to, reason }) => {
      await send('POST', `v1/sessions/${part(session)}/rehome`, { host: to, reason })
      return `${session} lives on ${to}`
    },
  }
}

export function resendAct(message: string): Act {
  return {
    title: `Send ${message} again`,
    verb: 'Send',
    consequence:
      'The same payload is accepted as a new message under a new key, with a link to this one. It runs anew.',
    fields: [
      {
        name: 'to',
        label: 'Recipients',
        isOptional: true,
        hint: 'host:<h> or session:<s>, blanks between; the recipients of the first time when left out.',
      },
      {
        name: 'key',
        label: 'Idempotency key',
        value: `resend-${message}-${Date.now().toString(36)}`,
        hint: 'Repeating it with the same key sends nothing twice.',
      },
    ],
    run: async ({ to = '', key = '' }) => {
      const given = to.split(/\s+/).filter(Boolean).map(recipient)
      const body = given.length === 0 ? {} : { to: given }
      const headers = { 'idempotency-key': key }
      const { id } = await send<Accepted>('POST', `v1/messages/${part(message)}/resend`, body, headers)
      return `accepted as ${id}`
    },
  }
}

function recipient(text: string): Record<string, string> {
  const at = text.indexOf(':')
  // What names neither a host nor a session is refused by the hub, with the words that were given.
  return { [text.slice(0, Math.max(0, at))]: text.slice(at + 1) }
}

export function sweepAct(name: string, meaning: string): Act {
  return {
    title: `Run the sweep ${name}`,
    verb: 'Run',
    consequence: `Now, beside its schedule: ${meaning}.`,
    run: async () => {
      const { runs } = await send<{ runs: SweepRunView[] }>('POST', `v1/sweeps/${name}/run`)
      const [run] = runs
      if (run === undefined) return `${name} ran`
      return run.error ?? `${name}: found ${run.found}, repaired ${run.repaired}, left ${run.left}`
    },
  }
}

export function settingAct(name: string, value: number | undefined, meaning: string): Act {
  return {
    title: `Set ${name}`,
    verb: 'Set',
    consequence: `${words(name)}: ${meaning}. For every process at once, from its next call on.`,
    fields: [{ name: 'value', label: 'Value', kind: 'number', value: String(value ?? '') }],
    run: async ({ value: given }) => {
      await send('PUT', 'v1/config', { [name]: Number(given) })
      return `${name} is ${given}`
    },
  }
}
