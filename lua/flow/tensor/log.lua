-- log.lua: flow.log: the sink of messages (log.lua in lua/flow) that can be called, too: flow.log("text") sends a message, flow.log(x) of a
-- tensor or number stays the natural logarithm.

local log = require "flow.log"
local ops = require "flow.tensor.ops"

getmetatable(log).__call = function(_, text, ...)
  if type(text) ~= "string" then return ops.log(text) end
  log.info(text, ...)
end

return log
