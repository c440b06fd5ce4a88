// A worker that takes one job, says its id, and never comes to the end of it: it waits to be killed. It fetches
// itself, since `work()` would fail the job when its time is over.
// Arguments: the URL of the database, the queue.
import PgBoss from 'pg-boss'

const [url = '', queue = ''] = process.argv.slice(2)
setInterval(() => {}, 60_000) // lives until it is killed
const boss = new PgBoss({ connectionString: url, schedule: false, supervise: false })
await boss.start()
const [job] = await boss.fetch(queue)
if (job === undefined) throw new Error('nothing to take')
process.stdout.write(`${job.id}\n`)
