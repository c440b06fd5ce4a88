/** A hub within a fastify application: `app.register(holdfast, { prefix: '/holdfast', redis })`. */

import { checkOptions } from './contract/options.js'
import { type HoldfastOptions, mountHub, type OuterApp, pluginForm } from './http/plugin.js'
import { startSchedule } from './sweeps/schedule.js'

export type { Role } from './contract/principals.js'
export type { HoldfastCaller } from './http/embedded-identities.js'
export type { Limits } from './http/limits.js'
export type { HoldfastOptions, OuterApp } from './http/plugin.js'

/**
 * A plugin of fastify 5 that mounts a whole hub below its prefix: interface, page, events, health and sweeps. It ends
 * with the application. Other routes of the application are not touched.
 * @throws INVALID_ARGUMENT for options that are none, and for an application of HTTP/2, STORE_UNKNOWN, STORE_UNAVAILABLE
 */
export async function holdfast(app: OuterApp, options: HoldfastOptions): Promise<void> {
  checkOptions('holdfast', pluginForm, options)
  const { redis, log = app.log } = options
  await mountHub(app, { ...options, log, sweeps: (parts) => startSchedule({ redis, parts, log }) })
}
