import type { OpenRecord } from './record.js'

export const dayMs = 86_400_000

/** As if everything had been settled so many days earlier. */
export async function passDays(record: OpenRecord, days: number): Promise<void> {
  const dump = await record.dump()
  const { tag } = record.keys
  for (const [list, set] of [
    ['settled', 'settled_days'],
    ['settled_effects', 'settled_effect_days'],
  ] as const) {
    const listed = dump[`:${set}`]
    for (const day of listed?.type === 'set' ? listed.value : []) {
      const earlier = Number(day) - days
      await record.send('RENAME', `${tag}:${list}:${day}`, `${tag}:${list}:${earlier}`)
      await record.send('SREM', `${tag}:${set}`, day)
      await record.send('SADD', `${tag}:${set}`, earlier)
    }
  }
  for (const [key, value] of Object.entries(dump)) {
    const at =
      value.type === 'hash' && /^:(message|effect):/.test(key) ? value.value['settled_at'] : undefined
    if (at !== undefined) await record.send('HSET', `${tag}${key}`, 'settled_at', Number(at) - days * dayMs)
  }
}
