-- files.lua: seconds that saving a model of this many megabytes takes, or loading it: flowlua files.lua save|load PATH MEGABYTES
local flow = require "flow"
local C = require("flow.ffi").C
local layers = flow.layers

local action, path, megabytes = arg[1], arg[2], tonumber(arg[3])
local seconds
if action == "save" then
  local units = math.floor(math.sqrt(megabytes * 1e6 / 4))
  local model = flow.Sequential { layers.Input { units }, layers.Dense(units) }
  local started = C.flow_clock()
  model:save(path)
  seconds = C.flow_clock() - started
else
  require("flow.saving.keras")
  local started = C.flow_clock()
  local model = flow.load_model(path)
  seconds = C.flow_clock() - started
  assert(model:count_params() > 0)
end
print(("%.6f"):format(seconds))
