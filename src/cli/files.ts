import { accessSync, constants, readFileSync, statSync } from 'node:fs'

/** Whether there is something to read from under the name: a file, a pipe or a device, and no directory. */
export function isReadable(path: string): boolean {
  try {
    accessSync(path, constants.R_OK)
    return !statSync(path).isDirectory()
  } catch {
    return false
  }
}

/** The text of a file that was checked to be readable; undefined where none is named. */
export function textOf(path: string | undefined): string | undefined {
  return path === undefined ? undefined : readFileSync(path, 'utf8')
}
