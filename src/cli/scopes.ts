import { realpathSync } from 'node:fs'
import { resolve } from 'node:path'

/** Scopes are compared as strings, so every side states the canonical path. */
export function canonical(folder: string): string {
  try {
    return realpathSync(folder)
  } catch {
    return resolve(folder)
  }
}
