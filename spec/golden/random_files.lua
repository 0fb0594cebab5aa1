-- random_files.lua: writes random models (spec/support/random_files.lua) with inputs and predictions into a folder, for keras_files.py.
local flow = require "flow"
local random_files = require "spec.support.random_files"
local folder, count = assert(arg[1], "usage: flowlua random_files.lua FOLDER COUNT"), tonumber(arg[2])

for seed = 1, count do
  local model, inputs, class = random_files.model(seed)
  local name = folder .. "/" .. seed
  model:save(name .. ".keras")
  local outputs = model:predict(#inputs == 1 and inputs[1] or inputs, { verbose = 0 })
  if flow.is_tensor(outputs) then outputs = { outputs } end
  for i, x in ipairs(inputs) do flow.save_npy(("%s_x%d.npy"):format(name, i), x) end
  for i, y in ipairs(outputs) do flow.save_npy(("%s_y%d.npy"):format(name, i), y) end
  local file = assert(io.open(name .. ".txt", "w"))
  file:write(class)
  file:close()
end
