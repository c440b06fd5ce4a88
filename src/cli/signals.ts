/** Waits for the end of a long-running command. */
export interface SignalWatch {
  /** Resolves with the first of them: SIGINT or SIGTERM, and what else was named. */
  readonly first: Promise<NodeJS.Signals>
  dispose(): void
}

/** The first signal asks for an orderly end; a second one ends the process at once with 1. */
export function watchSignals(...others: readonly NodeJS.Signals[]): SignalWatch {
  const signals: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM', ...others]
  let received = false
  let tell: (signal: NodeJS.Signals) => void = () => undefined
  const first = new Promise<NodeJS.Signals>((resolve) => {
    tell = resolve
  })
  function onSignal(signal: NodeJS.Signals) {
    if (received) process.exit(1)
    received = true
    tell(signal)
  }
  for (const signal of signals) process.on(signal, onSignal)
  return {
    first,
    dispose: () => {
      for (const signal of signals) process.removeListener(signal, onSignal)
    },
  }
}
