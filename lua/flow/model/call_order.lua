-- call_order.lua: the order in which the calls of a functional model run, and that of its layers. As in Keras
-- (keras.src.ops.function.map_graph); core/models/model_order.c is the same for models without Lua.
--
-- A node is one call of a layer on symbolic tensors: { layer =, inputs =, outputs =, position = among the calls of its layer }. The depth
-- of a node is the length of the longest way from it to an output, or the depth of those calls of its layer that were met before it, if
-- that is more.

local errors = require "flow.errors"
local object = require "flow.object"

local raise = errors.raise
local call_order = {}

-- Returns the nodes between inputs and outputs in running order, the layers in Keras' order (by depth, then in the order in which a walk
-- back from the outputs meets them), and the depths of the nodes. Where layers are called several times nodes run as in Keras, too, since
-- what a layer keeps of its calls, such as moving averages, depends on it: by depth, those of one depth in the order in which their depths
-- became known, from the last output on. Else branches run one after the other, which takes less memory.
-- inputs: of the graph; nil: of the model itself. Raises if an output depends on an Input that is not among them, or if two layers have
-- one name.
function call_order.of(self, outputs, inputs)
  inputs = inputs or self.inputs
  local finished, order, met, met_count = {}, {}, {}, 0
  local is_input = {}
  for _, input in ipairs(inputs) do is_input[input] = true end
  local function visit(t)
    local node = t.node
    if finished[node] then return end
    if not met[node.layer] then
      met_count = met_count + 1
      met[node.layer] = met_count
    end
    if #node.inputs == 0 and not is_input[t] then
      raise("%s: the output depends on Input \"%s\", which is not among the inputs", object.title(self), node.layer.name)
    end
    if not is_input[t] then
      for _, input in ipairs(node.inputs) do visit(input) end
    end
    finished[node] = true
    order[#order + 1] = node
  end
  for _, output in ipairs(outputs) do visit(output) end

  local node_depth, layer_depth, known, known_count = {}, {}, {}, 0
  local function set_depth(node, depth)
    if not known[node] then
      known_count = known_count + 1
      known[node] = known_count
    end
    node_depth[node] = depth
  end
  for i = #order, 1, -1 do
    local node = order[i]
    local depth = math.max(node_depth[node] or 0, layer_depth[node.layer] or 0)
    set_depth(node, depth)
    layer_depth[node.layer] = depth
    for _, input in ipairs(node.inputs) do set_depth(input.node, math.max(depth + 1, node_depth[input.node] or 0)) end
  end
  if #order > met_count then
    table.sort(order, function(a, b)
      if node_depth[a] ~= node_depth[b] then return node_depth[a] > node_depth[b] end
      return known[a] < known[b]
    end)
  end
  for i, input in ipairs(inputs) do      -- inputs that no output depends on
    if not met[input.layer] then met[input.layer], layer_depth[input.layer] = i - #inputs, 0 end
  end
  local layers, named = {}, {}
  for layer in pairs(met) do
    layers[#layers + 1] = layer
    if named[layer.name] then
      raise("%s: two layers are called \"%s\"; give one another name", object.title(self), layer.name)
    end
    named[layer.name] = true
  end
  table.sort(layers, function(a, b)
    if layer_depth[a] ~= layer_depth[b] then return layer_depth[a] > layer_depth[b] end
    return met[a] < met[b]
  end)
  return order, layers, node_depth
end

return call_order
