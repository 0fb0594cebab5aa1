-- cli/summary.lua: flowlua summary m.keras: the layers of a saved model, its size, and how it was compiled.

local flow = require "flow"
local read_options = require "flow.cli.options"

local USAGE = [[
Usage: flowlua summary MODEL...

Prints the layers of saved models (.keras), their shapes and numbers of weights, and the names of classes if the file has them.]]

return function(_, arguments)
  local options = read_options("summary", USAGE, {}, arguments)
  if #options == 0 then flow.errors.raise("summary: which file? flowlua summary m.keras") end
  for _, path in ipairs(options) do
    local model = flow.load_model(path)
    model:summary()
    if model.class_names then print("Classes: " .. table.concat(model.class_names, ", ")) end
  end
end
