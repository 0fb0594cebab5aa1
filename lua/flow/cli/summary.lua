-- cli/summary.lua: flowlua summary m.keras: the layers of a saved model, its size, and how it was compiled.

local flow = require "flow"

return function(_, arguments)
  if #arguments == 0 then flow.errors.raise("summary: which file? flowlua summary m.keras") end
  for _, path in ipairs(arguments) do
    local model = flow.load_model(path)
    model:summary()
    if model.class_names then print("Classes: " .. table.concat(model.class_names, ", ")) end
  end
end
