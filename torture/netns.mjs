// @ts-check
// A network namespace for a process: a machine of its own as far as the network goes, on a cable that can be pulled.
import { spawnSync } from 'node:child_process'
import { atEnd } from './endings.mjs'

/**
 * @typedef {object} Cable
 * @property {string[]} wrap the words that start a program in the namespace
 * @property {string} host the address of this side, reached by nobody but the namespace
 * @property {(isUp: boolean) => void} set plugs it in, or pulls it
 * @property {() => void} remove
 */

/** @type {{ why: string | undefined } | undefined} */
let judged

/** Why no namespace can be made here; undefined when it can. Tries it once. @returns {string | undefined} */
export function cableNeeds() {
  judged ??= { why: whyNot() }
  return judged.why
}

/** @returns {string | undefined} */
function whyNot() {
  if (process.platform !== 'linux') return 'a partition needs Linux (network namespaces)'
  if (process.getuid?.() !== 0) return 'a partition needs root (network namespaces): sudo npm run torture'
  if (spawnSync('ip', ['-V']).error !== undefined) return 'a partition needs ip: apt-get install -y iproute2'
  if (spawnSync('nsenter', ['--version']).error !== undefined) {
    return 'a partition needs nsenter: apt-get install -y util-linux'
  }
  try {
    makeCable(0).remove()
    return undefined
  } catch (error) {
    return `no network namespace can be made here: ${error instanceof Error ? error.message : error}`
  }
}

/** @param {number} number of up to 60, different ones for those there at a time @returns {Cable} */
export function makeCable(number) {
  const id = `${process.pid.toString(36)}${number.toString(36)}`
  const name = `holdfast-${id}`
  const [near, far] = [`hf${id}a`, `hf${id}b`]
  const subnet = `10.213.${process.pid % 256}`
  const [host, guest] = [`${subnet}.${number * 4 + 1}`, `${subnet}.${number * 4 + 2}`]
  ip('netns', 'add', name)
  // The pair goes with the namespace.
  const undo = () => void spawnSync('ip', ['netns', 'del', name])
  const leaveOut = atEnd(undo)
  const remove = () => {
    leaveOut()
    undo()
  }
  try {
    ip('link', 'add', near, 'type', 'veth', 'peer', 'name', far, 'netns', name)
    ip('addr', 'add', `${host}/30`, 'dev', near)
    ip('link', 'set', near, 'up')
    for (const device of ['lo', far]) ip('-n', name, 'link', 'set', device, 'up')
    ip('-n', name, 'addr', 'add', `${guest}/30`, 'dev', far)
  } catch (error) {
    remove()
    throw error
  }
  return {
    // Of the network alone: with a view of the mounts of its own it would hold on to disks that are unmounted here.
    wrap: ['nsenter', `--net=/run/netns/${name}`],
    host,
    set: (isUp) => ip('link', 'set', near, isUp ? 'up' : 'down'),
    remove,
  }
}

/** @param {string[]} words */
function ip(...words) {
  const done = spawnSync('ip', words, { encoding: 'utf8' })
  if (done.status !== 0)
    throw new Error(`ip ${words.join(' ')}: ${done.stderr?.trim() || done.error?.message}`)
}
