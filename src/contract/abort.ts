/**
 * Calls `action` once when the signal is aborted: at once where it is already, which a listener would not be told.
 * @returns what takes the action back
 */
export function onAbort(signal: AbortSignal | undefined, action: () => void): () => void {
  if (signal?.aborted) action()
  else signal?.addEventListener('abort', action, { once: true })
  return () => signal?.removeEventListener('abort', action)
}
