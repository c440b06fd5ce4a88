import { isHoldfastError } from '../contract/errors.js'
import { settings } from '../contract/settings.js'
import type { Keys } from '../record/keys.js'
import type { Reader } from '../record/reader.js'

/** A steady look at the record: whether it is there, and still the one that this process began with. */
export interface Pulse {
  /** Milliseconds since the last look that succeeded. */
  ageMs(): number
  /** Why the record is not right now; undefined when it is. */
  trouble(): string | undefined
  /** As the settings were at the last look. */
  readonly maxPayloadBytes: number
  stop(): void
}

export interface PulseOptions {
  readonly reader: Reader
  readonly keys: Keys
  /** Told when the record goes wrong and when it is right again, once each. */
  onChange(trouble: string | undefined): void
}

const everyMs = 1000

/** @throws STORE_UNKNOWN, STORE_UNAVAILABLE at the start */
export async function startPulse(options: PulseOptions): Promise<Pulse> {
  const { reader, keys } = options
  let okAt = performance.now()
  let trouble: string | undefined
  let maxPayloadBytes: number = settings.max_payload_bytes.default
  let timer: NodeJS.Timeout | undefined
  let stopped = false

  async function look(): Promise<string> {
    const [storeId, largest] = (await reader.all([
      ['HGET', keys.identity, 'store_id'],
      ['HGET', keys.config, 'max_payload_bytes'],
    ])) as (string | null)[]
    if (largest !== null && /^[1-9]\d{0,15}$/.test(largest ?? '')) maxPayloadBytes = Number(largest)
    else maxPayloadBytes = settings.max_payload_bytes.default
    return storeId ?? ''
  }

  const storeId = await look()

  async function beat(): Promise<void> {
    let now: string | undefined
    try {
      const found = await look()
      if (found === storeId) okAt = performance.now()
      else now = `the record is another one: store ${found}, this process began with ${storeId}`
    } catch (error) {
      now = isHoldfastError(error) ? error.message : String(error)
    }
    if ((now === undefined) !== (trouble === undefined)) options.onChange(now)
    trouble = now
    if (!stopped) timer = setTimeout(() => void beat(), everyMs).unref()
  }

  timer = setTimeout(() => void beat(), everyMs).unref()
  return {
    ageMs: () => performance.now() - okAt,
    trouble: () => trouble,
    get maxPayloadBytes() {
      return maxPayloadBytes
    },
    stop: () => {
      stopped = true
      clearTimeout(timer)
    },
  }
}
