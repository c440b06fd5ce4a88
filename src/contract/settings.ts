/** One tunable of `{<hub>}:config` (contract section 9): read by the functions at every call. */
export interface Setting {
  /** Used when the field is missing or bad. */
  readonly default: number
  /** The least whole number that is taken. */
  readonly least: number
  readonly meaning: string
}

/** Every tunable. lua/lib/config.lua holds the same numbers; a test compares them. */
export const settings = {
  heartbeat_ms: { default: 2000, least: 50, meaning: 'how often a node says that it lives' },
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
  open_hosts: { default: 1, least: 0, meaning: '0: refuse hosts that never joined' },
  recovery_age_ms: {
    default: 60_000,
    least: 0,
    meaning: 'age from which an effect may be taken over on a basis',
  },
  rehome_on_redrive: {
    default: 0,
    least: 0,
    meaning: '1: what is redriven moves from a dead or retired host to another that serves its scope',
  },
  report_deadline_ms: { default: 900_000, least: 100, meaning: 'age at which an open attempt is overdue' },
  retention_ms: {
    default: 604_800_000,
    least: 1000,
    meaning: 'how long a settled message is kept: the dedup window',
  },
  stale_after_ms: { default: 10_000, least: 100, meaning: 'silence after which a node is taken for gone' },
} as const satisfies Record<string, Setting>

export type SettingName = keyof typeof settings
