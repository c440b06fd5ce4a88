import { quoted } from './format.js'
import { me } from './hub.js'

// The same thing for a terminal: with redis-cli on the record, and with the command line of Holdfast.

/** A key of the hub, as a word of a shell. */
function key(rest: string): string {
  return quoted(`{${me.value?.hub ?? 'hf'}}:${rest}`)
}

function tag(): string {
  return quoted(`{${me.value?.hub ?? 'hf'}}`)
}

const hubFlag = () => (me.value?.hub === 'hf' ? '' : ` --hub ${quoted(me.value?.hub ?? 'hf')}`)

export const forDelivery = {
  redis: (id: string) => `redis-cli HGETALL ${key(`delivery:${id}`)}`,
  redisWhy: (id: string) => `redis-cli FCALL_RO hf_why 1 ${tag()} ${quoted(id)}`,
  cli: (id: string) => `holdfast delivery show ${quoted(id)}${hubFlag()}`,
  cliWhy: (id: string) => `holdfast delivery why ${quoted(id)}${hubFlag()}`,
}

export const forMessage = {
  redis: (id: string) => `redis-cli HGETALL ${key(`message:${id}`)}`,
  redisPayload: (id: string) => `redis-cli GET ${key(`payload:${id}`)}`,
  cli: (id: string) => `holdfast message show ${quoted(id)}${hubFlag()}`,
}

export const forHost = {
  redisPending: (host: string) => `redis-cli XPENDING ${key(`stream:${host}`)} nodes - + 100`,
  cliPending: (host: string) => `holdfast pending ls --host ${quoted(host)}${hubFlag()}`,
}
