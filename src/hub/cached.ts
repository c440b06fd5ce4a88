/**
 * A reading that everybody shares: made again once it is older than `forMs`, by one caller for all who ask meanwhile.
 * What fails is told to those, and kept by nobody.
 */
export function cachedFor<Value>(forMs: number, read: () => Promise<Value>): () => Promise<Value> {
  let kept: { readonly value: Value; readonly at: number } | undefined
  let reading: Promise<Value> | undefined
  async function readAnew(): Promise<Value> {
    // Its age counts from before it was read.
    const at = performance.now()
    const value = await read()
    kept = { value, at }
    return value
  }
  return async () => {
    if (kept !== undefined && performance.now() - kept.at <= forMs) return kept.value
    reading ??= readAnew().finally(() => {
      reading = undefined
    })
    return await reading
  }
}
