import { isHoldfastError } from '../contract/errors.js'
import { settingIn } from '../contract/settings.js'
import type { SettingView } from '../contract/upkeep-views.js'
import { readConfiguration } from '../hub/configuration.js'
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
  readonly maxRecipients: number
  stop(): void
}

export interface PulseOptions {
  readonly reader: Reader
  readonly keys: Keys
  /** Told when the record goes wrong and when it is right again, once each. */
  onChange(trouble: string | undefined): void
}

const everyMs = 1000

interface Identity {
  readonly storeId: string
  /** 0 unless the record was made anew after a loss: then it is by the time of that. */
  readonly generation: number
}

/** Whether somebody said, by `init --after-loss`, that this record takes the place of the one that was known. */
function isAfterLoss(found: Identity, known: Identity): boolean {
  return found.generation > 0 && found.generation >= known.generation
}

/** @throws STORE_UNKNOWN, STORE_UNAVAILABLE at the start */
export async function startPulse(options: PulseOptions): Promise<Pulse> {
  const { reader, keys, onChange } = options
  let okAt = performance.now()
  let trouble: string | undefined
  let settings: readonly SettingView[] = []
  let timer: NodeJS.Timeout | undefined
  let stopped = false

  async function look(): Promise<Identity> {
    const [identity, configuration] = await Promise.all([
      reader.hash(keys.identity),
      readConfiguration(reader, keys),
    ])
    settings = configuration
    return { storeId: identity.get('store_id') ?? '', generation: Number(identity.get('generation') ?? 0) }
  }

  let known = await look()

  async function beat(): Promise<void> {
    let now: string | undefined
    try {
      const found = await look()
      if (found.storeId === known.storeId || isAfterLoss(found, known)) {
        known = found
        okAt = performance.now()
      } else {
        now = `the record is another one: store ${found.storeId}, not ${known.storeId}`
      }
    } catch (error) {
      now = isHoldfastError(error) ? error.message : String(error)
    }
    if ((now === undefined) !== (trouble === undefined)) onChange(now)
    trouble = now
    if (!stopped) timer = setTimeout(() => void beat(), everyMs).unref()
  }

  timer = setTimeout(() => void beat(), everyMs).unref()
  return {
    ageMs: () => performance.now() - okAt,
    trouble: () => trouble,
    get maxPayloadBytes() {
      return settingIn(settings, 'max_payload_bytes')
    },
    get maxRecipients() {
      return settingIn(settings, 'max_recipients')
    },
    stop: () => {
      stopped = true
      clearTimeout(timer)
    },
  }
}
