// @ts-check
// Nodes over Redis, each of a host of its own, in one process. Asked for a number of executions, it answers what
// was executed, and when, once it is so many.
import { join } from 'node:path'
import { createNode } from 'holdfast'
import { inFlight } from '../../figures.mjs'
import { clockMs } from './clock.mjs'
import { answerQuestions, failScript, optionsOfScript } from './script.mjs'

/** @type {{ url: string, folder: string, hosts: string[] }} */
const { url, folder, hosts } = optionsOfScript()
const askEveryMs = 2
/** @type {{ id: string, at: number }[]} */
const executed = []

const startedAtOnce = 16

await inFlight(hosts.length, startedAtOnce, async (n) => {
  const host = hosts[n] ?? ''
  const node = createNode({
    host,
    redis: url,
    mirror: join(folder, `${host}.db`),
    execute: ({ payload }) => void executed.push({ id: payload.toString().trimEnd(), at: clockMs() }),
  })
  await node.start()
  void node.closed.then((end) => failScript(`a node ended: ${JSON.stringify(end)}`))
})
answerQuestions({}, async ({ count, withinMs }) => {
  const deadlineAt = clockMs() + withinMs
  while (executed.length < count) {
    if (clockMs() > deadlineAt) throw new Error(`executed ${executed.length} of ${count}`)
    await new Promise((done) => setTimeout(done, askEveryMs))
  }
  return { executed }
})
