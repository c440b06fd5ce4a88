/** The part of a pino logger that a node uses. Payloads, results and secrets are never logged. */
export interface NodeLog {
  debug(particulars: object, message: string): void
  info(particulars: object, message: string): void
  warn(particulars: object, message: string): void
  error(particulars: object, message: string): void
}

/** Logs nothing. */
export const silentLog: NodeLog = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
}
