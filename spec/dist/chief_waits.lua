-- chief_waits.lua: chief_waits(folder, count), called by each of `count` workers, lets the chief, worker:0, go on only when all have called
-- it. A worker that starts on a busy machine after the chief has ended is told so, and has nothing to do.
local flow = require "flow"

return function(folder, count)
  local config = os.getenv "TF_CONFIG"
  local task = config:match('"type":"(%a+)"') .. config:match('"index":(%d+)')
  io.open(folder .. "/" .. task, "w"):close()
  for _ = 1, 400 do
    local there = 0
    for i = 0, count - 1 do there = there + (flow.io.exists(folder .. "/worker" .. i) and 1 or 0) end
    if task ~= "worker0" or there == count then return end
    os.execute "sleep 0.1"
  end
end
