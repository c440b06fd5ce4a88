import { isHoldfastError } from '../contract/errors.js'
import type { HubCalls } from '../contract/hub.js'
import { ofHub } from '../contract/hub-set.js'
import { checkOptions, hubSet, option, optionsOf } from '../contract/options.js'
import { hubSetOf } from '../set/hub-set-of.js'
import { warnOfTrouble } from './durability.js'
import { type HubOptions, hubForms } from './hub-options.js'
import { openHub } from './open-hub.js'

/** Options of {@link openHubSet}. */
export interface HubSetOptions extends Omit<HubOptions, 'hub'> {
  /** The hubs of the set: `hubNames('hf-0..hf-7')`. */
  readonly hubs: readonly string[]
  /**
   * Go on where a hub cannot be opened, as long as one can: every call that needs it says why. Else the set is not
   * opened.
   */
  readonly withoutSome?: boolean | undefined
}

const { hub: _, ...oneForms } = hubForms
const form = optionsOf<HubSetOptions>({ ...oneForms, hubs: hubSet, withoutSome: option.flag })

/**
 * Opens a set of hubs over their records; of one hub it is that hub. Those that opened are closed where one fails.
 * @throws STORE_UNKNOWN when one has no record (run `holdfast init --hubs …`), STORE_UNAVAILABLE, INVALID_ARGUMENT
 */
export async function openHubSet(options: HubSetOptions): Promise<HubCalls> {
  checkOptions('openHubSet', form, options)
  const { hubs: names, withoutSome, ...common } = options
  // Hubs of one server have its troubles in common.
  const told = new Set<string>()
  const onTrouble = (trouble: string) => {
    if (!told.has(trouble)) (common.onTrouble ?? warnOfTrouble)(trouble)
    told.add(trouble)
  }
  const tries = await Promise.allSettled(names.map((hub) => openHub({ ...common, hub, onTrouble })))
  const found = tries.map((each) => (each.status === 'fulfilled' ? each.value : undefined))
  const failures = tries.map((each) => (each.status === 'rejected' ? (each.reason as unknown) : undefined))
  const at = failures.findIndex((failure) => failure !== undefined)
  if (at < 0 || (withoutSome === true && found.some((hub) => hub !== undefined))) {
    return hubSetOf(new Map(names.map((name, place) => [name, found[place] ?? awayOf(failures[place])])))
  }
  await Promise.allSettled(found.map((hub) => hub?.close()))
  const failure = failures[at]
  throw names.length > 1 && isHoldfastError(failure) ? ofHub(names[at] ?? '', failure) : failure
}

/** Stands where a hub could not be opened: every call fails as the opening did. */
function awayOf(failure: unknown): HubCalls {
  const events = {
    next: () => Promise.reject(failure),
    return: () => Promise.resolve({ done: true, value: undefined }),
    [Symbol.asyncIterator]: () => events,
  }
  const call = (name: string | symbol) => {
    if (name === 'close') return () => Promise.resolve()
    return name === 'events' ? () => events : () => Promise.reject(failure)
  }
  return new Proxy({} as HubCalls, { get: (_, name) => call(name) })
}
