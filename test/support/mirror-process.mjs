// A process that owns a mirror, for tests that kill it. It runs the built code: npm test builds first.
// mirror-process.mjs <hold|write|fill> <file> <lockWaitMs>
import { once } from 'node:events'

const { openMirror } = await import(new URL('../../dist/node/mirror.js', import.meta.url).href)
const [mode, file, lockWaitMs] = process.argv.slice(2)
const message = { id: 'm', conversation: 'c', sender: 's', sha256: 'x' }

/** @param {string} line */
function say(line) {
  process.stdout.write(`${line}\n`)
}

function open() {
  try {
    return openMirror({ file, hub: 'hub', host: 'host', node: 'node', lockWaitMs: Number(lockWaitMs) })
  } catch (error) {
    say(`refused ${error instanceof Error ? error.message : error}`)
    process.exit(0)
  }
}

const mirror = open()
say(`open ${mirror.incarnation}`)

/** Keeps the mirror open until standard input ends. */
async function hold() {
  process.stdin.resume()
  await once(process.stdin, 'end')
  await mirror.close()
}

/** Writes until it is killed; a line is said only when what it names was acknowledged. */
async function write() {
  for (let n = 0; ; n += 1) {
    const delivery = `m${n}.1`
    const kept = mirror.storeCopies([
      { delivery, epoch: n, message, payload: Buffer.alloc(n % 5000, n % 256) },
    ])
    kept.then(() => say(`copy ${n}`))
    mirror.mintGrant({ grant: `g${n}`, delivery, epoch: n }).then(() => say(`grant ${n}`))
    if (n % 10 === 9) await kept
  }
}

/** Writes pairs of copies until the disk refuses, then tries once more, then goes without closing. */
async function fill() {
  const payload = Buffer.alloc(100_000, 7)
  for (let n = 0, refused = 0; refused < 2; n += 1) {
    const pair = [`a${n}`, `b${n}`].map((delivery) =>
      mirror.storeCopies([{ delivery, epoch: 1, message, payload }]),
    )
    const answers = await Promise.allSettled(pair)
    say(answers.map((answer) => (answer.status === 'fulfilled' ? 'kept' : answer.reason.code)).join(' '))
    if (answers.some((answer) => answer.status === 'rejected')) refused += 1
  }
  process.exit(0)
}

if (mode === 'hold') await hold()
if (mode === 'write') await write()
if (mode === 'fill') await fill()
