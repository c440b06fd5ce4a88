/** Whether an attempt was aborted because its time was over. */
export function isTimeout(reason: unknown): boolean {
  return reason instanceof Error && reason.name === 'TimeoutError'
}

/** What an outcome tells of an error: a thousand characters of its message at most, none of them cut in half. */
export function messageOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error)
  return message.slice(0, 1000).replace(/[\uD800-\uDBFF]$/, '')
}
