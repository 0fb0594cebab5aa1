-- cli/options.lua: the command line of a command of the program: options with defaults, as flow.args reads them, --help, and one sentence
-- for what the command does not know.

local errors = require "flow.errors"
local args = require "flow.command_line"

-- The options of `flowlua COMMAND arguments`: a table of the names of `defaults`, and the other words by position.
return function(command, usage, defaults, arguments)
  local function refuse(message) errors.raise("%s: %s; flowlua %s --help shows what there is", command, message, command) end
  for _, text in ipairs(arguments) do
    if text == "--" then break end
    if text == "--help" or text == "-h" then error(setmetatable({ text = usage, code = 0 }, args.Exit), 0) end
    if text:find("^%-[^%-%d]") then refuse("unknown option " .. text) end
  end
  local ok, options = pcall(args.parse, defaults, arguments)
  if ok then return options end
  refuse((tostring(options):gsub("^[^\n]-:%d+: ", "")))
end
