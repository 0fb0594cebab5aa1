-- events_made.lua: makes the event files that events.py lets TensorBoard read and that events_spec.lua takes apart.
--   luajit spec/golden/events_made.lua FOLDER      (LUA_PATH and FLOWLUA_LIB as scripts/test sets them)
local flow = require "flow"

local function make(folder)
  local writer = flow.summary.create_file_writer(folder)
  for step = 0, 24 do writer:scalar("loss", 1 / (step + 1), step * 10) end
  writer:scalar("not a number", 0 / 0, 1)
  writer:scalar("large", 3e38, 2 ^ 40)
  local values = {}
  for i = 1, 1000 do values[i] = ((i * 7919) % 1000) ^ 2 / 1e6 - 0.25 end
  writer:histogram("weights", flow.tensor(values), 3)
  writer:histogram("few buckets", flow.tensor({ 1, 2, 3, 4, 5 }, { dtype = "int32" }), 4, { buckets = 4 })
  writer:histogram("one value", flow.full({ 7 }, 2.5), 5)
  writer:histogram("nothing", flow.zeros { 0 }, 6, { buckets = 3 })
  writer:text("note", "some *Markdown* and ümlauts", 7)
  local picture = flow.arange(2 * 3 * 4 * 3, { dtype = "float32" }):reshape { 2, 3, 4, 3 } / 72
  writer:image("pictures", picture, 8)
  writer:image("grey", (flow.arange(12, { dtype = "int32" }) * 20):reshape { 3, 4, 1 }, 9)
  writer:close()
end

if arg and arg[0] and arg[0]:find("events_made%.lua$") then make(arg[1]) end
return make
