-- methods.lua: what models can do with pictures. The rest of the room is loaded when the first one is drawn.

local Model = require("flow.model").Model

-- Draws the model's graph: model:plot("model.svg", { show_shapes = true }); see model.lua.
function Model:plot(file, options)
  return require("flow.plot").model(self, file, options)
end

return Model
