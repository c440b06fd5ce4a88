// A node process with one command attempt, for tests that kill it. Prints the child's identity as a line.
// Arguments: the command, and `shut` to keep the gate shut for good or `open`.
const [command, gate] = process.argv.slice(2)
const built = new URL('../../dist/node/executors/command.js', import.meta.url).href
const { commandExecutor } = await import(built)

const attempt = {
  id: 'd1/1',
  deliveryId: 'd1',
  number: 1,
  epoch: 1,
  host: 'h1',
  node: 'n1',
  target: { host: 'h1' },
  message: { id: 'm1', conversation: 'c1', sender: 's1', sha256: '' },
  payload: Buffer.from('x'),
  signal: new AbortController().signal,
}

setInterval(() => {}, 60_000) // lives until it is killed
await commandExecutor({ command }).run(attempt, {
  childStarted(/** @type {unknown} */ child) {
    process.stdout.write(`${JSON.stringify(child)}\n`)
    return gate === 'open' ? Promise.resolve() : new Promise(() => {})
  },
})
