// Compiles src/ into dist/, from nothing each time, and makes the command line executable. The new folder
// takes the old one's place in one step, so that nobody ever sees half of it.
import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, renameSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const compiler = join(root, 'node_modules', 'typescript', 'bin', 'tsc')
const made = join(root, `dist.${process.pid}`)
const old = join(root, `dist.${process.pid}.old`)
const dist = join(root, 'dist')

const { status } = spawnSync(
  process.execPath,
  [compiler, '-p', join(root, 'tsconfig.build.json'), '--outDir', made],
  { stdio: 'inherit' },
)
if (status !== 0) {
  rmSync(made, { recursive: true, force: true })
  process.exit(status ?? 1)
}
const commandLine = join(made, 'cli', 'main.js')
if (existsSync(commandLine)) chmodSync(commandLine, 0o755)
if (existsSync(dist)) renameSync(dist, old)
renameSync(made, dist)
rmSync(old, { recursive: true, force: true })
