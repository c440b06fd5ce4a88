// A worker that takes one job, says its id, and never comes to the end of it: it waits to be killed.
// Arguments: the URL of the database, the queue.
import PgBoss from 'pg-boss'

const [url = '', queue = ''] = process.argv.slice(2)
const boss = new PgBoss({ connectionString: url, schedule: false, supervise: false })
boss.on('error', (error) => {
  throw error
})
await boss.start()
await boss.work(queue, ([job]) => {
  process.stdout.write(`${job?.id}\n`)
  return new Promise(() => undefined)
})
