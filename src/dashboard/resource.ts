import { useEffect, useRef, useState } from 'preact/hooks'
import { asRefusal, type Refusal } from './api.js'
import { changes, frozen } from './live.js'

/** Something read from the hub, read again when the hub changes. */
export interface Resource<Value> {
  /** What was read last; it stays while it is read again, and where that fails. */
  readonly value: Value | undefined
  readonly refusal: Refusal | undefined
  readonly isLoading: boolean
  refresh(): void
}

export interface ResourceOptions {
  /** Read again after so many milliseconds, also where the log told of nothing: heartbeats are not in it. */
  readonly everyMs?: number
  /** By time alone, whatever the log tells: for figures that move with every call. */
  readonly isTimed?: boolean
  /** Not by itself. */
  readonly isStill?: boolean
}

const defaultEveryMs = 10_000
const leastMs = 900

/** Reads when the key changes, when the hub tells of changes, and now and then; one reading at a time. */
export function useResource<Value>(
  key: string | undefined,
  read: (signal: AbortSignal) => Promise<Value>,
  { everyMs = defaultEveryMs, isTimed = false, isStill = false }: ResourceOptions = {},
): Resource<Value> {
  const [state, setState] = useState<{
    key: string | undefined
    value: Value | undefined
    refusal: Refusal | undefined
  }>({ key, value: undefined, refusal: undefined })
  const [isLoading, setLoading] = useState(key !== undefined)
  const again = useRef<() => void>(() => undefined)
  const reading = useRef(read)
  reading.current = read

  useEffect(() => {
    if (key === undefined) return
    const ends = new AbortController()
    let isReading = false
    let isWanted = false
    let readAt = 0
    let timer: ReturnType<typeof setTimeout> | undefined

    const run = async () => {
      if (ends.signal.aborted) return
      if (isReading) {
        isWanted = true
        return
      }
      isReading = true
      isWanted = false
      setLoading(true)
      try {
        const value = await reading.current(ends.signal)
        if (!ends.signal.aborted) setState({ key, value, refusal: undefined })
      } catch (error) {
        if (!ends.signal.aborted) {
          setState((before) => ({
            key,
            value: before.key === key ? before.value : undefined,
            refusal: asRefusal(error),
          }))
        }
      } finally {
        isReading = false
        readAt = Date.now()
        if (!ends.signal.aborted) {
          setLoading(false)
          plan(isWanted ? leastMs : isStill ? undefined : everyMs)
        }
      }
    }
    const plan = (ms: number | undefined) => {
      clearTimeout(timer)
      if (ms !== undefined) timer = setTimeout(wake, ms)
    }
    const wake = () => {
      if (document.hidden || frozen.peek() > 0) return plan(leastMs)
      void run()
    }
    again.current = () => void run()
    void run()
    const unwatch =
      isStill || isTimed
        ? () => undefined
        : changes.subscribe(() => {
            if (readAt === 0) return
            plan(Math.max(0, readAt + leastMs - Date.now()))
          })
    return () => {
      ends.abort()
      clearTimeout(timer)
      unwatch()
    }
  }, [key, everyMs, isTimed, isStill])

  const isCurrent = state.key === key
  return {
    value: isCurrent ? state.value : undefined,
    refusal: isCurrent ? state.refusal : undefined,
    isLoading,
    refresh: () => again.current(),
  }
}

/** The pages of a list: where one is, and the way back. */
export interface Pages {
  readonly cursor: string | undefined
  readonly number: number
  next(cursor: string): void
  back(): void
  first(): void
}

/** Starts at the first page again when the key changes. */
export function usePages(key: string): Pages {
  const [state, setState] = useState<{ key: string; cursors: readonly string[] }>({ key, cursors: [] })
  const cursors = state.key === key ? state.cursors : []
  return {
    cursor: cursors.at(-1),
    number: cursors.length + 1,
    next: (cursor) => setState({ key, cursors: [...cursors, cursor] }),
    back: () => setState({ key, cursors: cursors.slice(0, -1) }),
    first: () => setState({ key, cursors: [] }),
  }
}
