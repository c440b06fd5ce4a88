import type { ShellCompDirective } from '@bomb.sh/tab'

/**
 * What bash runs. It speaks the protocol of tab (`holdfast complete -- words…` answers candidates, then `:` and a
 * number), and is not tab's own script, which needs the package bash-completion, cuts no `host:` off where bash takes
 * `:` for the end of a word, and has bash expand both the line and what it is answered: names in a record may come
 * from anyone.
 */
export function bashScript(directive: typeof ShellCompDirective): string {
  return `# bash completion for holdfast
_holdfast() {
  local rest=\${COMP_LINE:0:COMP_POINT} words=() at last trimmed word
  # Words as they were typed: bash has cut them at each : and =, which belong to them.
  for ((at = 0; at <= COMP_CWORD; at++)); do
    trimmed=\${rest#"\${rest%%[![:space:]]*}"}
    word=\${COMP_WORDS[at]}
    ((at == COMP_CWORD)) && word=$trimmed
    last=$((\${#words[@]} - 1))
    if ((last >= 0)) && [[ $trimmed == "$rest" ]]; then words[last]+=$word; else words+=("$word"); fi
    rest=\${trimmed#"$word"}
  done
  local typed=\${words[\${#words[@]} - 1]} breaks=\${COMP_WORDBREAKS//[!:=]/} flag= kept= line full directive=0
  [[ $typed == -*=* ]] && flag=\${typed%%=*}=
  # What stands before the last break stays on the line, and is not given again.
  [[ -n $breaks ]] && kept=\${typed%"\${typed##*[$breaks]}"}
  COMPREPLY=()
  while IFS= read -r line; do
    case $line in
      :*) directive=\${line#:} ;;
      ?*) full=$flag\${line%%$'\\t'*}; COMPREPLY+=("\${full#"$kept"}") ;;
    esac
  done < <(holdfast complete -- "\${words[@]:1}" 2>/dev/null)
  type compopt >/dev/null 2>&1 || return 0
  ((directive & ${directive.ShellCompDirectiveNoSpace})) && compopt -o nospace
  if ((directive & ${directive.ShellCompDirectiveFilterDirs})); then compopt -o dirnames
  elif ! ((directive & ${directive.ShellCompDirectiveNoFileComp})); then compopt -o default
  fi
  return 0
}
complete -F _holdfast holdfast`
}
