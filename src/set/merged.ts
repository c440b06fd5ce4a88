/**
 * What several sources yield, each in its own order, as it comes; each is read one ahead. Ends when all are over; an
 * error of one is thrown at once. Whoever stops reading ends the sources, by their own signal.
 */
export async function* merged<Item>(
  sources: readonly AsyncIterable<Item>[],
): AsyncGenerator<Item, void, undefined> {
  const ready: Slot<Item>[] = []
  let wake: () => void = () => undefined
  let open = sources.length
  let failure: { readonly error: unknown } | undefined
  let isOver = false

  async function read(source: AsyncIterable<Item>): Promise<void> {
    try {
      for await (const item of source) {
        if (isOver) return
        await new Promise<void>((taken) => {
          ready.push({ item, taken })
          wake()
        })
      }
    } catch (error) {
      failure ??= { error }
    } finally {
      open -= 1
      wake()
    }
  }

  for (const source of sources) void read(source)
  try {
    for (;;) {
      const next = ready.shift()
      if (next !== undefined) {
        next.taken()
        yield next.item
      } else if (failure !== undefined) throw failure.error
      else if (open === 0) return
      else {
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
    }
  } finally {
    isOver = true
    for (const { taken } of ready) taken()
  }
}

interface Slot<Item> {
  readonly item: Item
  taken(): void
}
