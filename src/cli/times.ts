const unitsMs: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
}
const rfc3339 = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/

/** `500ms`, `30s`, `5m`, `2h`, `1d` or plain milliseconds, in whole milliseconds; undefined for anything else. */
export function parseDuration(text: string): number | undefined {
  const found = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)?$/.exec(text)
  if (found === null) return undefined
  const ms = Math.round(Number(found[1]) * (unitsMs[found[2] ?? 'ms'] ?? 1))
  return Number.isSafeInteger(ms) ? ms : undefined
}

/** RFC 3339 with an offset, Unix milliseconds, or a duration with its unit from now, as Unix milliseconds. */
export function parseTime(text: string, nowMs: number = Date.now()): number | undefined {
  if (/^\d+$/.test(text)) return Number.isSafeInteger(Number(text)) ? Number(text) : undefined
  if (rfc3339.test(text)) {
    const ms = new Date(text).getTime()
    return Number.isNaN(ms) ? undefined : ms
  }
  const fromNow = parseDuration(text)
  return fromNow === undefined ? undefined : nowMs + fromNow
}

/** ISO 8601 in UTC; the figure itself when it is no time. */
export function isoTime(ms: number): string {
  const time = new Date(ms)
  return Number.isNaN(time.getTime()) ? String(ms) : time.toISOString()
}

/** A length of time for people, in its two largest units. */
export function shortDuration(ms: number): string {
  const whole = Math.max(0, Math.round(ms))
  if (whole < 1000) return `${whole}ms`
  if (whole < 60_000) return `${Math.floor(whole / 100) / 10}s`
  if (whole < 3_600_000) return `${Math.floor(whole / 60_000)}m${Math.floor((whole % 60_000) / 1000)}s`
  if (whole < 86_400_000) {
    return `${Math.floor(whole / 3_600_000)}h${Math.floor((whole % 3_600_000) / 60_000)}m`
  }
  return `${Math.floor(whole / 86_400_000)}d${Math.floor((whole % 86_400_000) / 3_600_000)}h`
}
