import { expect, test } from 'vitest'
import { exampleMs, runExample } from './run-example.js'

test(
  'agent sessions on two hosts, of which one dies: nothing is lost, no turn runs twice',
  async () => {
    const { code, output, lines, left } = await runExample('agent-sessions/agent-sessions.mjs')
    expect(output).toMatch(/^moved at once: EXECUTING/m)
    expect(output).toMatch(/^moved: lead on build-2, lead\/helper on build-2, other on build-2$/m)
    expect(output).toMatch(/^unknown: \S+ \((rehomed|stale)\); the journal of the agent has/m)
    expect(output).toMatch(/^build-1 came back and opens lead: SESSION_ELSEWHERE$/m)
    expect(lines.at(-1)).toBe('lost 0, turns begun twice 0')
    expect(code, output).toBe(0)
    expect(left).toEqual([])
  },
  exampleMs,
)
