-- paths.lua: the paths of a built-in layer's variables are Keras': the names of what the layer is inside of where it is built, its own,
-- that of a part such as a cell or the projection of queries, and the variable's: "model/lstm/lstm_cell/kernel".

local native = require "flow.ffi"
local inside = require "flow.layers.classes.inside"
local variable = require "flow.tensor.variable"

local C = native.C
local group_path, part_name, first = native.array("const char *", 1), native.array("const char *", 1), native.array("int", 1)

-- The variables of a layer that was just built.
return function(layer)
  local above, group, made = inside.path(layer), 0, {}
  local count = C.flow_layer_group(layer._handle, group, group_path, part_name, first)
  while count >= 0 do
    local path = group == 0 and above or above .. "/" .. native.string(part_name[0])
    for i = first[0] + 1, first[0] + count do
      made[i] = variable.wrap(C.flow_layer_variable(layer._handle, i - 1))
      rawset(made[i], "_path", path .. "/" .. made[i].name)
    end
    group = group + 1
    count = C.flow_layer_group(layer._handle, group, group_path, part_name, first)
  end
  rawset(layer, "_made", made)      -- others find these objects, with their paths, as long as the layer lives
  return made
end
