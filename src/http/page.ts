import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import fastifyStatic from '@fastify/static'
import type { FastifyReply } from 'fastify'
import { HoldfastError } from '../contract/errors.js'
import { watchMethods } from './routes/index.js'
import type { App } from './routes/parts.js'

/** Where `npm run build` puts the page, for those who run from sources too. */
const builtPage = fileURLToPath(new URL('../../dist/dashboard/', import.meta.url))

/** All that the page loads comes from its own server, and nothing may frame it. */
const pagePolicy = [
  "default-src 'self'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "form-action 'self'",
].join('; ')

/** A file under this folder has a digest of its bytes in its name. */
const namedByContent = /[\\/]assets[\\/][^\\/]+$/

/**
 * The page at `/`, with its files in `/assets/`: open to everyone, as it shows nothing but what its reader may ask
 * the hub for. `dir` is where it was built; the package's own when absent.
 */
export async function addPage(app: App, dir = builtPage): Promise<void> {
  await app.register(async (scope) => {
    scope.addHook('onRoute', (route) => {
      route.config = { ...route.config, access: 'public' }
    })
    const refuseOthers = watchMethods(scope as unknown as App)
    if (existsSync(dir)) {
      await scope.register(fastifyStatic, {
        root: dir,
        wildcard: false,
        globIgnore: ['**/*.{br,gz}'],
        preCompressed: true,
        cacheControl: false,
        setHeaders,
      })
    } else {
      scope.get('/', { schema: { hide: true } }, async () => {
        throw new HoldfastError('ROUTE_NOT_FOUND', 'the page was not built in this installation', {
          next: 'run `npm run build` and start the hub again, or ask it by `holdfast` and /v1',
        })
      })
    }
    refuseOthers()
  })
}

function setHeaders(reply: FastifyReply, path: string): void {
  const lasts = namedByContent.test(path)
  reply.headers({
    'cache-control': lasts ? 'public, max-age=31536000, immutable' : 'no-cache',
    'content-security-policy': pagePolicy,
    'x-frame-options': 'DENY',
  })
}
