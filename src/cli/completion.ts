import { Argument, type Command } from 'commander'
import { print } from './output.js'

const shells = ['bash', 'zsh', 'fish', 'powershell'] as const

/** `holdfast completion <shell>`, and what the shells ask afterwards. */
export function addCompletion(program: Command): void {
  program
    .command('completion')
    .description('what a shell has to run, so that Tab completes verbs, flags and names of the hub')
    .addArgument(new Argument('<shell>', shells.join(', ')).choices(shells))
    .action(async (shell: string) => {
      const { printScript } = await import('./completion-answer.js')
      printScript(shell)
    })
  program
    .command('complete', { hidden: true })
    .argument('[words...]', 'the line behind the name of the program, behind a --')
    .action(async (words: readonly string[]) => {
      // Only now: this module is loaded by the one that it imports here.
      const [{ answerLines }, { programFor }] = await Promise.all([
        import('./completion-answer.js'),
        import('./program.js'),
      ])
      for (const line of await answerLines(await programFor(words.slice(0, -1)), words)) print(line)
      // Whoever was not heard in time is not waited for.
      await new Promise((resolve) => process.stdout.write('', resolve))
      process.exit(0)
    })
}
