// @ts-check

/** INFO commandstats since the last call. @param {{ call: (command: string, ...args: string[]) => Promise<unknown> }} redis */
export async function takeCommandStats(redis) {
  const info = String(await redis.call('INFO', 'commandstats'))
  await redis.call('CONFIG', 'RESETSTAT')
  return info
}
