import { redisEnvironment } from './environments.js'
import { conformance } from './suite.js'

conformance('on Redis', redisEnvironment)
