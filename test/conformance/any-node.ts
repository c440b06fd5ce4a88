import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startTestServer, type TestServer } from '../support/server.js'
import { until } from '../support/until.js'
import { type NodeCommand, type NodeStage, nodeStage, signalMs } from './any-node-stage.js'

/** What begins an attempt: the call for which the node has a durable grant. */
const begins = /^FCALL hf_(take|begin) /

/** A call that would begin this delivery: by hf_begin, or by hf_take with a grant. */
function asksToBegin(id: string): (words: readonly string[]) => boolean {
  return (words) => {
    const at = words.indexOf(id)
    return at > 0 && (words[1] === 'hf_begin' || (words[1] === 'hf_take' && words[at + 2] !== ''))
  }
}

/**
 * What a node has to do, whatever it is written in (docs/protocol.md): real processes on a real server, known by what they
 * leave in the record and by the marks of the commands they run.
 */
export function anyNode(name: string, command: NodeCommand): void {
  describe.concurrent(name, { timeout: 3 * signalMs }, () => {
    let server: TestServer
    beforeAll(async () => {
      server = await startTestServer()
    })
    afterAll(() => server?.stop())

    /** Its record is whole in the end, and nothing ran but what the record says. */
    function scenario(title: string, play: (stage: NodeStage) => Promise<void>): void {
      it(title, async () => {
        const stage = await nodeStage(server, command)
        try {
          await play(stage)
          await stage.check()
        } finally {
          await stage.close()
        }
      })
    }

    scenario(
      'executes each delivery once, a conversation in order, and reports results byte for byte',
      async (stage) => {
        const texts = [
          'echo\n',
          'echo\n"quoted" \\ \t\u0001\u007f',
          'echo\nœuvre 😀 \u2028',
          'echo\n1.10 130775545883395173',
        ]
        const sent: { id: string; payload: string | Buffer }[] = []
        for (const [at, payload] of [...texts, ...texts, ...texts].entries())
          sent.push({ id: await stage.send(payload, `c${at % 3}`), payload })
        const bytes = Buffer.from([...Buffer.from('echo\n'), ...Array(256).keys()])
        sent.push({ id: await stage.send(bytes), payload: bytes })
        stage.start()
        for (const { id, payload } of sent) {
          await stage.done(id)
          const stdout =
            typeof payload === 'string' ? { stdout: payload } : { stdoutBase64: payload.toString('base64') }
          const { attempts, attempt_1_result } = await stage.record.fields(id)
          expect([attempts, attempt_1_result]).toEqual(['1', JSON.stringify({ exitCode: 0, ...stdout })])
        }
        for (const lane of [0, 1, 2]) {
          const ids = sent.filter((_, at) => at < 12 && at % 3 === lane).map(({ id }) => `${id}/1`)
          expect(stage.marks('begin').filter((id) => ids.includes(id))).toEqual(ids)
        }
      },
    )

    scenario(
      'not_sent is tried again, terminal is not, and a command that dies leaves it unknown',
      async (stage) => {
        const [busy, gone, dies] = [
          await stage.send('busy'),
          await stage.send('gone', 'c2'),
          await stage.send('dies', 'c3'),
        ]
        stage.start()
        await stage.field(gone, 'attempt_status', 'terminal')
        await stage.field(dies, 'attempt_1_unknown_reason', 'signal_SIGKILL')
        await stage.done(busy)
        expect(await stage.record.fields(busy)).toMatchObject({
          attempts: '2',
          attempt_1_status: 'not_sent',
          attempt_1_error_code: 'exit_75',
        })
        expect(await stage.record.fields(gone)).toMatchObject({
          attempts: '1',
          attempt_1_error_code: 'exit_65',
        })
        expect(await stage.record.fields(dies)).toMatchObject({ attempts: '1', attempt_status: 'executing' })
        // An unknown one does not stop the next of its conversation.
        await stage.done(await stage.send('echo', 'c3'))
      },
    )

    scenario('killed while it executes: unknown, never run again, and the rest goes on', async (stage) => {
      const [cut, next] = [await stage.send('waits'), await stage.send('echo')]
      const first = stage.start()
      await until(() => stage.marks('begin').includes(`${cut}/1`), { timeoutMs: signalMs })
      await first.kill()
      stage.start()
      await stage.done(next)
      await until(async () => (await stage.record.fields(cut))['attempt_1_unknown_keys'] !== undefined, {
        timeoutMs: signalMs,
      })
      stage.go()
      await stage.done(await stage.send('echo'))
      expect(await stage.record.fields(cut)).toMatchObject({ attempts: '1', attempt_status: 'executing' })
      expect(await stage.record.send('ZRANGE', stage.record.keys.unknown, 0, -1)).toEqual([`${cut}/1`])
    })

    scenario('killed before its claim was answered: handed out again, executed once', async (stage) => {
      const id = await stage.send('echo')
      const first = stage.start('proxy')
      await stage.proxy.cutAfterReply(/^FCALL hf_claim /)
      stage.proxy.refuse()
      await first.kill()
      stage.start()
      await stage.done(id)
      expect(await stage.record.fields(id)).toMatchObject({ attempts: '1', epoch: '2' })
    })

    scenario(
      'killed between grant and start mark: proof that nothing ran, so it is tried again',
      async (stage) => {
        const id = await stage.send('echo')
        const first = stage.start('proxy')
        await stage.proxy.cutAfterReply(begins)
        stage.proxy.refuse()
        expect((await stage.record.fields(id))['attempt_status']).toBe('executing')
        await first.kill()
        stage.start()
        await stage.done(id)
        expect(await stage.record.fields(id)).toMatchObject({ attempts: '2', attempt_1_status: 'not_sent' })
        expect(stage.marks('begin')).toEqual([`${id}/2`])
      },
    )

    scenario(
      'killed before its report was sent: the next process sends the stored outcome',
      async (stage) => {
        const id = await stage.send('echo')
        const first = stage.start('proxy')
        await stage.proxy.cutBeforeSend(/^FCALL hf_report /)
        stage.proxy.refuse()
        expect((await stage.record.fields(id))['attempt_status']).toBe('executing')
        await first.kill()
        stage.start()
        await stage.done(id)
        expect(await stage.record.fields(id)).toMatchObject({ attempts: '1', attempt_1_outcome: 'result' })
      },
    )

    scenario('answers of join, claim, begin and report are lost: nothing is done twice', async (stage) => {
      const ids = [await stage.send('echo'), await stage.send('busy'), await stage.send('echo', 'c2')]
      const lost = [/^FCALL hf_join /, /^FCALL hf_claim /, begins, /^FCALL hf_report /, /^FCALL hf_report /]
      const cuts = lost.map((match) => stage.proxy.cutAfterReply(match))
      stage.start('proxy')
      await Promise.all(cuts)
      for (const id of ids) await stage.done(id)
      const attempts = await Promise.all(ids.map(async (id) => (await stage.record.fields(id))['attempts']))
      expect(attempts).toEqual(['1', '2', '1'])
      expect(await stage.record.send('HGET', stage.record.keys.counts, 'late_reports')).toBeNull()
    })

    scenario('a payload that does not match its digest is refused, and not executed', async (stage) => {
      const [bad, good] = [await stage.send('echo\nas it was'), await stage.send('echo')]
      await stage.record.send('SET', stage.record.keys.payload(bad.replace(/\.\d+$/, '')), 'echo\nchanged')
      stage.start()
      await stage.done(good)
      expect(await stage.record.fields(bad)).toMatchObject({ state: 'held', held_reason: 'payload_corrupt' })
      expect(stage.marks('begin')).toEqual([`${good}/1`])
    })

    scenario('what a pause covers stays queued, and is taken in order when it is lifted', async (stage) => {
      await stage.record.functions.pause('conversation:c1', 'not now', 'kim')
      const ids = [await stage.send('echo'), await stage.send('echo')]
      stage.start()
      await stage.done(await stage.send('echo', 'c2'))
      expect(await stage.record.states(ids)).toEqual(['queued', 'queued'])
      await stage.record.functions.lift('pause', 'conversation:c1', 'kim')
      for (const id of ids) await stage.done(id)
      expect(stage.marks('begin').slice(1)).toEqual(ids.map((id) => `${id}/1`))
    })

    scenario(
      'a pause between claim and begin: asked again with the same grant, nothing passes it',
      async (stage) => {
        const ids = [await stage.send('echo'), await stage.send('echo')]
        stage.start('proxy')
        await stage.proxy.cutBeforeSend(begins)
        stage.proxy.refuse()
        await stage.record.functions.pause('conversation:c1', 'not now', 'kim')
        stage.proxy.restore()
        await stage.done(await stage.send('echo', 'c2'))
        expect(await stage.record.states(ids)).toEqual(['delivered', 'delivered'])
        expect(stage.proxy.count(asksToBegin(ids[1] ?? ''))).toBe(0)
        await stage.record.functions.lift('pause', 'conversation:c1', 'kim')
        for (const id of ids) await stage.done(id)
        expect(stage.marks('begin').slice(1)).toEqual(ids.map((id) => `${id}/1`))
      },
    )

    scenario(
      'a second process on the mirror does not start; a stop waits for what runs, and leaves',
      async (stage) => {
        const [id, later] = [await stage.send('waits'), await stage.send('echo')]
        const first = stage.start()
        await until(() => stage.marks('begin').length === 1, { timeoutMs: signalMs })
        expect(await stage.start().ended).not.toBe(0)
        first.signal('SIGTERM')
        // The stop has come: it would have begun the next at once otherwise.
        stage.go()
        expect(await first.ended).toBe(0)
        await stage.done(id)
        expect(
          await stage.record.send('HMGET', stage.record.keys.node('a', 'n1'), 'state', 'incarnation'),
        ).toEqual(['left', '1'])
        expect((await stage.record.fields(later))['attempts'] ?? '0').toBe('0')
        stage.start()
        await stage.done(later)
        expect((await stage.record.fields(later))['takeovers'] ?? '0').toBe('0')
      },
    )

    scenario('a process that was superseded ends', async (stage) => {
      const first = stage.start()
      await stage.joined(1)
      await stage.record.join('a', 'n1', 9)
      expect(await first.ended).not.toBe(0)
    })

    scenario('a start that is refused is refused however often it is made again', async (stage) => {
      await stage.record.join('a', 'n1', 2)
      for (let starts = 0; starts < 3; starts += 1) expect(await stage.start().ended).not.toBe(0)
      const left = await stage.record.send('HGET', stage.record.keys.node('a', 'n1'), 'incarnation')
      expect(left).toBe('2')
    })

    it('Redis is killed under a command and comes back: the report arrives, and the node goes on', async () => {
      const own = await startTestServer()
      const stage = await nodeStage(own, command)
      try {
        const id = await stage.send('waits')
        stage.start()
        await until(() => stage.marks('begin').length === 1, { timeoutMs: signalMs })
        await own.kill9()
        stage.go()
        await until(() => stage.marks('end').length === 1, { timeoutMs: signalMs })
        await own.restart()
        await stage.done(id)
        await stage.done(await stage.send('echo', 'c2'))
        await stage.check()
      } finally {
        await stage.close()
        await own.stop()
      }
    })
  })
}
