import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

// What the benchmark alone needs: npm may put `pg` where BullMQ, which can use it, would take it into production.

const lock = JSON.parse(readFileSync(new URL('../../package-lock.json', import.meta.url), 'utf8')) as {
  packages: Record<string, { dev?: boolean; resolved?: string }>
}

test('the peers of the benchmark and all they bring are for development only', () => {
  const peers = Object.entries(lock.packages).filter(([path]) =>
    /node_modules\/(pg|pg-.+|postgres-.+|@nats-io\/.+)$/.test(path),
  )
  expect(peers.length).toBeGreaterThan(5)
  expect(peers.filter(([, { dev }]) => dev !== true).map(([path]) => path)).toEqual([])
})

test('the lock file records no addresses', () => {
  expect(Object.values(lock.packages).filter(({ resolved }) => resolved?.includes('://'))).toEqual([])
})
