import type { SettingView } from './upkeep-views.js'

/** One tunable of `{<hub>}:config` (contract section 9): read by the functions at every call. */
export interface Setting {
  /** Used when the field is missing or bad. */
  readonly default: number
  /** The least whole number that is taken. */
  readonly least: number
  /** The most that is taken: 1 where it is a switch, less than a timer takes where something waits by it. */
  readonly most?: number
  readonly meaning: string
}

/** Every tunable. lua/lib/config.lua holds the same numbers; a test compares them. */
export const settings = {
  accept_everysec: {
    default: 0,
    least: 0,
    most: 1,
    meaning: '1: appendfsync everysec is chosen: a power cut may take a second of what was acknowledged',
  },
  accept_unseen_config: {
    default: 0,
    least: 0,
    most: 1,
    meaning: '1: the server forbids CONFIG, and its durability was seen to by other means',
  },
  heartbeat_ms: { default: 2000, least: 50, most: 3_600_000, meaning: 'how often a node says that it lives' },
  inline_fan_out: {
    default: 128,
    least: 1,
    meaning: 'deliveries made by accept itself; the rest is an obligation',
  },
  log_length: { default: 100_000, least: 1000, meaning: 'entries kept in :log, about' },
  max_claim_bytes: { default: 16_777_216, least: 1024, meaning: 'payload bytes handed out by one claim' },
  max_payload_bytes: { default: 1_048_576, least: 1, meaning: 'the largest payload accepted' },
  max_queued_per_host: {
    default: 0,
    least: 0,
    meaning: 'entries a host stream may hold before accept refuses; 0: no limit',
  },
  max_recipients: { default: 10_000, least: 1, meaning: 'the most recipients of one message' },
  max_redrive: {
    default: 10,
    least: 1,
    meaning: 'attempts that may end as not_sent before a delivery is held',
  },
  max_result_bytes: { default: 262_144, least: 256, meaning: 'the largest result or error body of a report' },
  max_takeovers: {
    default: 5,
    least: 1,
    meaning: 'crashes of its owner after which a delivery is held as poison',
  },
  open_hosts: { default: 1, least: 0, most: 1, meaning: '0: refuse hosts that never joined' },
  recovery_age_ms: {
    default: 60_000,
    least: 0,
    meaning: 'age from which an effect may be taken over on a basis',
  },
  rehome_on_redrive: {
    default: 0,
    least: 0,
    most: 1,
    meaning: '1: what is redriven moves from a dead or retired host to another that serves its scope',
  },
  report_deadline_ms: { default: 900_000, least: 100, meaning: 'age at which an open attempt is overdue' },
  retention_ms: {
    default: 604_800_000,
    least: 1000,
    meaning: 'how long a settled message is kept: the dedup window',
  },
  stale_after_ms: { default: 10_000, least: 100, meaning: 'silence after which a node is taken for gone' },
  sweep_audit_ms: {
    default: 3_600_000,
    least: 0,
    meaning: 'how often the sweep audit runs; 0: not by itself',
  },
  sweep_claims_ms: {
    default: 30_000,
    least: 0,
    meaning: 'how often the sweep claims runs; 0: not by itself',
  },
  sweep_deadlines_ms: {
    default: 5000,
    least: 0,
    meaning: 'how often the sweep deadlines runs; 0: not by itself',
  },
  sweep_effects_ms: {
    default: 30_000,
    least: 0,
    meaning: 'how often the sweep effects runs; 0: not by itself',
  },
  sweep_fan_out_ms: {
    default: 15_000,
    least: 0,
    meaning: 'how often the sweep fan-out runs; 0: not by itself',
  },
  sweep_held_ms: { default: 15_000, least: 0, meaning: 'how often the sweep held runs; 0: not by itself' },
  sweep_nodes_ms: { default: 300_000, least: 0, meaning: 'how often the sweep nodes runs; 0: not by itself' },
  sweep_parked_ms: {
    default: 15_000,
    least: 0,
    meaning: 'how often the sweep parked runs; 0: not by itself',
  },
  sweep_rehome_ms: {
    default: 30_000,
    least: 0,
    meaning: 'how often the sweep rehome runs; 0: not by itself',
  },
  sweep_reports_ms: {
    default: 15_000,
    least: 0,
    meaning: 'how often the sweep reports runs; 0: not by itself',
  },
  sweep_retention_ms: {
    default: 60_000,
    least: 0,
    meaning: 'how often the sweep retention runs; 0: not by itself',
  },
  sweep_stale_ms: { default: 10_000, least: 0, meaning: 'how often the sweep stale runs; 0: not by itself' },
  viewer_payloads: {
    default: 0,
    least: 0,
    most: 1,
    meaning: '1: viewers may read the payloads of messages over HTTP',
  },
  wait_replicas: {
    default: 0,
    least: 0,
    meaning:
      'replicas that must have what was accepted, claimed, granted, settled, resolved or fenced before it is answered; 0: none',
  },
  wait_replicas_ms: {
    default: 1000,
    least: 10,
    most: 60_000,
    meaning: 'how long is waited for them; then the answer is NOT_REPLICATED',
  },
} as const satisfies Record<string, Setting>

/** The name of one of {@link settings}. */
export type SettingName = keyof typeof settings

/** What a text in the config hash stands for; undefined where it is no value of the setting, and its default is used. */
export function valueOfText(
  { least, most = Number.MAX_SAFE_INTEGER }: Setting,
  text: string,
): number | undefined {
  const value = /^[0-9]+$/.test(text) ? Number(text) : Number.NaN
  return value >= least && value <= most ? value : undefined
}

/** A setting as it works now; its default where the hub that was asked does not know it. */
export function settingIn(views: readonly SettingView[], name: SettingName): number {
  return views.find((view) => view.name === name)?.value ?? settings[name].default
}
