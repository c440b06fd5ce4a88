/** The part of a pino logger that a node uses. Payloads, results and secrets are never logged. */
export interface NodeLog {
  /** For whoever looks closely. */
  debug(particulars: object, message: string): void
  /** What happened. */
  info(particulars: object, message: string): void
  /** What went wrong and is put right, or tried again. */
  warn(particulars: object, message: string): void
  /** What somebody has to look at. */
  error(particulars: object, message: string): void
}

/** Logs nothing. */
export const silentLog: NodeLog = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
}
