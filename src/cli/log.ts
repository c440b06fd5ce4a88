import { type Logger, pino } from 'pino'
import { visible } from './output.js'

/** Nothing logs these; should something ever, they do not come out. */
const secrets = ['token', 'payload', 'authorization', 'password'].flatMap((name) => [
  name,
  `*.${name}`,
  `*.*.${name}`,
])

/** Logs to stderr: JSON lines where a machine reads them, short lines on a terminal. */
export function openLog(json: boolean): Logger {
  const options = { level: process.env['HOLDFAST_LOG_LEVEL'] || 'info', base: null, redact: secrets }
  if (json || process.stderr.isTTY !== true) return pino(options, pino.destination({ dest: 2, sync: true }))
  return pino(options, { write: (line: string) => process.stderr.write(`${shortLine(line)}\n`) })
}

/** `12:03:04 warn the text name=value`, from one line of pino. */
export function shortLine(line: string): string {
  const { time, level, msg, ...rest } = JSON.parse(line) as Record<string, unknown>
  const clock = new Date(Number(time)).toISOString().slice(11, 19)
  const words = Object.entries(rest).map(([name, value]) => `${name}=${wordOf(value)}`)
  return visible([clock, levelName(Number(level)), String(msg ?? ''), ...words].join(' '))
}

function levelName(level: number): string {
  return pino.levels.labels[level] ?? String(level)
}

function wordOf(value: unknown): string {
  if (typeof value === 'object' && value !== null && 'message' in value) return JSON.stringify(value.message)
  return typeof value === 'string' && /^[^\s"]+$/.test(value) ? value : JSON.stringify(value)
}
