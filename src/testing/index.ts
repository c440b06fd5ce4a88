/** For tests of your own handlers: a real record for each of them, crash points, a clock, and the checker's verdict. */

export type { TestClock } from './clock.js'
export type { RunningNode, TestNodeOptions } from './node.js'
export {
  openTestRecord,
  type TestRecord,
  type TestRecordOptions,
  type TestServer,
  testHost,
} from './record.js'
