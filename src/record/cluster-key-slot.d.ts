declare module 'cluster-key-slot' {
  /** The slot of a key, of 16384: that of what stands between its first braces, where there are any. */
  function calculateSlot(key: string): number
  export = calculateSlot
}
