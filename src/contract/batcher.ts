/** Turns concurrent single requests into batches: while as many as may be are under way, the next one gathers. */
export interface Batcher<Item, Result> {
  /** Resolves with the answer to this item; rejects when its batch failed. */
  submit(item: Item): Promise<Result>
}

export interface BatcherOptions<Item, Result> {
  /** Items in one batch at most. */
  readonly most: number
  /** Batches under way at most; 1 when absent. */
  readonly atOnce?: number
  /** What a batch may weigh, and each item of it; a heavier item goes alone. Any number when absent. */
  readonly weight?: { readonly most: number; of(item: Item): number }
  /** Answers item by item, in order. */
  send(items: readonly Item[]): Promise<readonly Result[]>
}

interface Waiting<Item, Result> {
  readonly item: Item
  resolve(result: Result): void
  reject(error: unknown): void
}

export function createBatcher<Item, Result>(options: BatcherOptions<Item, Result>): Batcher<Item, Result> {
  const { most, atOnce = 1, weight } = options
  let waiting: Waiting<Item, Result>[] = []
  let sending = 0
  let scheduled = false

  /** One turn of the event loop lets neighbours that are ready now share the batch. */
  function schedule(): void {
    if (scheduled || sending >= atOnce) return
    scheduled = true
    setImmediate(() => {
      scheduled = false
      while (waiting.length > 0 && sending < atOnce) void sendNext()
    })
  }

  async function sendNext(): Promise<void> {
    const batch = waiting.slice(0, batchLength())
    waiting = waiting.slice(batch.length)
    sending += 1
    await sendBatch(batch)
    sending -= 1
    if (waiting.length > 0) schedule()
  }

  function batchLength(): number {
    if (weight === undefined) return most
    let total = 0
    for (const [at, { item }] of waiting.entries()) {
      total += weight.of(item)
      if (at === most || (at > 0 && total > weight.most)) return at
    }
    return most
  }

  async function sendBatch(batch: readonly Waiting<Item, Result>[]): Promise<void> {
    try {
      const results = await options.send(batch.map((each) => each.item))
      for (const [at, each] of batch.entries()) {
        const result = results[at]
        if (result === undefined)
          each.reject(new Error(`a batch of ${batch.length} got ${results.length} answers`))
        else each.resolve(result)
      }
    } catch (error) {
      for (const each of batch) each.reject(error)
    }
  }

  return {
    submit: (item) =>
      new Promise((resolve, reject) => {
        waiting.push({ item, resolve, reject })
        schedule()
      }),
  }
}
