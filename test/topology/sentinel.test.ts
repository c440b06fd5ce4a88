import { httpEnvironment, redisEnvironment } from '../conformance/environments.js'
import { conformance } from '../conformance/suite.js'
import type { TestServer } from '../support/server.js'
import { startSentinels } from './sentinel-of.js'

/** What the conformance suite needs of a server, of a primary under Sentinels. */
async function sentinelsAsServer(): Promise<TestServer> {
  const group = await startSentinels()
  return { url: group.url, port: (await group.primary()).port, stop: group.end } as TestServer
}

conformance('on a primary under Sentinels', () => redisEnvironment(sentinelsAsServer))
conformance('over HTTP, on a primary under Sentinels', () => httpEnvironment(sentinelsAsServer))
