import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const script = fileURLToPath(new URL('../../examples/agent-sessions/agent-sessions.mjs', import.meta.url))

/** Runs the example to its end; answers its exit code and what it printed. */
async function run(): Promise<{ code: number | null; output: string }> {
  const child = spawn(process.execPath, [script], { stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (bytes: Buffer) => {
      output += bytes.toString()
    })
  }
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve))
  return { code, output }
}

test('agent sessions on two hosts, of which one dies: nothing is lost, no turn runs twice', async () => {
  const { code, output } = await run()
  expect(output).toMatch(/^moved at once: EXECUTING/m)
  expect(output).toMatch(/^moved: lead on build-2, lead\/helper on build-2, other on build-2$/m)
  expect(output).toMatch(/^unknown: \S+ \((rehomed|stale)\); the journal of the agent has/m)
  expect(output).toMatch(/^build-1 came back and opens lead: SESSION_ELSEWHERE$/m)
  expect(output.trim().split('\n').at(-1)).toBe('lost 0, turns begun twice 0')
  expect(code, output).toBe(0)
})
