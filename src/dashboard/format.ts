/** How long, in the one or two units that matter: `850 ms`, `4.2 s`, `3 min 5 s`, `2 h 10 min`, `3 d 4 h`. */
export function duration(ms: number): string {
  if (!Number.isFinite(ms)) return '–'
  if (ms < 1000) return `${Math.round(ms)} ms`
  const seconds = ms / 1000
  if (seconds < 10) return `${seconds.toFixed(1)} s`
  if (seconds < 60) return `${Math.floor(seconds)} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return two(minutes, 'min', Math.floor(seconds % 60), 's')
  const hours = Math.floor(minutes / 60)
  if (hours < 24) return two(hours, 'h', minutes % 60, 'min')
  return two(Math.floor(hours / 24), 'd', hours % 24, 'h')
}

function two(first: number, unit: string, second: number, smaller: string): string {
  return second === 0 ? `${first} ${unit}` : `${first} ${unit} ${second} ${smaller}`
}

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })
const fine = new Intl.NumberFormat('en', { maximumFractionDigits: 1 })

export function number(value: number): string {
  return whole.format(value)
}

/** A second. */
export function rate(value: number): string {
  return value < 10 ? fine.format(value) : whole.format(value)
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${number(count)} ${count === 1 ? one : many}`
}

export function bytes(count: number): string {
  if (count < 1024) return `${count} B`
  if (count < 1024 * 1024) return `${fine.format(count / 1024)} KiB`
  return `${fine.format(count / 1024 / 1024)} MiB`
}

/** A time of the record in the zone of whoever looks, to the millisecond. */
export function clockTime(ms: number): string {
  const date = new Date(ms)
  const pad = (value: number, places = 2) => String(value).padStart(places, '0')
  const day = `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`
  const time = `${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`
  return `${day} ${time}.${pad(date.getMilliseconds(), 3)}`
}

/** One word of a shell. */
export function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}

/** A name for machines as words: `session_missing` reads `session missing`. */
export function words(name: string): string {
  return name.replaceAll('_', ' ')
}
