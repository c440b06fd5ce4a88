import type { Functions } from '../record/functions.js'

/** What a hub answered for lately, so that it can be named where it is lost. */
export interface Losses {
  accepted(messageId: string): void
  /**
   * Looks, once for each server (`replicationId`), whether it has what was answered for; answers what it lacks.
   * @throws STORE_UNAVAILABLE, DEADLINE_EXCEEDED; then the next call goes on
   */
  lookOn(replicationId: string, presenter: string): Promise<readonly string[]>
}

/** Messages that are remembered: a replica lags by less, or accepting waits for it. */
const rememberedAtMost = 10_000
const askedAtOnce = 100

export function watchForLosses(functions: Pick<Functions, 'noteLost'>): Losses {
  const remembered = new Set<string>()
  let lookedOn: string | undefined
  /** Still to be asked for, on the server that is looked at. */
  let left: string[] = []
  let found: string[] = []

  return {
    accepted: (id) => {
      remembered.add(id)
      if (remembered.size <= rememberedAtMost) return
      for (const oldest of remembered) {
        remembered.delete(oldest)
        break
      }
    },
    lookOn: async (replicationId, presenter) => {
      if (lookedOn !== replicationId) left = lookedOn === undefined ? [] : [...remembered]
      lookedOn = replicationId
      while (left.length > 0) {
        const lost = await functions.noteLost(presenter, left.slice(0, askedAtOnce))
        left = left.slice(askedAtOnce)
        for (const id of lost) remembered.delete(id)
        found.push(...lost)
      }
      const all = found
      found = []
      return all
    },
  }
}
