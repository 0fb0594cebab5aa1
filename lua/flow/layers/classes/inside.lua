-- inside.lua: the names of the layers inside of which the running coroutine is, as paths of variables have them: "model/block".

local scopes = require "flow.scopes"

local inside = {}

local function path(own, layer)
  if not layer or own.innermost == layer then return own.path end
  return own.path and own.path .. "/" .. layer.name or layer.name
end

-- nil: inside of none. With a layer: the path of what is inside of it.
function inside.path(layer) return path(scopes.own(), layer) end

-- Calls f(...) inside of the layer: variables that are made there have its name in their paths. Returns one result.
function inside.call(layer, f, ...)
  local own = scopes.own()
  local before, innermost = own.path, own.innermost
  own.path, own.innermost = path(own, layer), layer
  local ok, result = pcall(f, ...)
  own.path, own.innermost = before, innermost
  if not ok then error(result, 0) end
  return result
end

return inside
