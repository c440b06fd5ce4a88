// @ts-check
/** Milliseconds by the machine's monotonic clock: the same in every process. */
export const clockMs = () => Number(process.hrtime.bigint()) / 1e6
