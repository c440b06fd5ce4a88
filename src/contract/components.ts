import { z } from 'zod'

/**
 * The names under which documents of the HTTP surface refer to schemas. They are kept here and not in zod's global
 * registry, which all of a process share: a program that has a `Session` of its own keeps it, and so does another
 * version of this package.
 */
export const components = z.registry<{ readonly id: string }>()
