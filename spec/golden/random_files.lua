-- random_files.lua: writes random models (spec/support/random_files.lua) with inputs and predictions into a folder, for keras_files.py.
local flow = require "flow"
local random_files = require "spec.support.random_files"
-- FOLDER/SEED.keras with SEED_1_x1.npy, SEED_1_y1.npy, but no values where inputs are strings; with "unknown", models of unknown sizes
-- with inputs of two sizes, SEED_2_x1.npy.
-- COUNT: 500, or 501-1000 for those after them.
local folder = assert(arg[1], "usage: flowlua random_files.lua FOLDER COUNT [unknown]")
local first, last = arg[2]:match "^(%d+)%-(%d+)$"
local unknown = arg[3] == "unknown"

for seed = tonumber(first or 1), tonumber(last or arg[2]) do
  local model, inputs, class = random_files.model(seed, { unknown = unknown })
  local name = folder .. "/" .. seed
  model:save(name .. ".keras")
  for size = 1, unknown and 2 or 1 do
    local list = unknown and inputs() or inputs
    local outputs = model:predict(#list == 1 and list[1] or list, { verbose = 0 })
    outputs = flow.is_tensor(outputs) and { outputs } or flow.keras.tree.flatten(outputs)      -- lists in a list
    if model.inputs[1].dtype == "string" then list, outputs = {}, {} end
    for i, x in ipairs(list) do flow.save_npy(("%s_%d_x%d.npy"):format(name, size, i), x) end
    for i, y in ipairs(outputs) do flow.save_npy(("%s_%d_y%d.npy"):format(name, size, i), y) end
  end
  local file = assert(io.open(name .. ".txt", "w"))
  file:write(class)
  file:close()
end
