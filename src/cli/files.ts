import { accessSync, constants, readFileSync } from 'node:fs'

export function isReadable(path: string): boolean {
  try {
    accessSync(path, constants.R_OK)
    return true
  } catch {
    return false
  }
}

/** The text of a file that was checked to be readable; undefined where none is named. */
export function textOf(path: string | undefined): string | undefined {
  return path === undefined ? undefined : readFileSync(path, 'utf8')
}
