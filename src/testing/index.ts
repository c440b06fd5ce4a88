/** For tests of your own handlers: a real record for each of them, crash points, a clock, and the checker's verdict. */

export type { Verdict, Violation } from './checker/index.js'
export type { TestClock } from './clock.js'
export { type CrashTestOptions, crashTest } from './crash-test.js'
export type { CrashedDelivery, CrashHandler, CrashRun, CrashVerdict } from './crash-words.js'
export type { RunningNode, TestNodeOptions } from './node.js'
export {
  openTestRecord,
  type TestRecord,
  type TestRecordOptions,
  type TestServer,
  testHost,
} from './record.js'
