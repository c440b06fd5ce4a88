import { describe, expect, it, test } from 'vitest'
import { isHoldfastError } from '../../src/contract/errors.js'
import { hubNames, hubOf, partsOfId, qualifiedId } from '../../src/contract/hub-set.js'

const eight = hubNames('hf-0..hf-7')
const conversations = Array.from({ length: 8000 }, (_, at) => `conversation ${at}`)

describe('names of a set', () => {
  it.each([
    ['hf', ['hf']],
    ['hf-0..hf-2', ['hf-0', 'hf-1', 'hf-2']],
    ['a, b,c', ['a', 'b', 'c']],
    ['a,x9..x11', ['a', 'x9', 'x10', 'x11']],
    ['hf-08..hf-10', ['hf-08', 'hf-09', 'hf-10']],
    ['3..4', ['3', '4']],
    ['hf-5..hf-5', ['hf-5']],
    ['hf-0..hf-63', Array.from({ length: 64 }, (_, at) => `hf-${at}`)],
  ])('%j are read', (text, names) => {
    expect(hubNames(text)).toEqual(names)
  })

  it.each([
    ['', 'a name is empty'],
    ['a,,b', 'a name is empty'],
    ['a,a', 'hub a is named twice'],
    ['hf-0..hf-2,hf-1', 'hub hf-1 is named twice'],
    ['hf-2..hf-0', 'runs backwards'],
    ['hf-0..hg-2', 'is no range'],
    ['a..b', 'is no range'],
    ['hf-0..hf-64', 'over 64 hubs'],
    ['hf-0..hf-63,x', '65 hubs are more than 64'],
    ['hf-0..hf-99999999999999999999', 'runs backwards'],
    ['Hf', 'must match'],
    ['hf:1', 'must match'],
  ])('%j are refused, and the next step is said', (text, why) => {
    const error = caught(() => hubNames(text))
    expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringContaining(why) })
    expect(error).toMatchObject({ next: expect.stringContaining('hf-0..hf-7'), current: expect.anything() })
  })
})

describe('the hub of a conversation', () => {
  // Never to be changed: another hub would be asked for conversations that are under way.
  it.each([
    ['c1', 'hf-4'],
    ['c2', 'hf-5'],
    ['order-17', 'hf-7'],
    ['', 'hf-2'],
    ['a b/c:d', 'hf-4'],
    ['conversation 7999', 'hf-1'],
  ])('%j is the same for ever', (conversation, hub) => {
    expect(hubOf(conversation, eight)).toBe(hub)
  })

  test('does not depend on the order of the names', () => {
    const backwards = [...eight].reverse()
    for (const each of conversations.slice(0, 500)) expect(hubOf(each, backwards)).toBe(hubOf(each, eight))
  })

  test('is any of the set, each about as often', () => {
    const counts = new Map<string, number>()
    for (const each of conversations)
      counts.set(hubOf(each, eight), (counts.get(hubOf(each, eight)) ?? 0) + 1)
    expect(counts.size).toBe(8)
    for (const count of counts.values()) expect(Math.abs(count - 1000)).toBeLessThan(150)
  })

  test('changes only for the share of a hub that is added, and only to it', () => {
    const nine = [...eight, 'hf-8']
    const moved = conversations.filter((each) => hubOf(each, eight) !== hubOf(each, nine))
    expect(new Set(moved.map((each) => hubOf(each, nine)))).toEqual(new Set(['hf-8']))
    expect(Math.abs(moved.length / conversations.length - 1 / 9)).toBeLessThan(0.02)
  })

  test('of a set of one is that one, whatever it is called', () => {
    expect(hubOf('c1', ['anything'])).toBe('anything')
  })

  test('of no hubs is none', () => {
    expect(caught(() => hubOf('c1', []))).toMatchObject({ code: 'INVALID_ARGUMENT' })
  })
})

describe('ids of a set', () => {
  test('have the hub before them, and come apart again', () => {
    const id = qualifiedId('hf-3', '17-0.1/2')
    expect(id).toBe('hf-3:17-0.1/2')
    expect(partsOfId(id, eight)).toEqual({ hub: 'hf-3', id: '17-0.1/2' })
  })

  test('may hold colons of their own', () => {
    expect(partsOfId('hf-1:agent:7', eight)).toEqual({ hub: 'hf-1', id: 'agent:7' })
  })

  test('of a set of one are plain, colons and all', () => {
    expect(partsOfId('agent:7', ['hf'])).toEqual({ hub: 'hf', id: 'agent:7' })
  })

  it.each(['17-0', 'hf-9:17-0', 'hf-1:', ':17-0', ''])('%j is refused in a set of several', (id) => {
    const error = caught(() => partsOfId(id, eight))
    expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', current: id })
    expect(error).toMatchObject({ next: expect.stringContaining('hf-0, hf-1') })
  })
})

function caught(act: () => unknown): unknown {
  try {
    act()
  } catch (error) {
    if (isHoldfastError(error)) return error
    throw error
  }
  throw new Error('it was not refused')
}
