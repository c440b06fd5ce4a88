/**
 * A place to execute in. Until `enter` its run waits for the hub alone: where that takes long the place is lent, so that
 * a hub that does not answer keeps no other hub's work waiting.
 */
export interface Place {
  /** Before the first byte is executed; to be waited for where the place was lent. */
  enter(): Promise<void> | undefined
  give(): void
}

/** What asks a share for room. */
export interface ShareUser {
  /** Runnable deliveries it holds. */
  active(): number
  /** Its turn for one place: it may take it at once, with `takePlace`. */
  turn(): void
  /** There may be room for a claim again. */
  room(): void
}

/** What one hub of a set may use of the places and the room of its node. */
export interface Share {
  /** Of everything: what is the hub's own, whatever the others do. */
  readonly even: number
  attach(user: ShareUser): void
  /** A place, or none: then the hub stands in line, and has its `turn`. */
  takePlace(): Place | undefined
  /**
   * How many deliveries may be claimed now, `wanted` at most; where none may, the user is told when to ask again. What a
   * claim that does not wait may bring is kept free for it until `claimed`. One that waits for work keeps nothing from
   * the others, and so is given no more than the hub's own.
   */
  roomFor(wanted: number, waits: boolean): number
  /** The claim was answered, and what it brought is held. */
  claimed(): void
  /** The user holds less than before. */
  roomMade(): void
}

export interface ShareSettings {
  /** Lanes executed at the same time, of all hubs. */
  readonly concurrency: number
  /** Runnable deliveries held at most, of all hubs; beyond it each has its even part. */
  readonly buffer: number
}

/** How long a hub may take to answer before what waits for it makes place for the others. Milliseconds. */
const lendAfterMs = 500

/**
 * Shares the places and the room of one node among the hubs of its set. Places are handed out in turn, one at a time,
 * among the hubs that have a lane ready; a hub that is alone with its work may use all of them. Room for claims is
 * handed out likewise, in equal parts of what is free, beside a small part that each hub always has: so it finds work
 * of its own, and is in line, however much the others hold.
 */
export function createShares({ concurrency, buffer }: ShareSettings, hubs: number): Share[] {
  const even = Math.min(buffer, Math.max(2, Math.ceil(concurrency / hubs)))
  /** Who waits for a place, first come, first served; of one hub's lanes there is one entry. */
  const line: (() => void)[] = []
  /** Members that wait for room, those that came first at the front. */
  const waiting = new Set<Member>()
  const members: Member[] = []
  let free = concurrency

  function serve(): void {
    while (free > 0) {
      const next = line.shift()
      if (next === undefined) return
      next()
    }
  }

  function freeRoom(): number {
    let used = 0
    for (const { user, lent, claiming } of members) used += Math.max(0, user.active() - lent) + claiming
    return buffer - used
  }

  function roomMade(): void {
    if (waiting.size === 0) return
    let room = freeRoom()
    for (const { user } of waiting) {
      if (room <= 0) return
      user.room()
      room -= 1
    }
  }

  function placeOf(member: Member): Place {
    let state: 'held' | 'lent' | 'given' = 'held'
    const timer = setTimeout(() => {
      state = 'lent'
      member.lent += 1
      free += 1
      serve()
      roomMade()
    }, lendAfterMs)
    const backAgain = (): void => {
      state = 'held'
      member.lent -= 1
      free -= 1
    }
    return {
      enter: () => {
        clearTimeout(timer)
        if (state !== 'lent') return undefined
        return new Promise((resolve) => {
          line.push(() => {
            backAgain()
            resolve()
          })
          serve()
        })
      },
      give: () => {
        clearTimeout(timer)
        if (state === 'lent') member.lent -= 1
        if (state === 'held') free += 1
        state = 'given'
        serve()
      },
    }
  }

  function shareOf(member: Member): Share {
    let inLine = false
    let lapse: NodeJS.Timeout | undefined

    function turn(): void {
      inLine = false
      member.user.turn()
    }

    function keep(count: number): void {
      member.claiming = count
      lapse = setTimeout(claimed, lendAfterMs)
    }

    function claimed(): void {
      clearTimeout(lapse)
      if (member.claiming === 0) return
      member.claiming = 0
      roomMade()
    }

    return {
      even,
      attach: (user) => {
        member.user = user
      },
      takePlace: () => {
        // Nobody is in line while a place is free, unless it is the one whose turn it is.
        if (free > 0) {
          free -= 1
          return placeOf(member)
        }
        if (!inLine) line.push(turn)
        inLine = true
        return undefined
      },
      roomFor: (wanted, waits) => {
        const own = even - member.user.active()
        const room = freeRoom()
        const inTurn = waiting.size + (waiting.has(member) ? 0 : 1)
        const part = waits ? Math.min(1, room) : Math.ceil(room / inTurn)
        const count = Math.min(wanted, Math.max(0, own, part))
        if (count > 0 || wanted <= 0) waiting.delete(member)
        else waiting.add(member)
        if (count > 0 && !waits) keep(count)
        return count
      },
      claimed,
      roomMade,
    }
  }

  for (let made = 0; made < hubs; made += 1) members.push({ user: absent, lent: 0, claiming: 0 })
  return members.map(shareOf)
}

interface Member {
  user: ShareUser
  /** Of its places: how many others have now. */
  lent: number
  /** What its claim under way may bring. */
  claiming: number
}

const absent: ShareUser = { active: () => 0, turn: () => undefined, room: () => undefined }
