-- bias_and_activation.lua: what follows the product of a layer of the library if that product is computed in Lua: the bias is added, then
-- the activation is applied.

return function(layer, y)
  for _, v in ipairs(layer.weights) do
    if v.name == "bias" then
      y = y + v
      break
    end
  end
  local own = layer._own_choices and layer._own_choices.activation
  if own then return own(y) end
  local name = layer.activation
  if name == nil or name == "linear" then return y end
  local kept = rawget(layer, "_activation_inside") or { require("flow.layers").Activation(name) }      -- in a table: not a part
  rawset(layer, "_activation_inside", kept)
  return kept[1](y)
end
