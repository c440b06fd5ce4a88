// @ts-check
// The inside of a script that startScript starts: it answers one question after another.

/** @template Options @returns {Options} */
export const optionsOfScript = () => JSON.parse(process.argv[2] ?? '{}')

/** @type {{ error: string } | undefined} */
let failure

/** Answers the question under way, and every later one, with this. @param {unknown} error */
export function failScript(error) {
  failure ??= { error: String(error) }
  process.send?.(failure)
}

/** Says that it is ready, and answers what it is asked. @param {object} ready @param {(question: any) => Promise<object>} answer */
export function answerQuestions(ready, answer) {
  process.on('message', (question) => {
    if (failure !== undefined) process.send?.(failure)
    else answer(question).then((message) => process.send?.(message), failScript)
  })
  process.once('disconnect', () => process.exit(0))
  process.send?.(failure ?? ready)
}
