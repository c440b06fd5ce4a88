import { HoldfastError } from '../contract/errors.js'
import type { Hub } from './open-hub.js'

/** The calls of a hub as long as it is open; then each is refused at once, and none waits for a connection. */
export function untilClosed(hub: Hub, closed: AbortSignal): Hub {
  const guarded = Object.entries(hub).map(([name, member]: [string, unknown]) => [
    name,
    isCall(member) && !answersAfter.includes(name) ? guard(member) : member,
  ])
  return Object.fromEntries(guarded) as Hub

  function guard(call: Call): Call {
    return (...args) => {
      if (!closed.aborted) return call(...args)
      return Promise.reject(new HoldfastError('CLOSED', `hub ${hub.name} was closed by its caller`))
    }
  }
}

type Call = (...args: unknown[]) => unknown

function isCall(member: unknown): member is Call {
  return typeof member === 'function'
}

/** Closing again does nothing, and events have come to their end. */
const answersAfter = ['close', 'events']
