-- traceback.lua: the calls in a user's code that led to an error. Calls inside lua/flow, in C and in the program around the script are left
-- out: they do not help the script's author.

local debug = require("flow.host").debug
local errors = require "flow.errors"

local traceback = {}

-- What Lua's own traceback calls a frame.
local function name_of(info)
  if info.what == "main" then return "in main chunk" end
  if info.name then return ("in function '%s'"):format(info.name) end
  return ("in function <%s:%d>"):format(info.short_src, info.linedefined)
end

-- Whether an error is a fault of lua/flow itself: then every frame counts.
local function is_fault(message)
  local file = message:match("^(%S+%.lua):%d+: ")
  return file ~= nil and (errors.is_ours("@" .. file) or file:find("^%.%.%..*flow/[%w_/]+%.lua$") ~= nil)
end

-- The text after the message of an error, "" where the message names the only line there is. level: of the caller's caller, as error()
-- counts. runner: the function that called the user's code; what called that one is left out.
function traceback.text(message, level, runner)
  if is_fault(message) then return debug.traceback("", level + 1) end
  local lines = {}
  level = level + 1
  while true do
    local info = debug.getinfo(level, "Snlf")
    if not info or info.func == runner then break end
    if info.what ~= "C" and info.currentline > 0 and not errors.is_ours(info.source) then
      lines[#lines + 1] = ("\n\t%s:%d: %s"):format(info.short_src, info.currentline, name_of(info))
    end
    level = level + 1
  end
  if #lines < 2 then return "" end
  return "\nstack traceback:" .. table.concat(lines)
end

return traceback
