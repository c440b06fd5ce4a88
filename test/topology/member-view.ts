import { HoldfastError } from '../../src/contract/errors.js'
import type { FenceView } from '../../src/contract/host-views.js'
import type { HubCalls } from '../../src/contract/hub.js'
import { hubOf } from '../../src/contract/hub-set.js'

/**
 * A set of hubs as its member alone would look, so that the conformance suite, which speaks of one record, goes through
 * the set: conversations get a suffix that brings them to that member, ids its name, and answers lose both again.
 */
export function memberView(
  set: HubCalls,
  member: string,
  hubs: readonly string[],
  /** Conversations as the set has them, and as the suite does: one for all views of a record. */
  original = new Map<string, string>(),
): { readonly hub: HubCalls; plainOf(value: unknown): unknown } {
  function atHome(conversation: string): string {
    if (conversation === '') return ''
    for (let tries = 0; ; tries += 1) {
      const name = tries === 0 ? conversation : `${conversation}~${tries}`
      if (hubOf(name, hubs) !== member) continue
      if (tries > 0) original.set(name, conversation)
      return name
    }
  }

  const scoped = (scope: unknown): unknown => {
    const [kind = '', ...rest] = String(scope).split(':')
    if (kind === 'conversation') return `conversation:${atHome(rest.join(':'))}`
    return kind === 'session' ? `session:${member}:${rest.join(':')}` : scope
  }

  function told(name: string, given: unknown[]): unknown[] {
    const [first, second, ...rest] = given
    if (byId.has(name)) return [`${member}:${String(first)}`, second, ...rest]
    if (name === 'pause' || name === 'hold' || name === 'block') return [scoped(first), second, ...rest]
    if (name === 'lift') return [first, scoped(second), ...rest]
    if (name === 'actOnMany') {
      const filter = second as Record<string, string>
      const { conversation, reason } = filter
      const own = conversation === undefined ? {} : { conversation: atHome(conversation) }
      const why = reason?.replace(/(?<=conversation:).+$/, atHome)
      return [first, { ...filter, ...own, ...(why === undefined ? {} : { reason: why }) }, ...rest]
    }
    if (name === 'accept') {
      const message = first as { conversation: string }
      return [{ ...message, conversation: atHome(message.conversation) }]
    }
    return given
  }

  /** What only a set says: of which hub it speaks, which of them lack a fence, and that the next page is another hub's. */
  function isOfSet(name: string, value: unknown): boolean {
    if (name === 'hub') return value === member
    if (name === 'cursor') return hubs.some((hub) => hub !== member && value === `${hub}|`)
    return (
      name === 'missing' &&
      Array.isArray(value) &&
      value.length > 0 &&
      value.every((hub) => hubs.includes(hub))
    )
  }

  function textOf(text: string): string {
    let plain = text.replaceAll(`${member}:`, '')
    // A wide act has an entry in the log of each hub: the suite knows one.
    plain =
      plain.split(',').length === hubs.length && /^\d+-\d+,/.test(plain) ? (plain.split(',')[0] ?? '') : plain
    for (const [name, conversation] of original) plain = plain.replaceAll(name, conversation)
    return plain
  }

  function plainOf(value: unknown): unknown {
    if (typeof value === 'string') return textOf(value)
    if (Array.isArray(value)) return value.map(plainOf)
    if (value === null || typeof value !== 'object' || Buffer.isBuffer(value) || value instanceof Date)
      return value
    const entries = Object.entries(value).filter(([name, each]) => !isOfSet(name, each))
    return Object.fromEntries(entries.map(([name, each]) => [name, plainOf(each)]))
  }

  const hub = new Proxy(set, {
    get: (_, name: string) => {
      const call = Reflect.get(set, name) as unknown
      if (typeof call !== 'function') return call
      return async (...given: unknown[]) => {
        try {
          const answer = plainOf(await call.apply(set, told(name, given)))
          // A field that no rule reads is named with its hub, and stands elsewhere in the order for it.
          return name === 'fences' ? (answer as FenceView[]).toSorted(byFence) : answer
        } catch (error) {
          if (!(error instanceof HoldfastError)) throw error
          // A wide act that one hub refused names them all: the suite asks what the one said.
          if (error.code === 'SET_INCOMPLETE' && error.cause instanceof HoldfastError) throw error.cause
          const detail = textOf(error.message.slice(error.code.length + 1))
          throw new HoldfastError(error.code, detail, {
            cause: error,
            ...(/set of (several )?hubs/.test(error.next) ? {} : { next: textOf(error.next) }),
            current: plainOf(error.current),
          })
        }
      }
    },
  })
  return { hub, plainOf }
}

const byFence = (one: FenceView, other: FenceView) => (one.fence < other.fence ? -1 : 1)

/** Calls whose first word is an id. */
const byId = new Set([
  ...['resend', 'message', 'waitFor', 'delivery', 'why', 'release', 'reject', 'holdDelivery', 'cancel'],
  ...['openSession', 'closeSession', 'rehome', 'session', 'effect', 'resolveAttempt', 'resolveEffect'],
  'resolveDelivery',
])
