/** True when an entry of the log came after the other. Ids are `<ms>-<n>`. */
export function isAfter(one: string, other: string): boolean {
  const [ms = 0, sequence = 0] = one.split('-').map(Number)
  const [otherMs = 0, otherSequence = 0] = other.split('-').map(Number)
  return ms > otherMs || (ms === otherMs && sequence > otherSequence)
}
