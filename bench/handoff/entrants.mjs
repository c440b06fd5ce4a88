// @ts-check
// The systems that `handoff` measures, as far as this machine has their servers.
import { canWriteThrough, ensureNats, natsFacts, startNats } from '../nats-server.mjs'
import { postgresVersion, startPostgres, whyNoPostgres } from '../postgres-server.mjs'
import { startServer } from '../server.mjs'
import { openBullmq } from './bullmq.mjs'
import { openFunctions } from './functions.mjs'
import { openHoldfast } from './holdfast.mjs'
import { openNats } from './nats.mjs'
import { openPgBoss } from './pgboss.mjs'
import { openRaw } from './raw.mjs'

/** @typedef {import('./round.mjs').Entrant} Entrant */
/** @typedef {{ entrants: Record<string, Entrant>, skipped: Record<string, string> }} Field */

const redis = { redis: true, start: startServer, fsync: 'before each answer (AOF always)' }

/** @satisfies {Record<string, Entrant>} */
const always = {
  raw: { ...redis, label: 'raw streams: XADD, XREADGROUP/XACK/XDEL in hundreds', open: openRaw },
  functions: { ...redis, label: 'functions only: typed callers in hundreds, no mirror', open: openFunctions },
  holdfast: { ...redis, label: 'hub and node, with its mirror', open: openHoldfast },
  bullmq: { ...redis, label: 'BullMQ: add with jobId, one worker at concurrency 100', open: openBullmq },
}

/** @param {string} dir where the servers keep their files @returns {Field} */
export function fieldOf(dir) {
  const parts = [{ entrants: always, skipped: {} }, natsField(dir), pgbossField(dir)]
  return {
    entrants: Object.assign({}, ...parts.map((part) => part.entrants)),
    skipped: Object.assign({}, ...parts.map((part) => part.skipped)),
  }
}

/** @param {string} dir @returns {Field} */
function natsField(dir) {
  if (!ensureNats()) {
    const reason = 'no nats-server here; on Debian: apt-get install nats-server'
    return { entrants: {}, skipped: { nats: reason, nats_single: reason, nats_synced: reason } }
  }
  const { version, syncsAlways } = natsFacts()
  const what = `NATS JetStream ${version}: files, msgID`
  const common = {
    redis: false,
    start: startNats,
    fsync: syncsAlways
      ? 'before each answer (sync_interval: always)'
      : 'every two minutes, not before answers',
  }
  /** @param {boolean} double @returns {Entrant['open']} */
  const open = (double) => (place) => openNats(place, { double })
  const nats = { ...common, label: `${what}, double ack`, open: open(true) }
  const single = { ...common, label: `${what}, single ack`, open: open(false) }
  const synced = {
    ...nats,
    label: `${what}, double ack, its folder written through`,
    fsync: 'every write, one by one (chattr +S)',
    start: (/** @type {string} */ at) => startNats(at, { writeThrough: true }),
  }
  if (syncsAlways) {
    return {
      entrants: { nats, nats_single: single },
      skipped: { nats_synced: 'nats itself syncs before each answer' },
    }
  }
  if (!canWriteThrough(dir)) {
    return {
      entrants: { nats, nats_single: single },
      skipped: { nats_synced: 'the file system knows no chattr +S' },
    }
  }
  return { entrants: { nats, nats_single: single, nats_synced: synced }, skipped: {} }
}

/** @param {string} dir @returns {Field} */
function pgbossField(dir) {
  const reason = whyNoPostgres(dir)
  if (reason !== undefined) return { entrants: {}, skipped: { pgboss: reason } }
  const pgboss = {
    redis: false,
    start: startPostgres,
    fsync: 'before each answer (fsync and synchronous_commit on)',
    label: `pg-boss 10 on PostgreSQL ${postgresVersion()}: send with id, fetch and complete in hundreds`,
    open: openPgBoss,
  }
  return { entrants: { pgboss }, skipped: {} }
}
