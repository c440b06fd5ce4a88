// @ts-check
import { spawnSync } from 'node:child_process'
import { statfsSync } from 'node:fs'
import { availableParallelism, cpus, loadavg, release, totalmem } from 'node:os'
import { findServer } from './built.mjs'

/** Names of the file systems seen most, by their magic numbers (statfs(2)). @type {Record<number, string>} */
const fileSystems = {
  61267: 'ext4',
  1481003842: 'xfs',
  2435016766: 'btrfs',
  16914836: 'tmpfs',
  2035054128: 'overlayfs',
}

/** What the figures depend on. @param {string} dir where the servers and mirrors keep their files */
export function machineFacts(dir) {
  const magic = statfsSync(dir).type
  return {
    node: process.version,
    server: serverVersion(),
    kernel: release(),
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: availableParallelism(),
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    fileSystem: fileSystems[magic] ?? `0x${magic.toString(16)}`,
    loadAtStart: Number((loadavg()[0] ?? 0).toFixed(1)),
  }
}

function serverVersion() {
  const program = findServer()
  if (program === undefined) return 'none'
  const { stdout } = spawnSync(program.path, ['--version'], { argv0: program.name, encoding: 'utf8' })
  const version = /v=(\S+)/.exec(stdout)?.[1] ?? /\d+\.\d+\.\d+/.exec(stdout)?.[0]
  return `${program.name} ${version ?? 'of unknown version'}`
}
