// @ts-check
// An agent: what a host supervises. It takes prompts on a socket in its directory, and keeps a journal there in
// which every turn has a begin and an end. Its arguments: session id, directory.
import { closeSync, fsyncSync, openSync, rmSync, writeSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

const [session = '', directory = ''] = process.argv.slice(2)
const turnMs = 150
const socket = join(directory, `${session}.sock`)

/** On disk when it returns. @param {object} line */
function note(line) {
  const journal = openSync(join(directory, `${session}.journal`), 'a')
  writeSync(journal, `${JSON.stringify(line)}\n`)
  fsyncSync(journal)
  closeSync(journal)
}

const server = createServer(async (request, response) => {
  let prompt = ''
  for await (const chunk of request) prompt += chunk
  const attempt = request.headers['idempotency-key']
  note({ begin: attempt, pid: process.pid, prompt })
  await sleep(turnMs)
  note({ end: attempt })
  response.end(JSON.stringify({ answer: `${session} did ${prompt}` }))
})

rmSync(socket, { force: true }) // of an agent that was killed
server.listen(socket)
process.once('SIGTERM', () => {
  server.close(() => process.exit(0))
  server.closeIdleConnections()
})
