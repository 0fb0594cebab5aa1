-- init.lua: flow.repl: the prompt of the program flowlua, and of any other program: flow.repl(input, output).
--
-- Reading order: loop.lua (entries, errors, interrupts), show.lua (values as text), complete.lua (completion with Tab),
-- session.lua (the names of a session, and help, who and time), editor.lua (the terminal).
--
-- The room: the prompt. May use: reference.

local errors = require "flow.errors"
local signature = require "flow.signature"
local loop = require "flow.repl.loop"

-- What input(prompt) and output(text) are made of: functions, files, or nothing: the standard input, and print. A file is told by its read
-- or write method. Both raise for anything else.
local function reader(input)
  if input == nil then
    local library = require("flow.host").io
    return function() return library.read("*l") end
  end
  if signature.is_callable(input) then return input end
  local ok, has = pcall(function() return input.read ~= nil end)
  if ok and has then return function() return input:read("*l") end end
  errors.raise("flow.repl: input is a function(prompt) that returns a line or nil, or a file, got %s", errors.describe(input))
end

local function writer(output)
  if output == nil then return print end
  if signature.is_callable(output) then return output end
  local ok, has = pcall(function() return output.write ~= nil end)
  if ok and has then return function(text) output:write(text, "\n") end end
  errors.raise("flow.repl: output is a function(text), or a file, got %s", errors.describe(output))
end

-- Runs a session until input ends. What it defines is global, as at the prompt of the program.
local function run(input, output)
  loop.run { read = reader(input), write = writer(output) }
end

local repl = setmetatable({}, { __index = loop, __newindex = loop, __call = function(_, ...)
  local input, output, extra = signature.sort({ title = "flow.repl", text = "input?, output?", f = run }, ...)
  if extra ~= nil then errors.raise("flow.repl takes (input, output); %s is one argument too many", errors.describe(extra)) end
  return run(input, output)
end })
signature.register(repl, signature.entry("flow.repl", run, "input?, output?"))
errors.namespaces[repl] = "flow.repl"

return repl
