import { expect, it } from 'vitest'
import { createBatcher } from '../../src/contract/batcher.js'
import { until } from '../support/until.js'

/** Sends whose answers the test gives. */
function sends() {
  const batches: {
    items: readonly string[]
    answer(results?: readonly string[]): void
    fail(error: Error): void
  }[] = []
  const send = (items: readonly string[]) =>
    new Promise<readonly string[]>((resolve, reject) => {
      batches.push({
        items,
        answer: (results = items.map((item) => `${item}!`)) => resolve(results),
        fail: reject,
      })
    })
  return { batches, send, nth: (n: number) => until(() => batches[n - 1], { everyMs: 0 }) }
}

it('gathers what comes in one turn into one batch, and answers each its own', async () => {
  const { batches, send, nth } = sends()
  const { submit } = createBatcher({ most: 10, send })
  const answers = Promise.all(['a', 'b', 'c'].map(submit))
  const first = await nth(1)
  expect(first.items).toEqual(['a', 'b', 'c'])
  first.answer()
  expect(await answers).toEqual(['a!', 'b!', 'c!'])
  expect(batches).toHaveLength(1)
})

it('sends one batch at a time; what comes meanwhile goes into the next', async () => {
  const { batches, send, nth } = sends()
  const { submit } = createBatcher({ most: 10, send })
  const one = submit('a')
  const first = await nth(1)
  const rest = Promise.all(['b', 'c'].map(submit))
  expect(batches).toHaveLength(1)
  first.answer()
  expect(await one).toBe('a!')
  const second = await nth(2)
  expect(second.items).toEqual(['b', 'c'])
  second.answer()
  expect(await rest).toEqual(['b!', 'c!'])
})

it('puts no more than `most` into one batch, in order', async () => {
  const { send, nth } = sends()
  const { submit } = createBatcher({ most: 2, send })
  const answers = Promise.all(['a', 'b', 'c', 'd', 'e'].map(submit))
  const seen: (readonly string[])[] = []
  for (const n of [1, 2, 3]) {
    const batch = await nth(n)
    seen.push(batch.items)
    batch.answer()
  }
  expect(seen).toEqual([['a', 'b'], ['c', 'd'], ['e']])
  expect(await answers).toHaveLength(5)
})

it('rejects all of a batch that failed, and goes on with the next', async () => {
  const { send, nth } = sends()
  const { submit } = createBatcher({ most: 10, send })
  const failing = Promise.allSettled(['a', 'b'].map(submit))
  const first = await nth(1)
  const later = submit('c')
  first.fail(new Error('no answer'))
  expect((await failing).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  const second = await nth(2)
  second.answer()
  expect(await later).toBe('c!')
})

it('rejects those that a short answer left out', async () => {
  const { send, nth } = sends()
  const { submit } = createBatcher({ most: 10, send })
  const both = Promise.allSettled(['a', 'b'].map(submit))
  const first = await nth(1)
  first.answer(['a!'])
  expect((await both).map(({ status }) => status)).toEqual(['fulfilled', 'rejected'])
})

it('goes on after a send that throws at once', async () => {
  let calls = 0
  const { submit } = createBatcher<string, string>({
    most: 10,
    send: (items) => {
      calls += 1
      if (calls === 1) throw new Error('not even sent')
      return Promise.resolve(items)
    },
  })
  await expect(submit('a')).rejects.toThrow('not even sent')
  expect(await submit('b')).toBe('b')
})

it('has as many batches under way as it may, and no more', async () => {
  const { batches, send, nth } = sends()
  const { submit } = createBatcher({ most: 10, atOnce: 2, send })
  const answers = [submit('a')]
  await nth(1)
  answers.push(submit('b'))
  const second = await nth(2)
  answers.push(submit('c'), submit('d'))
  second.answer()
  expect((await nth(3)).items).toEqual(['c', 'd'])
  expect(batches).toHaveLength(3)
  for (const each of batches) each.answer()
  expect(await Promise.all(answers)).toEqual(['a!', 'b!', 'c!', 'd!'])
})

it('puts no more into one batch than it may weigh; what is heavier goes alone', async () => {
  const { send, nth } = sends()
  const weight = { most: 5, of: (item: string) => item.length }
  const { submit } = createBatcher({ most: 10, weight, send })
  const answers = Promise.all(['aa', 'bbb', 'c', 'dddddddd', 'e'].map(submit))
  const seen: (readonly string[])[] = []
  for (const n of [1, 2, 3, 4]) {
    const batch = await nth(n)
    seen.push(batch.items)
    batch.answer()
  }
  expect(seen).toEqual([['aa', 'bbb'], ['c'], ['dddddddd'], ['e']])
  expect(await answers).toHaveLength(5)
})
