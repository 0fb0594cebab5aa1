-- cli/help.lua: flowlua help NAME: what there is to know of a function, a class, a method or a module; flowlua help --man: the manual page;
-- --completion SHELL: what completes the program's commands in bash, zsh or fish; --annotations FILE: all that is public for editors with a
-- Lua language server. All is made from the records (lua/flow/reference).

local flow = require "flow"
local read_options = require "flow.cli.options"

local USAGE = [[
Usage: flowlua help [NAME...]
       flowlua help --man | --completion bash|zsh|fish | --annotations FILE

Tells what a function, a method or a class takes and does, with an example; for a module, such as layers, its names.

  --man                 the manual page of flowlua:  flowlua help --man | man -l -
  --completion SHELL    completion of commands, options and names:  source <(flowlua help --completion bash)
  --annotations FILE    writes ---@class and ---@param of all that is public, for editors with a Lua language server (workspace.library);
                        -: to the standard output. The folder share/flowlua/annotations of an installation holds it]]

return function(host, arguments, program)
  local options = read_options("help", USAGE, { man = false, completion = "", annotations = "" }, arguments)
  local help = flow.help      -- from here on the reference knows flow
  local reference = require "flow.reference"
  if options.man then
    io.write(require("flow.reference.manual").page(program.usage, reference.all()))
  elseif options.completion ~= "" then
    io.write(require("flow.reference.shells").script(options.completion, program.commands, reference.all()))
  elseif options.annotations ~= "" then
    local text = require("flow.reference.annotations")(reference.all())
    if options.annotations == "-" then io.write(text) else flow.io.write(options.annotations, text) end
  elseif #options == 0 then
    help()
  end
  local style = require "flow.repl.style"
  style.open(host.isatty(1))
  for i, name in ipairs(options) do
    if i > 1 then print() end
    print(reference.text(name, style.of))
  end
end
