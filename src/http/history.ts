import type { History, Sample } from '../contract/overview.js'
import { countOf, readCounts } from '../hub/lists.js'
import type { Keys } from '../record/keys.js'
import { type Reader, timeOf } from '../record/reader.js'

/** What the counts were lately, sampled beside the requests. */
export interface Sampling {
  history(): History
  stop(): void
}

export interface SamplingOptions {
  readonly reader: Reader
  readonly keys: Keys
  /** 5,000 when absent. */
  readonly everyMs?: number
  /** Samples that are kept; 720 when absent, which is an hour. */
  readonly keep?: number
}

/** Samples at once, then every so often until it is stopped; while the record is away there is no sample. */
export function startSampling({ reader, keys, everyMs = 5000, keep = 720 }: SamplingOptions): Sampling {
  const samples: Sample[] = []
  let timer: NodeJS.Timeout | undefined
  let stopped = false

  async function beat(): Promise<void> {
    try {
      samples.push(await sample(reader, keys))
      if (samples.length > keep) samples.shift()
    } catch {
      // Its place stays empty: the times of the samples say so.
    }
    if (!stopped) timer = setTimeout(() => void beat(), everyMs).unref()
  }

  void beat()
  return {
    history: () => ({ everyMs, samples: [...samples] }),
    stop: () => {
      stopped = true
      clearTimeout(timer)
    },
  }
}

async function sample(reader: Reader, keys: Keys): Promise<Sample> {
  const [time, unknown] = await reader.all([['TIME'], ['ZCARD', keys.unknown]])
  const counts = await readCounts(reader, keys)
  const count = (name: string) => countOf(counts, name)
  return {
    at: timeOf(time),
    recipients: count('recipients'),
    done: count('done'),
    terminal: count('terminal'),
    failed: count('failed'),
    queued: count('queued'),
    inFlight: count('claimed') + count('mirrored'),
    open: Math.max(0, count('delivered') - count('finished')),
    held: count('held'),
    unknown: Number(unknown),
  }
}
