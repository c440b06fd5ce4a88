// @ts-check
// Small libraries in front of the system's: compiled where they are used, and loaded into processes of a run.
import { spawnSync } from 'node:child_process'

/** Why none can be used here; undefined when they can. @param {string} what @returns {string | undefined} */
export function preloadNeeds(what) {
  if (process.platform !== 'linux') return `${what} needs Linux (LD_PRELOAD)`
  if (process.arch !== 'x64' && process.arch !== 'arm64') return `${what} is not made for ${process.arch}`
  if (compiler() === undefined) return `${what} needs a C compiler: apt-get install -y gcc libc6-dev`
  return undefined
}

function compiler() {
  return ['cc', 'gcc', 'clang'].find(
    (name) => spawnSync(name, ['--version'], { stdio: 'ignore' }).status === 0,
  )
}

/** @param {string} source @param {string} library the file to write */
export function compileLibrary(source, library) {
  const words = ['-shared', '-fPIC', '-O2', '-o', library, source]
  const built = spawnSync(compiler() ?? 'cc', words, { encoding: 'utf8' })
  if (built.status !== 0)
    throw new Error(`${source} cannot be compiled: ${built.stderr || built.error?.message}`)
}

/** Beside what is loaded already. @param {Record<string, string>} env @param {string} library */
export function addPreload(env, library) {
  env['LD_PRELOAD'] = [env['LD_PRELOAD'], library].filter(Boolean).join(':')
}
