/** Turns concurrent single requests into batches: while one is under way the next one gathers. */
export interface Batcher<Item, Result> {
  /** Resolves with the answer to this item; rejects when its batch failed. */
  submit(item: Item): Promise<Result>
}

interface Waiting<Item, Result> {
  readonly item: Item
  resolve(result: Result): void
  reject(error: unknown): void
}

/** `send` answers item by item, in order. At most `most` items go into one batch. */
export function createBatcher<Item, Result>(
  most: number,
  send: (items: readonly Item[]) => Promise<readonly Result[]>,
): Batcher<Item, Result> {
  let waiting: Waiting<Item, Result>[] = []
  let sending = false

  async function drain(): Promise<void> {
    sending = true
    while (waiting.length > 0) {
      const batch = waiting.slice(0, most)
      waiting = waiting.slice(most)
      await sendBatch(batch)
    }
    sending = false
  }

  async function sendBatch(batch: readonly Waiting<Item, Result>[]): Promise<void> {
    try {
      const results = await send(batch.map((each) => each.item))
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
        // One turn of the event loop lets neighbours that are ready now share the batch.
        if (!sending) {
          sending = true
          setImmediate(drain)
        }
      }),
  }
}
