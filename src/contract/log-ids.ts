const logIdPattern = /^\d{1,15}-\d{1,15}$/

/** Whether an entry of the log can have this id, `<ms>-<n>`: a stream never has 0-0. */
export function isLogId(text: string): boolean {
  return logIdPattern.test(text) && isAfter(text, '0-0')
}

/** True when an entry of the log came after the other. Ids are `<ms>-<n>`. */
export function isAfter(one: string, other: string): boolean {
  const [ms = 0, sequence = 0] = one.split('-').map(Number)
  const [otherMs = 0, otherSequence = 0] = other.split('-').map(Number)
  return ms > otherMs || (ms === otherMs && sequence > otherSequence)
}
