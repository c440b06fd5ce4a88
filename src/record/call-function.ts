import type { Argument, FunctionOptions, Store } from './connections.js'
import { type Fields, fieldsOf } from './replies.js'

/** Calls the function `hf_<verb>` for one hub; answers the fields of its reply. */
export type CallFunction = (
  verb: string,
  args: readonly Argument[],
  options?: FunctionOptions,
) => Promise<Fields>

export function callFunctionOf(store: Store, tag: string): CallFunction {
  return async (verb, args, options) => fieldsOf(await store.fcall(`hf_${verb}`, tag, args, options))
}
