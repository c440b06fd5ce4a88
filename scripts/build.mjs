// Compiles src/ into dist/, from nothing each time, builds the page into dist/dashboard, and makes the command
// line executable. The new folder takes the old one's place in one step, so that nobody ever sees half of it.
import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import { build } from 'vite'

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
if (status !== 0) fail(status)
const page = join(made, 'dashboard')
try {
  await build({
    configFile: join(root, 'vite.dashboard.config.ts'),
    logLevel: 'warn',
    build: { outDir: page },
  })
  compressIn(page)
} catch (error) {
  console.error(error)
  fail(1)
}
const commandLine = join(made, 'cli', 'main.js')
if (existsSync(commandLine)) chmodSync(commandLine, 0o755)
if (existsSync(dist)) renameSync(dist, old)
renameSync(made, dist)
rmSync(old, { recursive: true, force: true })

/** @param {number | null} code */
function fail(code) {
  rmSync(made, { recursive: true, force: true })
  process.exit(code ?? 1)
}

/**
 * Beside each text of the page its compressed forms, which a server hands out as they are.
 * @param {string} folder
 */
function compressIn(folder) {
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    if (!/\.(html|js|css|svg)$/.test(name)) continue
    const bytes = readFileSync(join(folder, name))
    writeFileSync(join(folder, `${name}.gz`), gzipSync(bytes, { level: 9 }))
    const quality = { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY }
    writeFileSync(join(folder, `${name}.br`), brotliCompressSync(bytes, { params: quality }))
  }
}
