/** A steady look at something, beside the requests. */
export interface Watch {
  /** What is wrong; undefined when nothing is. */
  trouble(): string | undefined
  /** Milliseconds since the last look that came to an answer; infinite until one did. */
  ageMs(): number
  stop(): void
}

export interface WatchOptions {
  readonly everyMs: number
  /** Says what is wrong; undefined when nothing is. What it throws is a look without an answer. */
  look(): Promise<string | undefined>
  /** Told when it goes wrong and when it is right again, once each. */
  onChange(trouble: string | undefined): void
}

/** Looks once before it answers, then every so often until it is stopped. */
export async function startWatch({ everyMs, look, onChange }: WatchOptions): Promise<Watch> {
  let trouble: string | undefined
  let answeredAt = Number.NEGATIVE_INFINITY
  let timer: NodeJS.Timeout | undefined
  let stopped = false

  async function beat(): Promise<void> {
    try {
      const found = await look()
      answeredAt = performance.now()
      if ((found === undefined) !== (trouble === undefined)) onChange(found)
      trouble = found
    } catch {
      // Out of reach, or not to be looked at: the age says so.
    }
    if (!stopped) timer = setTimeout(() => void beat(), everyMs).unref()
  }

  await beat()
  return {
    trouble: () => trouble,
    ageMs: () => performance.now() - answeredAt,
    stop: () => {
      stopped = true
      clearTimeout(timer)
    },
  }
}
