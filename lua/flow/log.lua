-- log.lua: the one sink for flowlua's messages. In the flowlua program they go to standard output and error. In a host, output that a
-- script asked for goes to the host's print; other messages go to flow.log.sink = function(level, text) if the host sets one, where level
-- is "print", "info" or "warning". Messages of C's threads reach the sink with the next call of the library. Users' flow.log is
-- tensor/log.lua.
--
-- C keeps messages in a ring while there is a sink (core/base/log.c) because its threads must not call Lua; deliver() takes them from
-- there, after each call that native.check sees, and at the end of the program. Without a sink C writes to the terminal in the flowlua
-- program; in a host the ring then has the last messages.

local native = require "flow.ffi"
local signature = require "flow.signature"

local C = native.C
local log = {}
local sink, was_stdio = nil, false      -- what is set; whether the program wrote to its terminal before

local levels = { print = C.FLOW_LOG_PRINT, info = C.FLOW_LOG_INFO, warning = C.FLOW_LOG_WARNING }
local names = {}
for name, level in pairs(levels) do names[tonumber(level)] = name end

---- the sink -------------------------------------------------------------------------------------------------------------------------

local MESSAGE_BYTES = 1024      -- core/base/log.c keeps as much of one
local delivering = false

-- Gives the sink what C has said since the last time. What the sink calls itself waits for the next time.
local function deliver()
  if delivering then return end
  delivering = true
  local level, text = native.array("int", 1), native.array("char", MESSAGE_BYTES)
  while sink and C.flow_log_take(level, text, MESSAGE_BYTES) >= 0 do
    local ok, problem = pcall(sink, names[level[0]], native.string(text))
    if not ok then
      delivering = false
      error(problem, 0)
    end
  end
  delivering = false
end

-- Sets or removes the sink; raises for what cannot be called. Messages from before it was set are dropped, and those that wait when it is
-- removed are delivered first.
local function set_sink(f)
  if f ~= nil and not signature.is_callable(f) then
    native.errors.raise("flow.log.sink is a function(level, text) or nil, got %s", native.errors.describe(f))
  end
  if f and not sink then
    was_stdio = C.flow_log_stdio() ~= 0
    C.flow_log_to_stdio(0)
    while C.flow_log_take(nil, nil, 0) >= 0 do end      -- messages from before there was a sink
    require("flow.at_exit").add(log, deliver)
  elseif sink and not f then
    deliver()
    require("flow.at_exit").remove(log)
    C.flow_log_to_stdio(was_stdio and 1 or 0)
  end
  sink = f
  native.listen(f and deliver or nil)
end

setmetatable(log, {
  __index = function(_, name) if name == "sink" then return sink end end,
  __newindex = function(_, name, value)
    if name == "sink" then return set_sink(value) end
    rawset(log, name, value)
  end,
  names = function() return { "sink" } end,
})

---- messages -------------------------------------------------------------------------------------------------------------------------

-- Whether progress is shown by default, for a fit without the option verbose.
function log._is_heard() return sink ~= nil or C.flow_log_stdio() ~= 0 end

-- The text with what is formatted into it. Raises where `text` is not a string, and where it asks for other values.
local function filled(level, text, ...)
  if type(text) ~= "string" then
    native.errors.raise("flow.log.%s takes a text, and what is formatted into it, got %s", level, native.errors.describe(text))
  end
  if select("#", ...) == 0 then return text end
  local ok, result = pcall(text.format, text, ...)
  if not ok then native.errors.raise("flow.log.%s: the text %q does not fit what is formatted into it: %s", level, text, result) end
  return result
end

-- Hands a text on at once. An error of the sink reaches the caller.
local function send(level, text, ...)
  text = filled(level, text, ...)
  if not sink then return C.flow_log(levels[level], text) end
  deliver()
  sink(level, text)
end

-- Text that a user asked for: progress, summaries. Further arguments are formatted into text. log.latest: the last such text, which the
-- prompt does not show again.
function log.print(text, ...)
  log.latest = filled("print", text, ...)
  local print = rawget(_G, "print")
  if log._is_heard() or not print then return send("print", "%s", log.latest) end
  print((log.latest:gsub("\n$", "")))
end

-- Text that users of Keras see without asking for it.
function log._note(text, ...) send("print", text, ...) end
function log.info(text, ...) send("info", text, ...) end
function log.warning(text, ...) send("warning", text, ...) end

return log
