import { httpEnvironment, redisEnvironment } from '../conformance/environments.js'
import { conformance } from '../conformance/suite.js'
import type { TestServer } from '../support/server.js'
import { startCluster } from './cluster-of.js'

/** What the conformance suite needs of a server, of a Cluster. */
async function clusterAsServer(): Promise<TestServer> {
  const cluster = await startCluster()
  const [first] = cluster.members
  return { url: cluster.url, port: first?.port ?? 0, stop: cluster.end } as TestServer
}

conformance('on a Redis Cluster of three primaries', () => redisEnvironment(clusterAsServer))
conformance('over HTTP, on a Redis Cluster', () => httpEnvironment(clusterAsServer))
