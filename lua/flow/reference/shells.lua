-- shells.lua: what completes the program's commands, their options and the names that help knows, in bash, zsh and fish.

local errors = require "flow.errors"

local shells = {}

local function topics(items)
  local list = {}
  for _, item in ipairs(items) do list[#list + 1] = item.name end
  return table.concat(list, " ")
end

local command_names = require("flow.names").sorted

-- "--top --classes" of each command.
local function options_of(commands, name)
  return (commands[name].options .. " --help"):gsub("^ ", "")
end

local BASH = [=[
# completion of flowlua for bash:  source <(flowlua help --completion bash)
_flowlua() {
  local word=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]}
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "COMMANDS -e -l -m -i -v --help" -- "$word") $(compgen -f -X '!*.lua' -- "$word") $(compgen -d -- "$word"))
    return
  fi
  case $command in
CASES
  esac
  [ ${#COMPREPLY[@]} -gt 0 ] || COMPREPLY=($(compgen -f -- "$word"))
}
complete -o filenames -F _flowlua flowlua
]=]

local ZSH = [=[
#compdef flowlua
# completion of flowlua for zsh: a file _flowlua in a folder of fpath, or  source <(flowlua help --completion zsh)
_flowlua() {
  if (( CURRENT == 2 )); then
    compadd -- COMMANDS -e -l -m -i -v --help
    _files -g '*.lua'
    return
  fi
  case $words[2] in
CASES
  esac
  _files
}
if [ "$funcstack[1]" = _flowlua ]; then _flowlua "$@"; else compdef _flowlua flowlua; fi
]=]

local FISH = [=[
# completion of flowlua for fish:  flowlua help --completion fish | source
complete -c flowlua -n __fish_use_subcommand -a 'COMMANDS'
CASES]=]

-- How a case looks: of a command with its options, and of help with its topics.
local SHELLS = {
  bash = { BASH, '    %s) COMPREPLY=($(compgen -W "%s" -- "$word")) ;;' },
  zsh = { ZSH, "    %s) compadd -- %s ;;" },
  fish = { FISH, "complete -c flowlua -n '__fish_seen_subcommand_from %s' -a '%s'" },
}

-- The script for a shell. commands: { name = { options = "--top --classes" } }.
function shells.script(shell, commands, items)
  local form = SHELLS[shell]
  if not form then errors.raise("help: --completion is for bash, zsh or fish, got %q", shell) end
  local names, cases = command_names(commands), {}
  for _, name in ipairs(names) do
    local words = options_of(commands, name)
    if name == "help" then words = words .. " " .. topics(items) end
    cases[#cases + 1] = form[2]:format(name, words)
  end
  local filled = { COMMANDS = table.concat(names, " "), CASES = table.concat(cases, "\n") }
  return (form[1]:gsub("%f[%u]%u+%f[%U]", filled)) .. (shell == "fish" and "\n" or "")
end

return shells
