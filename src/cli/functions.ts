import type { Command } from 'commander'
import { z } from 'zod'
import { openStore, type Store } from '../record/connections.js'
import { keysOf } from '../record/keys.js'
import { type LibraryState, type LoadedLibrary, loadLibrary, verifyLibrary } from '../record/library.js'
import type { Settings } from './config.js'
import { withRecord } from './context.js'
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
        const loaded = await withStore(settings, true, (store) => loadLibrary(store))
        answer(json, loaded, printLoaded)
      }),
    )
  functions
    .command('verify')
    .description("compare the server's library with this package's, changing nothing; 4 when they differ")
    .action(
      action(z.object({}), async (_, { settings, json }) => {
        const state = await withStore(settings, false, (store) => verifyLibrary(store))
        answer(json, state, printState)
        if (state.kind === 'loaded') return exitCodes.ok
        if (!json) say('  next: run `holdfast functions load`')
        return exitCodes.unhealthy
      }),
    )
}

function withStore<Answer>(
  settings: Settings,
  create: boolean,
  use: (store: Store) => Promise<Answer>,
): Promise<Answer> {
  return withRecord(
    settings,
    async ({ redis }) => {
      const store = await openStore({ url: redis, tag: keysOf(settings.hub).tag, name: 'holdfast-functions' })
      try {
        return await use(store)
      } finally {
        await store.close()
      }
    },
    { create },
  )
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
