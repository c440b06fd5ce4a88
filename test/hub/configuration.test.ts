import { readFileSync } from 'node:fs'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type Setting, type SettingName, settingIn, settings } from '../../src/contract/settings.js'
import { openHub } from '../../src/hub/open-hub.js'
import { makeRecord, type TestNode, type TestRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'

let server: TestServer
let record: TestRecord
let records = 0

beforeAll(async () => {
  server = await startTestServer()
})
beforeEach(async () => {
  records += 1
  record = await makeRecord(server, `configuration-${records}`)
})
afterEach(() => record.close())
afterAll(() => server?.stop())

const beat = { lastLogId: '0-0', progressAgeMs: 0, blocking: { sumMs: 0, longestMs: 0 } }

const view = async (name: string) => (await record.hub.configuration()).find((each) => each.name === name)
/** What the functions use now. */
const used = async (node: TestNode) => (await record.functions.heartbeat(node, beat)).heartbeatMs

const settingsInLua = `#!lua name=settings_test
local hf = { key = { config = function(tag) return tag .. ':config' end } }
${readFileSync(new URL('../../lua/lib/config.lua', import.meta.url), 'utf8')}
redis.register_function{ function_name = 'settings_test', flags = { 'no-writes' }, callback = function(keys)
  local ctx, values = { tag = keys[1] }, {}
  for name in pairs(hf.settings) do
    values[#values + 1] = name
    values[#values + 1] = string.format('%.0f', hf.setting(ctx, name))
  end
  return { values, hf.bad_settings(ctx) }
end }`

const mostOf = ({ most = Number.MAX_SAFE_INTEGER }: Setting) => most
const texts: Readonly<Record<string, (setting: Setting) => number | string>> = {
  'one too small': ({ least }) => least - 1,
  'the least': ({ least }) => least,
  'one above the least': ({ least }) => least + 1,
  'the most': mostOf,
  'one too large': (setting) => mostOf(setting) + 1,
  'the least after zeros': ({ least }) => `000${least}`,
  'the most after zeros': (setting) => `${'0'.repeat(60)}${mostOf(setting)}`,
  'a blank first': ({ least }) => ` ${least}`,
  'a line end': ({ least }) => `${least}\n`,
  'a NUL at its end': ({ least }) => `${least}\0`,
  'a fraction of zero': ({ least }) => `${least}.0`,
  'a sign': ({ least }) => `+${least}`,
  'an exponent': () => '1e3',
  'hexadecimal digits': () => '0x100',
  'digits of another script': () => '\u0665',
  'above what a double holds exactly': () => '9007199254740993',
  'above 64 bits': () => '18446744073709551616',
  'above what a double holds': () => '9'.repeat(400),
  'no text': () => '',
  'a word': () => 'inf',
}

describe('every setting', () => {
  const names = Object.keys(settings) as SettingName[]

  async function expectAsInLua() {
    await record.send('FUNCTION', 'LOAD', 'REPLACE', settingsInLua)
    const reply = await record.send('FCALL_RO', 'settings_test', 1, record.keys.tag)
    const [values, bad] = reply as [string[], string[]]
    const views = await record.hub.configuration()
    const inLua = names.map((name) => [name, Number(values[values.indexOf(name) + 1])])
    expect(names.map((name) => [name, settingIn(views, name)])).toEqual(inLua)
    expect(views.flatMap((each) => (each.bad ? each.name : [])).sort()).toEqual(bad)
  }

  it('has the value that the functions use: nothing is set', () => expectAsInLua())

  it.each(Object.entries(texts))('has the value that the functions use: %s', async (_, textOf) => {
    await record.send('HSET', record.keys.config, ...names.flatMap((name) => [name, textOf(settings[name])]))
    await expectAsInLua()
  })
})

describe('configuration', () => {
  it('lists every setting with its default and meaning while nothing is set', async () => {
    const listed = await record.hub.configuration()
    expect(listed.map(({ name }) => name)).toEqual(Object.keys(settings))
    for (const each of listed) {
      const setting = settings[each.name as SettingName]
      expect(each).toEqual({
        name: each.name,
        value: setting.default,
        default: setting.default,
        meaning: setting.meaning,
        bad: false,
      })
    }
  })

  it('shows what is set, by hub or by a bare HSET', async () => {
    await record.hub.configure({ max_redrive: 3 }, 'kim')
    server.cli('HSET', record.keys.config, 'max_takeovers', '7')
    expect(await view('max_redrive')).toMatchObject({ value: 3, set: '3', default: 10, bad: false })
    expect(await view('max_takeovers')).toMatchObject({ value: 7, set: '7' })
  })

  it.each(['abc', '', ' ', '1.5', '-1', '1', '9007199254740993', 'NaN', 'Infinity'])(
    'names a bad value, and shows the default that is used: %j',
    async (text) => {
      const node = await record.join('a', 'n1')
      await record.config('heartbeat_ms', text)
      expect(await view('heartbeat_ms')).toMatchObject({ value: 2000, set: text, bad: true })
      expect(await used(node)).toBe(2000)
    },
  )

  it.each([
    '0x1000',
    '1e3',
    ' 500 ',
    '0b111111111',
    '0o1000',
    '500.0',
    '+500',
    '1_000',
    '0x1p10',
    '\u00a0500',
    '00500',
  ])('shows what the functions use, whatever the text: %j', async (text) => {
    const node = await record.join('a', 'n1')
    await record.config('heartbeat_ms', text)
    const works = await used(node)
    expect(await view('heartbeat_ms')).toMatchObject({ value: works, set: text })
    const taken = await record.hub.configure({ heartbeat_ms: text }, 'kim').then(
      () => true,
      () => false,
    )
    if (taken) expect(await used(node)).toBe(Number(text))
  })

  it('lists a field that is no setting, as bad', async () => {
    await record.config('max_redrives', 5)
    expect(await view('max_redrives')).toMatchObject({ set: '5', bad: true, meaning: 'no such setting' })
    expect(await view('max_redrive')).toMatchObject({ value: 10, bad: false })
  })

  it.each(['max_redrives', 'toString', '', 'heartbeat_ms '])(
    'does not set %j, which is none',
    async (name) => {
      const why = await record.refused('INVALID_ARGUMENT', () => record.hub.configure({ [name]: 5 }, 'kim'))
      expect(why).toContain('heartbeat_ms')
    },
  )

  it.each([
    ['heartbeat_ms', 49],
    ['heartbeat_ms', 'soon'],
    ['heartbeat_ms', ''],
    ['max_redrive', 0],
    ['max_redrive', 1.5],
    ['retention_ms', -1],
    ['accept_everysec', 2],
    ['heartbeat_ms', 3_000_000_000],
  ])('does not set %s to %j, and says what it must be', async (name, value) => {
    const why = await record.refused('INVALID_ARGUMENT', () => record.hub.configure({ [name]: value }, 'kim'))
    expect(why).toContain(`${name} must be a whole number from ${settings[name as SettingName].least}`)
  })

  it('works at the next call of every process, without a restart', async () => {
    const other = await openHub({ redis: server.url, hub: record.name })
    const message = {
      conversation: 'c',
      sender: 's',
      to: ['a', 'b', 'c'].map((host) => ({ host })),
      payload: 'p',
    }
    expect((await other.accept({ ...message, key: 'k1' })).deliveries).toHaveLength(3)
    await record.hub.configure({ max_recipients: 2 }, 'kim')
    await expect(other.accept({ ...message, key: 'k2' })).rejects.toMatchObject({
      code: 'TOO_MANY_RECIPIENTS',
    })
    await record.hub.configure({ max_recipients: 3 }, 'kim')
    expect((await other.accept({ ...message, key: 'k2' })).replayed).toBe(false)
    const node = await record.join('a', 'n1')
    await record.hub.configure({ heartbeat_ms: 77 }, 'kim')
    expect(await used(node)).toBe(77)
    await other.close()
  })

  it('takes the least of every setting', async () => {
    for (const [name, { least }] of Object.entries(settings)) {
      await record.hub.configure({ [name]: least }, 'kim')
      expect(await view(name)).toMatchObject({ value: least, bad: false })
    }
  })

  const bounded = Object.entries<Setting>(settings).flatMap(([name, { default: usual, most }]) =>
    most === undefined ? [] : [{ name, usual, most }],
  )

  it.each(bounded)('takes $most for $name, and nothing above it', async ({ name, usual, most }) => {
    const node = { host: 'a', node: 'n1', incarnation: 1 }
    const joined = async () => (await record.functions.join(node, 'i1', [], '0-0')).badSettings
    await record.hub.configure({ [name]: most }, 'kim')
    expect(await view(name)).toMatchObject({ value: most, bad: false })
    const range = new RegExp(
      `^INVALID_ARGUMENT ${name} must be a whole number from \\d+ to ${most}, not "${most + 1}"$`,
    )
    const byHub = () => record.hub.configure({ [name]: most + 1 }, 'kim')
    const byFunction = () => record.functions.configure({ [name]: String(most + 1) }, 'kim')
    expect(await record.refused('INVALID_ARGUMENT', byHub)).toMatch(range)
    expect(await record.refused('INVALID_ARGUMENT', byFunction)).toMatch(range)
    expect(await joined()).toEqual([])
    await record.config(name, most + 1)
    expect(await view(name)).toMatchObject({ value: usual, set: String(most + 1), bad: true })
    expect(await joined()).toEqual([name])
  })

  it('has a most for everything that is on or off', () => {
    const switches = Object.entries<Setting>(settings).filter(([, { meaning }]) => /^[01]: /.test(meaning))
    expect(switches.length).toBeGreaterThan(4)
    for (const [name, { least, most }] of switches) expect([least, most], name).toEqual([0, 1])
  })

  it('is refused where there is no record', async () => {
    await record.send('DEL', record.keys.identity)
    await record.refused('STORE_UNKNOWN', () => record.hub.configure({ max_redrive: 5 }, 'kim'))
    await record.refused('STORE_UNKNOWN', () => record.hub.configuration())
  })
})
