import type { Command } from 'commander'
import { z } from 'zod'
import { naming } from '../contract/hub-set.js'
import type { RedisAddress } from '../contract/redis-address.js'
import { openStore, type Store } from '../record/connections.js'
import { loadLibraryEverywhere, type OnPrimary } from '../record/every-primary.js'
import { keysOf } from '../record/keys.js'
import {
  type LibraryState,
  type LoadedLibrary,
  loadLibrary,
  nextStepFor,
  verifyLibrary,
} from '../record/library.js'
import type { Settings } from './config.js'
import { hubsOf, isSet, withRecord } from './context.js'
import { exitCodes } from './failure.js'
import { action } from './flags.js'
import { answer, fields, print, say } from './output.js'

/** `holdfast functions load|verify`: the function library on the server. */
export function addFunctions(program: Command): void {
  const functions = program.command('functions').description('the function library on the server')
  functions
    .command('load')
    .description('bring the library to the server; a newer one there is left alone')
    .action(
      action(z.object({}), async (_, { settings, json }) => {
        const loaded = await withStores(settings, true, (store) => loadLibrary(store))
        const everywhere = settings.redis === undefined ? [] : await loadLibraryEverywhere(settings.redis)
        const failed = everywhere.filter(({ failure }) => failure !== undefined)
        answer(
          json,
          {
            ...asOne(settings, loaded),
            ...(everywhere.length === 0 ? {} : { primaries: everywhere.map(shownOf) }),
          },
          () => {
            eachOf(loaded, printLoaded)
            for (const each of everywhere)
              say(`  ${each.primary}: ${each.loaded?.kind ?? String(each.failure)}`)
          },
        )
        return failed.length > 0 ? exitCodes.unhealthy : exitCodes.ok
      }),
    )
  functions
    .command('verify')
    .description("compare the server's library with this package's, changing nothing; 4 when they differ")
    .action(
      action(z.object({}), async (_, { settings, json }) => {
        const states = await withStores(settings, false, (store) => verifyLibrary(store))
        answer(json, asOne(settings, states), () => eachOf(states, printState))
        const next = new Set(states.flatMap((state) => nextStepFor(state) ?? []))
        if (!json) for (const each of next) say(`  next: ${each}`)
        return next.size === 0 ? exitCodes.ok : exitCodes.unhealthy
      }),
    )
}

/** For each hub: in a Cluster their servers differ. */
function withStores<Answer>(
  settings: Settings,
  create: boolean,
  use: (store: Store) => Promise<Answer>,
): Promise<(Answer & { readonly hub: string })[]> {
  return withRecord(
    settings,
    async ({ redis }) => {
      const answers = []
      for (const hub of hubsOf(settings)) answers.push({ ...(await onStore(redis, hub, use)), hub })
      return answers
    },
    { create },
  )
}

async function onStore<Answer>(
  url: RedisAddress,
  hub: string,
  use: (store: Store) => Promise<Answer>,
): Promise<Answer> {
  return await naming(hub, async () => {
    const store = await openStore({ url, tag: keysOf(hub).tag, name: 'holdfast-functions' })
    try {
      return await use(store)
    } finally {
      await store.close()
    }
  })
}

/** The answer of one hub alone is as it always was. */
function asOne<Answer extends { readonly hub: string }>(
  settings: Settings,
  answers: readonly Answer[],
): object {
  if (isSet(settings)) return { hubs: answers }
  const [{ hub: _, ...only } = { hub: '' }] = answers
  return only
}

function eachOf<Answer extends { readonly hub: string }>(
  answers: readonly Answer[],
  show: (answer: Answer) => void,
): void {
  for (const each of answers) {
    if (answers.length > 1) print(fields([['hub', each.hub]]))
    show(each)
  }
}

function shownOf({ primary, loaded, failure }: OnPrimary): object {
  return { primary, ...(loaded ?? { failure: failure instanceof Error ? failure.message : String(failure) }) }
}

function printState(state: LibraryState): void {
  print(
    fields([
      ['library', state.kind],
      ['version', state.kind === 'missing' ? undefined : state.version],
      ['sha256', state.digest],
      ['on the server', state.kind === 'differs' ? state.serverDigest : undefined],
    ]),
  )
}

function printLoaded(loaded: LoadedLibrary): void {
  print(
    fields([
      ['library', loaded.kind],
      ['version', loaded.version],
    ]),
  )
}
