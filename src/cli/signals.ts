/** Waits for the end of a long-running command. */
export interface SignalWatch {
  /** Resolves with the first SIGINT or SIGTERM. */
  readonly first: Promise<NodeJS.Signals>
  dispose(): void
}

const signals = ['SIGINT', 'SIGTERM'] as const

/** The first signal asks for an orderly end; a second one ends the process at once with 1. */
export function watchSignals(): SignalWatch {
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
