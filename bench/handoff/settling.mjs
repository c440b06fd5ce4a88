// @ts-check

/** Counts what is settled, and tells who waits for a number of it. */
export function createSettling() {
  let settled = 0
  /** @type {Error | undefined} */
  let broken
  /** @type {{ count: number, resolve: () => void, reject: (error: Error) => void } | undefined} */
  let waiting

  function look() {
    if (waiting === undefined) return
    if (broken !== undefined) waiting.reject(broken)
    else if (settled >= waiting.count) waiting.resolve()
  }

  return {
    /** @param {number} count */
    add: (count) => {
      settled += count
      look()
    },
    /** Every wait from now on rejects. @param {unknown} error */
    fail: (error) => {
      broken ??= error instanceof Error ? error : new Error(String(error))
      look()
    },
    /** @param {number} count @returns {Promise<void>} */
    reached: (count) =>
      new Promise((resolve, reject) => {
        waiting = { count, resolve, reject }
        look()
      }),
  }
}
