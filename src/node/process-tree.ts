import { setTimeout as sleep } from 'node:timers/promises'
import type { ChildIdentity } from './executor.js'
import { treeAlive } from './process-identity.js'

/** After SIGKILL, how long an unkillable process may hold us up. Milliseconds. */
export const reapMs = 5000
const pollMs = 50

/** SIGTERM to the group; SIGKILL if anything of it is left after the grace. True when it went by the first. */
export async function endTree(child: ChildIdentity, graceMs: number): Promise<boolean> {
  signalGroup(child.group, 'SIGTERM')
  if (await treeEnds(child, graceMs)) return true
  signalGroup(child.group, 'SIGKILL')
  await treeEnds(child, reapMs)
  return false
}

/** A group that is gone already needs no signal. */
export function signalGroup(group: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-group, signal)
  } catch {}
}

async function treeEnds(child: ChildIdentity, ms: number): Promise<boolean> {
  const deadline = performance.now() + ms
  while (treeAlive(child)) {
    const leftMs = deadline - performance.now()
    if (leftMs <= 0) return false
    await sleep(Math.min(pollMs, leftMs))
  }
  return true
}
