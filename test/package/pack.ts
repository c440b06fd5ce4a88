import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The package, as it would be published. */
export interface Packed {
  /** Its path. */
  readonly file: string
  readonly bytes: Uint8Array<ArrayBuffer>
  /** Bytes of the files in it. */
  readonly unpackedSize: number
  /** Paths within the package, with their sizes in bytes. */
  readonly files: ReadonlyMap<string, number>
}

export const root = fileURLToPath(new URL('../../', import.meta.url))

/** Packs the last build into a folder. */
export function packInto(folder: string): Packed {
  const words = ['pack', '--ignore-scripts', '--json', '--pack-destination', folder]
  const text = execFileSync('npm', words, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
  const [made] = JSON.parse(text) as [
    {
      readonly filename: string
      readonly unpackedSize: number
      readonly files: readonly { readonly path: string; readonly size: number }[]
    },
  ]
  const file = join(folder, made.filename)
  return {
    file,
    bytes: new Uint8Array(readFileSync(file)),
    unpackedSize: made.unpackedSize,
    files: new Map(made.files.map(({ path, size }) => [path, size])),
  }
}
