import { isHoldfastError } from '../contract/errors.js'
import { settingIn } from '../contract/settings.js'
import { checkDurability } from '../record/durability.js'
import { type LibraryState, libraryVersion, nextStepFor, verifyLibrary } from '../record/library.js'
import { paceProblem, readConfiguration } from './configuration.js'
import { acceptedBy } from './durability.js'
import type { HubParts } from './parts.js'
import { readSweeps } from './sweeps.js'
import { disagreementsOf } from './tally.js'

/** One check of the whole: what is, whether that is right, and what to do about it. */
export interface Finding {
  readonly name: string
  readonly value: string
  /** `attention`: it works, but somebody waits for an operator. */
  readonly verdict: 'ok' | 'accepted' | 'attention' | 'bad'
  readonly fix?: string | undefined
}

/** What an examination works with. A hub that is opened loads the library, and would hide that it was gone. */
export type ExaminedParts = Pick<HubParts, 'store' | 'functions' | 'reader' | 'keys'>

/**
 * Looks at server, record, library, settings, sweeps and lists. Changes nothing.
 * @throws STORE_UNAVAILABLE, DEADLINE_EXCEEDED
 */
export async function examine(parts: ExaminedParts): Promise<Finding[]> {
  try {
    return await examineRecord(parts)
  } catch (error) {
    if (!isHoldfastError(error, 'STORE_UNKNOWN')) throw error
    return await examineServer(parts)
  }
}

/** What can be looked at where there is no record, or none any more. */
async function examineServer({ store, keys }: ExaminedParts): Promise<Finding[]> {
  const fix = 'holdfast init; where there was one, restore it first, or: holdfast init --after-loss'
  return [
    ...(await checkDurability(store, { everysec: false, unseenConfig: false })),
    { name: 'record', value: `none under ${keys.tag}`, verdict: 'bad', fix },
    libraryFinding(await verifyLibrary(store)),
  ]
}

async function examineRecord({ store, functions, reader, keys }: ExaminedParts): Promise<Finding[]> {
  const settings = await readConfiguration(reader, keys)
  const durability = await checkDurability(store, acceptedBy(settings))
  const identity = await reader.hash(keys.identity)
  const library = await verifyLibrary(store)
  const sweeps = await readSweeps(reader, keys)
  const sizes = (await reader.all([
    ['ZCARD', keys.held],
    ['ZCARD', keys.unknown],
    ['ZCARD', keys.stranded],
    ['ZCARD', keys.obligations],
  ])) as number[]
  const [held = 0, unknown = 0, stranded = 0, obligations = 0] = sizes
  // A call of a function that is gone would load the library.
  const totals = library.kind === 'loaded' ? disagreementsOf(await functions.tally()) : []
  return [
    ...durability,
    {
      name: 'record',
      value: `store ${identity.get('store_id') ?? '?'}, generation ${identity.get('generation') ?? '?'}`,
      verdict: 'ok',
    },
    attestationFinding(identity),
    libraryFinding(library),
    ...(await replicaFindings(store, settingIn(settings, 'wait_replicas'))),
    ...tagFindings(keys.tag, Number(await store.call(['EXISTS', keys.tag]))),
    ...settings
      .filter(({ bad }) => bad)
      .map(({ name, set = '' }): Finding => {
        const fix = `holdfast config set ${name} … (until then the default is used), or redis-cli HDEL '${keys.config}' '${name}'`
        return { name: `setting ${name}`, value: set, verdict: 'bad', fix }
      }),
    ...paceFindings(paceProblem(settings)),
    ...sweeps
      .filter(({ late, error }) => late || error !== undefined)
      .map(({ name, error, ageMs }): Finding => {
        const since =
          ageMs === undefined ? 'never succeeded' : `last succeeded ${Math.round(ageMs / 1000)} s ago`
        const fix = `run a hub (holdfast serve), or: holdfast sweep run ${name}`
        return { name: `sweep ${name}`, value: error ?? since, verdict: 'bad', fix }
      }),
    ...totals.map(
      ({ about, what }): Finding => ({ name: about, value: what, verdict: 'bad', fix: 'holdfast audit' }),
    ),
    waiting('held', held, 'holdfast held ls'),
    waiting('unknown', unknown, 'holdfast unknown ls'),
    waiting('stranded hosts', stranded, 'holdfast host ls'),
    waiting('obligations', obligations, 'holdfast sweep run fan-out'),
  ]
}

function paceFindings(problem: string | undefined): readonly Finding[] {
  if (problem === undefined) return []
  const fix = 'holdfast config set stale_after_ms … (three to five heartbeats), or a smaller heartbeat_ms'
  return [{ name: 'heartbeats', value: problem, verdict: 'attention', fix }]
}

function libraryFinding(library: LibraryState): Finding {
  const name = 'library'
  if (library.kind === 'loaded') return { name, value: `version ${library.version}`, verdict: 'ok' }
  const isNewer = library.kind === 'differs' && library.version > libraryVersion
  const value = isNewer ? `version ${library.version}, newer` : library.kind
  return { name, value, verdict: 'bad', fix: nextStepFor(library) }
}

/** Whether as many replicas are in step as answers have to wait for. */
async function replicaFindings(store: ExaminedParts['store'], wanted: number): Promise<readonly Finding[]> {
  if (wanted === 0) return []
  const info = String(await store.call(['INFO', 'replication']))
  const inStep = info.split('\n').filter((line) => /^slave\d+:.*state=online/.test(line)).length
  const value = `${inStep} in step, answers wait for ${wanted}`
  if (inStep >= wanted) return [{ name: 'replicas', value, verdict: 'ok' }]
  const fix =
    'mend the replicas; until then nothing is answered (NOT_REPLICATED), or: holdfast config set wait_replicas 0'
  return [{ name: 'replicas', value, verdict: 'bad', fix }]
}

/** A key of the tag's own name would let functions run where their slot is half moved (docs/cluster.md). */
function tagFindings(tag: string, exists: number): readonly Finding[] {
  if (exists === 0) return []
  const fix = `it is no key of the record: redis-cli UNLINK '${tag}'`
  return [{ name: 'tag', value: `there is a key named ${tag}`, verdict: 'bad', fix }]
}

/** Whether work is granted: after every start of the server only once its record was compared with what was seen of it. */
function attestationFinding(identity: ReadonlyMap<string, string>): Finding {
  const [attesting, rewound] = [identity.get('attesting'), identity.get('rewound_why')]
  if (attesting === undefined) {
    return {
      name: 'attestation',
      value: rewound === undefined ? 'whole' : `history was lost: ${rewound}`,
      verdict: 'ok',
    }
  }
  const fix = 'run a hub (holdfast serve) and the nodes; it is settled after stale_after_ms at most'
  return { name: 'attestation', value: 'not attested since the server started', verdict: 'attention', fix }
}

function waiting(name: string, count: number, fix: string): Finding {
  return count === 0
    ? { name, value: '0', verdict: 'ok' }
    : { name, value: String(count), verdict: 'attention', fix }
}
