-- log.lua: the one sink for what flowlua has to say: standard output and error in the flowlua program, silence in a host
-- unless it sets flow.log.sink = function(level, text), level being "print", "info" or "warning".
-- What users have as flow.log is tensor/log.lua.

local native = require "flow.ffi"

local C = native.C
local log = { sink = nil }

local levels = { print = C.FLOW_LOG_PRINT, info = C.FLOW_LOG_INFO, warning = C.FLOW_LOG_WARNING }

local function send(level, text, ...)
  if select("#", ...) > 0 then text = text:format(...) end
  if log.sink then log.sink(level, text) else C.flow_log(levels[level], text) end
end

-- Text that a user asked for: progress, summaries. Further arguments are formatted into text. log.latest: the last such text, which the
-- prompt does not show again.
function log.print(text, ...)
  log.latest = select("#", ...) > 0 and text:format(...) or text
  send("print", "%s", log.latest)
end
function log.info(text, ...) send("info", text, ...) end
function log.warning(text, ...) send("warning", text, ...) end

return log
